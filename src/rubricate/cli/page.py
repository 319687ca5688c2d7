"""A self-contained HTML page: responses by criteria, coloured by verdict, with reasons on click.

Nothing is loaded from elsewhere, and a content security policy forbids it. Texts are escaped by the template, and
what the script needs lies in a JSON block in which no tag can be opened or closed.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from rubricate.data.io import write_text
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.types import Failure, Reward, RewardStatus, Status, Verdict

__all__ = ["Figure", "PageRow", "render_page", "write_page"]

EXCERPT = 110


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the page's head, as text, with a remark in small print."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class PageRow:
    """A scored response.

    Attributes:
        name: what the row is called; prompt and response as text.
        gold: gold labels by criterion id, where there are any.
        gold_value: reward that the gold labels would give.
        language: language tag of the texts, such as `ja`; browsers choose fonts by it.
    """

    name: str
    prompt: str
    response: str
    rubric: Rubric
    reward: Reward
    gold: Mapping[str, bool] | None = None
    gold_value: float | None = None
    language: str = ""


@dataclass(frozen=True, slots=True)
class _Column:
    id: str
    text: str
    penalty: bool
    veto: bool
    weight: str
    by: str

    @property
    def about(self) -> str:
        kind = "penalty" if self.penalty else "reward"
        return f"{kind}, weight {self.weight}{', veto' if self.veto else ''}, decided {self.by}"


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    style: str
    hint: str


@dataclass(slots=True)
class _Row:
    index: int
    name: str
    excerpt: str
    cells: list[_Cell]
    value: str
    style: str
    badge: str
    bounds: str
    gold_value: str
    language: str


@dataclass(slots=True)
class _Section:
    title: str
    prompt: str
    language: str
    columns: list[_Column]
    rows: list[_Row] = field(default_factory=list[_Row])
    has_gold_value: bool = False


def render_page(
    rows: Iterable[PageRow],
    *,
    title: str,
    figures: Sequence[Figure] = (),
    notes: Sequence[str] = (),
    footer: str = "Made by rubricate.",
    left_out: int = 0,
) -> str:
    """The page as HTML. Rows with the same prompt, rubric and kind of verdict share a table, by first appearance.

    Args:
        rows: the scored responses; a few thousand at most, a browser has to show them.
        title, figures, notes, footer: text of head and foot.
        left_out: number of responses that are not among `rows`, said in the foot.
    """
    from jinja2 import Environment, StrictUndefined

    source = files("rubricate.prompts").joinpath("page.html.jinja2").read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined, lstrip_blocks=True).from_string(source)
    script = "".join(template.blocks["script"](template.new_context({})))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    builder = _Builder()
    for row in rows:
        builder.add(row)
    return template.render(
        title=title,
        figures=figures,
        notes=notes,
        footer=footer,
        left_out=left_out,
        sections=builder.finish(),
        has_gold=builder.has_gold,
        data=_script_safe(builder.data),
        script_hash=f"sha256-{digest}",
    )


def write_page(path: Path, rows: Iterable[PageRow], *, title: str, **options: Any) -> None:
    """Render the page (options as for `render_page`) and put it at `path` in one step."""
    write_text(path, render_page(rows, title=title, **options))


def _script_safe(data: object) -> Any:
    """JSON as markup for a script block: no character in it can end the block or open a tag."""
    from markupsafe import Markup

    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text.encode("utf-8", "replace").decode("utf-8"))


class _Builder:
    """Collects tables for the template and data for the script."""

    def __init__(self) -> None:
        self.data: dict[str, list[Any]] = {"rows": [], "columns": [], "prompts": []}
        self.has_gold = False
        self._sections: dict[tuple[str, bool, str], tuple[int, _Section]] = {}
        self._columns: dict[tuple[str, bool], tuple[int, list[_Column]]] = {}
        self._prompts: dict[str, int] = {}

    def add(self, row: PageRow) -> None:
        judged = row.rubric.fingerprint, row.reward.overall is not None
        key = (*judged, row.prompt)
        if judged not in self._columns:
            columns = _columns(row)
            self._columns[judged] = len(self.data["columns"]), columns
            self.data["columns"].append([{"id": c.id, "text": c.text, "about": c.about} for c in columns])
        place, columns = self._columns[judged]
        if key not in self._sections:
            self._sections[key] = place, _Section(row.rubric.id, row.prompt, row.language, columns)
        _, section = self._sections[key]
        section.has_gold_value |= row.gold_value is not None
        self.has_gold |= row.gold is not None
        index = len(self.data["rows"])
        verdicts = _aligned(row)
        section.rows.append(_static_row(index, row, verdicts))
        self.data["rows"].append(
            {
                "title": row.name,
                "columns": place,
                "prompt": self._prompt(row.prompt),
                "response": row.response,
                "lang": row.language,
                "reward": _reward_line(row.reward),
                "more": _reward_details(row),
                "verdicts": [_details(verdict, _gold(row, verdict)) for verdict in verdicts],
            }
        )

    def finish(self) -> list[_Section]:
        tables = Counter(place for place, _ in self._sections.values())
        for place, section in self._sections.values():
            if not section.title or tables[place] > 1:  # a rubric for many prompts does not tell them apart
                section.title = _excerpt(section.prompt) or "(empty prompt)"
        return [section for _, section in self._sections.values()]

    def _prompt(self, text: str) -> int:
        if text not in self._prompts:
            self._prompts[text] = len(self.data["prompts"])
            self.data["prompts"].append(text)
        return self._prompts[text]


def _columns(row: PageRow) -> list[_Column]:
    columns = [_column(criterion) for criterion in row.rubric.criteria]
    if row.reward.overall is None:
        return columns
    overall = _Column("overall", "The whole rubric in one rating.", False, False, "–", "by the judge")
    return [overall, *(columns if row.reward.verdicts else [])]


def _column(criterion: Criterion) -> _Column:
    return _Column(
        id=criterion.id,
        text=criterion.text,
        penalty=criterion.polarity is Polarity.PENALTY,
        veto=criterion.veto,
        weight=f"{criterion.weight:g}",
        by="by code" if criterion.verifier is not None else "by the judge",
    )


def _aligned(row: PageRow) -> list[tuple[Verdict | None, bool]]:
    """Verdicts in the order of the columns, None where there is none, each with whether meeting it costs."""
    given = {verdict.criterion_id: verdict for verdict in row.reward.verdicts}
    aligned: list[tuple[Verdict | None, bool]] = [
        (given.get(criterion.id), criterion.polarity is Polarity.PENALTY) for criterion in row.rubric.criteria
    ]
    if row.reward.overall is None:
        return aligned
    return [(row.reward.overall, False), *(aligned if row.reward.verdicts else [])]


def _gold(row: PageRow, verdict: tuple[Verdict | None, bool]) -> bool | None:
    return None if verdict[0] is None or row.gold is None else row.gold.get(verdict[0].criterion_id)


def _static_row(index: int, row: PageRow, verdicts: Sequence[tuple[Verdict | None, bool]]) -> _Row:
    reward = row.reward
    return _Row(
        index=index,
        name=row.name,
        excerpt=_excerpt(row.response) or "(empty)",
        cells=[_cell(verdict, penalty, _gold(row, (verdict, penalty))) for verdict, penalty in verdicts],
        value="unscored" if reward.value is None else f"{reward.value:.2f}",
        style="unscored" if reward.value is None else "",
        badge=reward.status.value if reward.status in (RewardStatus.VETOED, RewardStatus.FLOORED) else "",
        bounds=_bounds(reward),
        gold_value="" if row.gold_value is None else f"{row.gold_value:.2f}",
        language=row.language,
    )


def _cell(verdict: Verdict | None, penalty: bool, gold: bool | None) -> _Cell:
    if verdict is None:
        return _Cell("–", "none", "not judged on its own")
    if verdict.status is Status.NOT_APPLICABLE:
        return _Cell("n/a", "na", "does not apply")
    if verdict.score is None:
        kind = verdict.failure.kind.value if verdict.failure else "failed"
        return _Cell("failed", "failed", f"could not be judged: {kind}")
    favour = 1.0 - verdict.score if penalty else verdict.score
    style = f"q{round(favour * 10)}"
    hint = f"met: {verdict.score:.2f}"
    if gold is not None:
        hint += f"; gold: {'met' if gold else 'not met'}"
        style += " differs" if (verdict.score >= 0.5) != gold else ""
    return _Cell(f"{verdict.score:.2f}".replace("1.00", "1").replace("0.00", "0"), style, hint)


def _details(verdict: tuple[Verdict | None, bool], gold: bool | None) -> dict[str, Any]:
    given = verdict[0]
    if given is None:
        return {"says": "not judged on its own", "reason": "", "more": []}
    says = {
        Status.OK: f"score {given.score:.3f}" if given.score not in (0.0, 1.0, None) else "",
        Status.NOT_APPLICABLE: "does not apply",
        Status.FAILED: "could not be judged",
    }[given.status] or ("met" if given.score else "not met")
    more: list[str] = []
    if given.probability is not None:
        more.append(f"Probability that it is met: {given.probability:.3f}")
    if given.raw is not None and given.raw != says:
        more.append(f"As the judge gave it: {given.raw}")
    if given.failure is not None:
        more.append(_failure_line(given.failure))
    if gold is not None:
        differs = given.score is not None and (given.score >= 0.5) != gold
        more.append(f"Gold label: {'met' if gold else 'not met'}{' (differs)' if differs else ''}")
    if given.judge:
        more.append(f"Judge: {given.judge}")
    return {"says": says, "reason": given.reason, "more": more}


def _failure_line(failure: Failure) -> str:
    return f"Failure: {failure.kind.value} ({failure.cause.value}). {failure.message}".strip()


def _bounds(reward: Reward) -> str:
    if reward.bounds is None or reward.bounds[0] == reward.bounds[1]:
        return ""
    return f"[{reward.bounds[0]:.2f}, {reward.bounds[1]:.2f}]"


def _reward_line(reward: Reward) -> str:
    value = "none" if reward.value is None else f"{reward.value:.4f}"
    return f"Reward: {value} ({reward.status.value}), coverage {reward.coverage:.0%}"


def _reward_details(row: PageRow) -> list[str]:
    reward = row.reward
    lines: list[str] = []
    if bounds := _bounds(reward):
        lines.append(f"Bounds over the unknown verdicts: {bounds}")
    if reward.vetoed_by:
        lines.append(f"Vetoed by: {', '.join(reward.vetoed_by)}")
    if reward.failure is not None:
        lines.append(_failure_line(reward.failure))
    if row.gold_value is not None:
        lines.append(f"Reward by the gold labels: {row.gold_value:.4f}")
    lines += [f"Channel {name}: {value:.3f}" for name, value in reward.channels.items() if value is not None]
    return lines


def _excerpt(text: str) -> str:
    flat = " ".join(text[: 4 * EXCERPT].split())
    return flat if len(flat) <= EXCERPT else flat[: EXCERPT - 1].rstrip() + "…"
