"""`rubricate score`: the run from options to output file, summary and exit code."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from rubricate.chat import ChatModel
from rubricate.cli.backing import Backing, Bounds, connect_judge
from rubricate.cli.checks import RubricCheck
from rubricate.cli.estimate import Estimate, check_recorded, estimate
from rubricate.cli.imports import import_code
from rubricate.cli.inputs import Inputs, Survey, Unit
from rubricate.cli.journal import Journal, journal_path
from rubricate.cli.page import Figure, PageRow, write_page
from rubricate.cli.preflight import load_in_process
from rubricate.cli.progress import progress
from rubricate.cli.records import as_text, parse_reward, reward_record, write_records
from rubricate.cli.scoring import Scored, score_units
from rubricate.cli.settling import Settler
from rubricate.cli.summary import Tally, counted, table
from rubricate.cli.targets import check_page, check_record, check_target, exists_already
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, FormatError
from rubricate.judges import CriteriaJudge
from rubricate.rewardmodels import Aggregation, RubricReward, preset
from rubricate.rubrics import Rubric
from rubricate.types import Reward

__all__ = ["ScoreOptions", "run_score"]

AT_ONCE = 32
"""Responses in work at once where the caller says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """The options of `rubricate score`; see its help."""

    data: Path
    judge: str
    out: Path
    rubric: Path | None = None
    rubric_column: str | None = None
    columns: Mapping[str, str] | None = None
    rubric_format: str = "auto"
    format_options: Mapping[str, str] | None = None
    mode: str | None = None
    criteria_per_call: int | None = 1
    view: str = "final"
    aggregation: str | None = None
    missing: str | None = None
    min_coverage: float | None = None
    on_failure: str | None = None
    weight_default: float | None = None
    imports: tuple[str, ...] = ()
    concurrency: int | None = None
    rpm: float | None = None
    tpm: float | None = None
    token_budget: int | None = None
    budget: float | None = None
    prices: tuple[float, float] | None = None
    deadline: float | None = None
    limit: int | None = None
    cache: str | None = None
    record: Path | None = None
    page: Path | None = None
    page_rows: int = 1000
    restart: bool = False
    dry_run: bool = False
    quiet: bool = False

    @property
    def judge_mode(self) -> str:
        """The mode; `run_score` fills in the default that goes with the model."""
        return self.mode or "reasoned"

    @property
    def bounds(self) -> Bounds:
        """Those of the model's calls."""
        return Bounds(
            concurrency=self.concurrency,
            rpm=self.rpm,
            tpm=self.tpm,
            token_budget=self.token_budget,
            budget=self.budget,
            prices=self.prices,
        )


def run_score(options: ScoreOptions) -> int:
    """Score a file. Returns the exit code: 0, or 1 when some responses could not be scored.

    Raises RubricateError for bad input or options, KeyboardInterrupt when stopped; the journal then holds what is
    done.
    """
    for name in options.imports:
        import_code(name)
    _check_options(options)
    backing = connect_judge(options.judge, options.bounds, mode=options.mode)
    options = replace(options, mode=options.mode or backing.default_mode)
    aggregation = _aggregation(options)
    inputs = Inputs(
        options.data,
        rubric=options.rubric,
        column=options.rubric_column,
        columns=options.columns,
        limit=options.limit,
        format=options.rubric_format,
        options=options.format_options,
    )
    _check_targets(options)
    stamp = _stamp(options.data)
    judge = _judge(options, backing, backing.model)
    shared = (inputs.shared, inputs.rubric_path) if inputs.shared and inputs.rubric_path else None
    survey = inputs.survey(check=RubricCheck(judge, aggregation, shared=shared))
    for note in inputs.notes(survey):
        print(f"note: {note}", file=sys.stderr)
    if options.dry_run:
        print(table(_estimate(options, inputs, survey, backing)))
        return 0
    if backing.replay is not None:
        check_recorded(inputs, backing.replay, lambda model: _judge(options, backing, model))
    asyncio.run(load_in_process(backing.model))
    backing.keep(cache=options.cache, record=options.record, restart=options.restart)
    reward = _reward_model(options, _judge(options, backing, backing.model), aggregation, survey)
    began = time.monotonic()
    with Journal(journal_path(options.out), _settings(options, inputs, reward), restart=options.restart) as journal:
        if journal.new and options.out.exists() and not options.restart:
            journal.discard()
            raise exists_already(options.out)  # another process has finished it since we looked
        if len(journal) and not options.quiet:
            print(f"going on with {journal.path}: {counted(len(journal), 'response')} done", file=sys.stderr)
        try:
            scored = asyncio.run(_score(options, inputs, reward, journal, backing, survey.responses))
        except (KeyboardInterrupt, asyncio.CancelledError):
            journal.sync()
            print(
                f"stopped; what is done is in {journal.path}. Run the same command again to go on.",
                file=sys.stderr,
            )
            raise KeyboardInterrupt from None
        if _stamp(options.data) != stamp:
            raise FormatError(
                "the file was changed while it was scored",
                source=str(options.data),
                hint="run the same command again: rows that are the same are not scored again",
            )
        return _Finish(options, inputs, journal, scored, reward, backing).run(began)


def _check_options(options: ScoreOptions) -> None:
    """Raises ConfigError where there is nothing to keep or record, and for what a bundle has settled already."""
    settled = (options.mode, options.criteria_per_call, options.view) != (None, 1, "final")
    if options.judge.startswith("bundle:") and settled:
        raise ConfigError(
            "a bundle holds its own mode, view and number of criteria a call",
            hint="leave --mode, --view and --criteria-per-call out, or name the model in place of the bundle",
        )
    if options.judge == "none" and (options.cache is not None or options.record is not None):
        raise ConfigError("with --judge none there are no answers to keep", hint="leave --cache and --record out")
    if options.judge.startswith("replay:") and options.cache is not None:
        raise ConfigError("a replay takes no cache: it gives what was recorded", hint="leave --cache out")


def _aggregation(options: ScoreOptions) -> Aggregation:
    implicit = options.judge_mode in ("holistic", "likert") and options.judge != "none"
    name = options.aggregation or ("rar_implicit" if implicit else "weighted")
    given = {
        "missing": options.missing,
        "min_coverage": options.min_coverage,
        "response_failures": options.on_failure,
        "weight_default": options.weight_default,
    }
    try:
        found = preset(name, **{key: value for key, value in given.items() if value is not None})
    except ConfigError as error:
        raise _in_options(error) from None
    if options.min_coverage is not None and found.missing not in ("skip", "pessimistic"):
        raise ConfigError(
            f"--min-coverage has no effect with --missing {found.missing}",
            hint="leave it out, or use --missing skip or --missing pessimistic",
        )
    return found


def _in_options(error: ConfigError) -> ConfigError:
    """The error with the command's options in place of the library's arguments."""
    if "give min_coverage" in error.message:
        return ConfigError(
            "--missing skip and --missing pessimistic make a number of failed judgements, and need --min-coverage",
            hint="as in --min-coverage 0.8: with less of the weight known a response has no reward",
        )
    names = {"missing": "--missing", "min_coverage": "--min-coverage", "response_failures": "--on-failure"}
    names["weight_default"] = "--weight-default"
    place, colon, rest = error.message.replace("Value error, ", "").partition(": ")
    if colon and place in names:
        return ConfigError(f"{names[place]}: {rest}")
    return ConfigError(f"{place}{colon}{rest}", hint=error.hint)


def _check_targets(options: ScoreOptions) -> None:
    overwrite = options.restart or options.dry_run
    check_target(options.out, data=options.data, rubric=options.rubric, overwrite=overwrite)
    if options.page is not None:
        check_page(options.page, out=options.out, data=options.data, rubric=options.rubric)
    if options.record is not None:
        others = {
            "the page": options.page,
            "the input file": options.data,
            "the file with the rubric": options.rubric,
        }
        check_record(options.record, others, out=options.out, overwrite=overwrite)


def _stamp(data: Path) -> tuple[int, int, int] | None:
    """Tells whether a file is still the same; None for one that is not there, which its reader reports."""
    if not data.exists():
        return None
    if not (data.is_file() or data.is_dir()):
        raise ConfigError(
            f"{data} is a pipe or device, and the data is read more than once", hint="save it to a file"
        )
    found = data.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _judge(options: ScoreOptions, backing: Backing, model: ChatModel | None) -> CriteriaJudge:
    return backing.judge(
        model, mode=options.judge_mode, criteria_per_call=options.criteria_per_call, view=options.view
    )


def _estimate(options: ScoreOptions, inputs: Inputs, survey: Survey, backing: Backing) -> list[tuple[str, str]]:
    asked = Estimate()
    if backing.model is not None:
        asked = estimate(inputs, lambda model: _judge(options, backing, model), backing.model)
    recorded = [("calls that the recording lacks", f"{asked.lacking:,}")] if backing.replay is not None else []
    return [
        ("rows", f"{survey.rows:,}"),
        ("responses", f"{survey.responses:,}"),
        ("checks by code", f"{survey.code:,}"),
        ("checks by the model", f"{survey.model:,}"),
        ("calls, without retries", f"{asked.calls:,}"),
        ("prompt tokens, about", f"{asked.tokens:,}"),
        *recorded,
    ]


def _reward_model(
    options: ScoreOptions, judge: CriteriaJudge, aggregation: Aggregation, survey: Survey
) -> RubricReward:
    if options.judge == "none" and survey.model:
        note = f"note: {survey.model} checks have no verifier, and with --judge none nobody decides them"
        print(note, file=sys.stderr)
    return RubricReward(
        judge,
        aggregation=aggregation,
        channels=list(survey.channels) or None,
        deadline=options.deadline,
        name="score",
    )


def _settings(options: ScoreOptions, inputs: Inputs, reward: RubricReward) -> dict[str, object]:
    """What decides the rewards. Bounds on speed and cost may change from one run to the next; a recording may not,
    because it would lack the rows of one of them."""
    recorded = {} if options.record is None else {"record": str(options.record)}
    return {
        "judge": options.judge,
        "mode": options.judge_mode,
        "judge_fingerprint": reward.judge.fingerprint,
        "aggregation": reward.aggregation.model_dump(mode="json"),
        "rubric": inputs.identity,
        **recorded,
    }


async def _score(
    options: ScoreOptions, inputs: Inputs, reward: RubricReward, journal: Journal, backing: Backing, total: int
) -> Scored:
    async def scorer(rollout: Rollout, rubric: Rubric) -> Reward:
        backing.check()
        given = await reward.ascore(rollout, rubric)
        if given.value is None or any(verdict.failure for verdict in given.verdicts):
            backing.check()  # what was judged in full was paid for, and is kept
        return given

    try:
        with progress(total, quiet=options.quiet) as step:
            return await score_units(
                inputs,
                journal,
                scorer,
                at_once=options.concurrency or AT_ONCE,
                step=step,
                by_model=backing.model is not None,
                apart=backing.exact,
                on_stop=_say_stopping,
            )
    finally:
        await reward.aclose()


def _say_stopping() -> None:
    print("\nstopping, waiting for calls in flight…", file=sys.stderr, flush=True)


class _Finish:
    """The end of a run in which every response has an outcome: output, page, summary, exit code."""

    def __init__(
        self,
        options: ScoreOptions,
        inputs: Inputs,
        journal: Journal,
        scored: Scored,
        reward: RubricReward,
        backing: Backing,
    ) -> None:
        self.options = options
        self.inputs = inputs
        self.journal = journal
        self.scored = scored
        self.backing = backing
        self.channels = reward.channels
        self.settler = Settler(self._rewards, reward.aggregation, reward.channels)

    def run(self, began: float) -> int:
        tally = Tally()
        write_records(self.options.out, self._records(tally))
        if self.options.page is not None:
            self._write_page(self.options.page, tally)
        kept = self._close_journal()
        for line in self.backing.warnings():
            print(f"warning: {line}", file=sys.stderr)
        print(table([*tally.lines(time.monotonic() - began), *self.backing.lines()]))
        print(f"\nwritten: {self.options.out}" + (f", {self.options.page}" if self.options.page else ""))
        missing = tally.rows - tally.scored
        if missing:
            print(f"{missing} of {counted(tally.rows, 'response')} could not be scored", file=sys.stderr)
            for line in tally.reasons():
                print(f"  {line}", file=sys.stderr)
        if kept:
            print(
                f"run the same command again to try {kept} of them again (from {self.journal.path})",
                file=sys.stderr,
            )
        return 1 if missing else 0

    def _rewards(self) -> Iterator[tuple[Unit, Reward]]:
        for unit, record in zip(self.inputs, self.journal.read_many(self.scored.places), strict=True):
            yield unit, parse_reward(record)

    def _settled(self) -> Iterator[tuple[Unit, Reward]]:
        for unit, reward in self._rewards():
            settled = self.settler.settle(unit, reward)
            names = dict.fromkeys(self.channels)
            yield unit, replace(settled, channels={**names, **settled.channels})

    def _records(self, tally: Tally) -> Iterator[Mapping[str, object]]:
        for unit, reward in self._settled():
            tally.add(reward, unit.line)
            yield reward_record(unit.rollout, unit.line, reward)

    def _close_journal(self) -> int:
        """Remove the journal, unless it is of further use. Returns the number of rows worth another try."""
        again = self.scored.to_retry
        beyond = self.journal.untaken if self.options.limit is not None else 0
        if beyond:
            note = f"{beyond} responses beyond --limit stay in {self.journal.path}, for a run without it"
            print(note, file=sys.stderr)
        elif not again:
            self.journal.discard()
        return again

    def _write_page(self, path: Path, tally: Tally) -> None:
        rows = (
            PageRow(
                unit.rollout.id,
                as_text(unit.rollout.prompt),
                as_text(unit.rollout.response),
                unit.rubric,
                reward,
                unit.gold,
            )
            for unit, reward in islice(self._settled(), self.options.page_rows)
        )
        write_page(
            path,
            rows,
            title=f"{self.options.data.name}, scored by {self.backing.name}",
            figures=[Figure(label.strip(), value) for label, value in tally.lines()],
            left_out=max(0, tally.rows - self.options.page_rows),
        )
