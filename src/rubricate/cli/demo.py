"""`rubricate demo`: the bundled data, scored, with the agreement of each kind of verdict with the gold labels."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rubricate.chat import ChatModel
from rubricate.cli.agreement import Agreement, Interval, Labelled, agreement, in_words, rank_agreement
from rubricate.cli.backing import Backing, Bounds, connect_judge
from rubricate.cli.page import Figure, PageRow, write_page
from rubricate.cli.preflight import load_in_process
from rubricate.cli.progress import progress
from rubricate.cli.records import as_text, reward_record, write_records
from rubricate.cli.summary import Tally, table
from rubricate.data.bundled import Sample, load_demo
from rubricate.errors import ConfigError
from rubricate.rewardmodels import RubricReward, aggregate
from rubricate.rubrics import Rubric
from rubricate.rubrics.formats import parse_rubric
from rubricate.types import Reward, RewardStatus, Verdict

__all__ = ["DemoRow", "run_demo", "score_demo"]

AGGREGATION = "weighted"
AT_ONCE = 8
ABOUT = (
    "A rubric lists the criteria for the responses to a prompt, and a gold label says whether a careful reader "
    "finds a criterion met. The reward sums up the verdicts on a response by the criteria's weights, from 0 to 1; "
    "beside it stands the reward that the gold labels would give."
)
"""What a newcomer needs to read the page."""
LANGUAGES = {"en": "English", "de": "German", "ja": "Japanese"}


@dataclass(frozen=True, slots=True)
class DemoRow:
    """A scored sample, and the reward that its gold labels would give."""

    sample: Sample
    rubric: Rubric
    reward: Reward
    gold_value: float | None

    @property
    def prompt(self) -> str:
        """Name of its prompt; responses to one prompt have the same."""
        return self.rubric.id

    @property
    def code_value(self) -> float | None:
        """The reward that the code checks alone give."""
        rubric = _code_only(self.rubric)
        verdicts = [verdict for verdict in self.reward.verdicts if verdict.criterion_id in rubric.ids]
        return aggregate(AGGREGATION, rubric, verdicts).value

    def labelled(self, *, code: bool) -> Iterator[Labelled]:
        """The verdicts by code, or by the model, beside their gold labels."""
        for verdict in self.reward.verdicts:
            if (self.rubric[verdict.criterion_id].verifier is not None) == code:
                yield Labelled(self.prompt, verdict.score, self.sample.gold[verdict.criterion_id])


def run_demo(out: Path, judge: str | None) -> None:
    """Score the demo data, print what came of it, and write a page and the records to the folder `out`.

    Args:
        out: folder, made if it is not there.
        judge: the model's name; None for verifiers alone (criteria without one are then left out).

    Raises ConfigError when the folder cannot be made, and what the model's back end raises for want of a package.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the folder {out} cannot be made: {error.strerror}", hint="choose another --out"
        ) from None
    began = time.monotonic()
    rows = asyncio.run(score_demo(judge))
    seconds = time.monotonic() - began
    tally = Tally()
    for row in rows:
        tally.add(row.reward, row.prompt)
    findings = _Findings(rows, judge)
    print(_rewards(rows))
    print()
    print(table(tally.lines(seconds)))
    print()
    print(table(findings.lines()))
    print()
    for text in findings.words():
        print(text)
    records, page = out / "demo.rewards.jsonl", out / "demo.html"
    write_records(records, (reward_record(row.sample.rollout, 1, row.reward) for row in rows))
    _write_page(page, rows, findings, tally)
    print(f"\npage: {page}\nrecords: {records}")


async def score_demo(judge: ChatModel | str | None, samples: Sequence[Sample] | None = None) -> list[DemoRow]:
    """The demo data (or other samples), scored by verifiers and, unless `judge` is None, by the model."""
    chosen = load_demo() if samples is None else samples
    rubrics = [_rubric(sample, code_only=judge is None) for sample in chosen]
    backing = Backing(judge) if isinstance(judge, ChatModel) else connect_judge(judge or "none", Bounds())
    await load_in_process(backing.model)
    reward = RubricReward(
        backing.judge(backing.model, mode="logprob", criteria_per_call=1, view="final"),
        aggregation=AGGREGATION,
        channels=_channels(rubrics),
        deadline=None,
        concurrency=AT_ONCE,
        name="demo",
    )
    rewards: dict[int, Reward] = {}
    try:
        with progress(len(chosen)) as step:
            async for index, scored in reward.as_scored([sample.rollout for sample in chosen], rubrics):
                rewards[index] = scored
                step(1)
    finally:
        await reward.aclose()
    return [
        DemoRow(sample, rubric, rewards[index], _gold_value(rubric, sample))
        for index, (sample, rubric) in enumerate(zip(chosen, rubrics, strict=True))
    ]


def _rubric(sample: Sample, *, code_only: bool) -> Rubric:
    rubric = parse_rubric(sample.rubric, source="demo.jsonl")
    return _code_only(rubric) if code_only else rubric


def _code_only(rubric: Rubric) -> Rubric:
    return Rubric(id=rubric.id, criteria=tuple(c for c in rubric.criteria if c.verifier is not None))


def _channels(rubrics: Sequence[Rubric]) -> list[str]:
    return list(dict.fromkeys(c.channel for rubric in rubrics for c in rubric.criteria if c.channel is not None))


def _gold_value(rubric: Rubric, sample: Sample) -> float | None:
    verdicts = [Verdict(name, float(sample.gold[name]), judge="gold") for name in rubric.ids]
    return aggregate(AGGREGATION, rubric, verdicts).value


def _rewards(rows: Sequence[DemoRow]) -> str:
    """A line a prompt: the rewards of its responses, with the gold labels' rewards in brackets."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        value = "   -" if row.reward.value is None else f"{row.reward.value:.2f}"
        gold = "-" if row.gold_value is None else f"{row.gold_value:.2f}"
        veto = "v" if row.reward.vetoed_by else " "
        lines.setdefault(row.prompt, []).append(f"{value}{veto}({gold})")
    width = max(len(name) for name in lines)
    head = f"{'prompt'.ljust(width)}  reward of each response (by gold labels); v: vetoed, -: unscored"
    return "\n".join([head, *(f"{name.ljust(width)}  {'  '.join(cells)}" for name, cells in lines.items())])


class _Findings:
    """How far the verdicts agree with the gold labels: by code, by the model, and the rewards' order."""

    def __init__(self, rows: Sequence[DemoRow], judge: str | None) -> None:
        self.judge = judge
        self.code = _agreement(rows, code=True)
        self.model = _agreement(rows, code=False) if judge is not None else None
        self.languages = {
            name: _agreement([row for row in rows if row.sample.language == code], code=False)
            for code, name in LANGUAGES.items()
            if judge is not None
        }
        self.order, self.pairs = rank_agreement([(row.prompt, row.reward.value, row.gold_value) for row in rows])
        # Over the same pairs, so that the two can be compared.
        scored = [row for row in rows if row.reward.value is not None]
        self.code_order, _ = rank_agreement([(row.prompt, row.code_value, row.gold_value) for row in scored])

    def lines(self) -> list[tuple[str, str]]:
        """The figures, as label and value; intervals are 95%."""
        lines = [("agreement with the gold labels", "value [95% interval]")]
        lines.append((f"code checks: accuracy ({self.code.verdicts} verdicts)", str(self.code.accuracy)))
        if self.model is not None:
            lines += [
                (f"{self.judge}: accuracy ({self.model.verdicts} verdicts)", str(self.model.accuracy)),
                (f"{self.judge}: balanced accuracy (chance 0.50)", str(self.model.balanced)),
                (f"{self.judge}: AUC (chance 0.50)", str(self.model.auc)),
            ]
            lines += [(f"  AUC on {name}", str(found.auc)) for name, found in self.languages.items()]
            if self.model.failed:
                lines.append((f"{self.judge}: failed verdicts, in none of these", str(self.model.failed)))
        lines.append((f"rewards: pairs in the gold order ({self.pairs} pairs, chance 0.50)", str(self.order)))
        if self.model is not None:
            lines.append(("  the same by the code checks alone", str(self.code_order)))
        return lines

    def words(self) -> list[str]:
        """The same in plain words."""
        right = round(self.code.accuracy.value * self.code.verdicts)
        texts = [f"The code checks agree with {right} of {self.code.verdicts} gold labels."]
        if self.model is not None and self.judge is not None:
            texts.append(in_words(self.judge, self.model))
        return texts

    def figures(self) -> list[Figure]:
        """The same for the page."""
        figures = [_figure("code checks: accuracy", self.code.accuracy)]
        if self.model is not None:
            figures += [
                _figure("model: accuracy", self.model.accuracy),
                _figure("model: balanced accuracy", self.model.balanced),
                _figure("model: AUC", self.model.auc),
            ]
        figures.append(_figure("pairs in the gold order", self.order))
        if self.model is not None:
            figures.append(_figure("pairs in the gold order, by the code checks alone", self.code_order))
        return figures


def _agreement(rows: Sequence[DemoRow], *, code: bool) -> Agreement:
    return agreement([item for row in rows for item in row.labelled(code=code)])


def _figure(label: str, found: Interval) -> Figure:
    return Figure(label, f"{found.value:.2f}", f"95% interval {found.low:.2f} to {found.high:.2f}")


def _write_page(path: Path, rows: Sequence[DemoRow], findings: _Findings, tally: Tally) -> None:
    pages = (
        PageRow(
            row.sample.rollout.id,
            as_text(row.sample.rollout.prompt),
            as_text(row.sample.rollout.response),
            row.rubric,
            row.reward,
            row.sample.gold,
            row.gold_value,
            row.sample.language,
        )
        for row in rows
    )
    figures = [
        Figure("responses", str(tally.rows)),
        Figure("unscored", str(tally.rows - tally.scored)),
        Figure("vetoed", str(tally.statuses[RewardStatus.VETOED.value])),
        Figure("mean reward ± standard error", str(tally.reward)),
    ]
    by = findings.judge or "verifiers alone"
    write_page(
        path,
        pages,
        title=f"rubricate demo: {tally.rows} responses, judged by code and {by}",
        figures=[*figures, *findings.figures()],
        notes=[ABOUT, *findings.words()],
    )
