"""The card of a data set of rubrics: what made it, what is in it, what was left out and why; with small plots."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rubricate.data.hygiene_columns import Column
from rubricate.narrow import as_object
from rubricate.rubrics.pipeline.recipe import GenerateRecipe
from rubricate.rubrics.pipeline.report import Report

__all__ = ["Card", "bars", "render_card"]

_WIDTH, _HEIGHT, _EDGE, _MOST = 360, 120, 16, 24
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Card:
    """What a card is made of.

    Attributes:
        recipe: what was done.
        report: what came of it.
        columns: what the columns hold.
        steps: identity of each step: its name and fingerprint.
        before, after: reports of hygiene.
        source: name of the input.
        version: of this package.
        gathered: what came of each step that gathers.
    """

    recipe: GenerateRecipe
    report: Report
    columns: Sequence[Column]
    steps: Sequence[Mapping[str, object]] = ()
    before: Mapping[str, object] = field(default_factory=dict[str, object])
    after: Mapping[str, object] = field(default_factory=dict[str, object])
    source: str = ""
    version: str = ""
    gathered: Sequence[Mapping[str, object]] = ()

    def to_dict(self) -> dict[str, object]:
        """All figures, JSON-ready."""
        return {
            "version": self.version,
            "source": self.source,
            "recipe": self.recipe.resolved(),
            "steps": list(self.steps),
            **self.report.to_dict(),
            "gathered": list(self.gathered),
            "hygiene_before": dict(self.before),
            "hygiene_after": dict(self.after),
            "columns": [column.to_dict() | {"values": None} for column in self.columns],
        }


def render_card(card: Card) -> str:
    """The card as Markdown, with the header that hubs read, and plots as inline SVG beside their figures."""
    report = card.report
    title = card.recipe.output.title or "Rubrics"
    parts = [_header(card), f"# {title}\n"]
    if card.recipe.about:
        parts.append(f"{card.recipe.about}\n")
    parts.append(
        f"{report.written:,} of {report.rows:,} rows of `{card.source}` have a rubric, with "
        f"{sum(size * count for size, count in report.criteria.items()):,} criteria in all. "
        f"Written by rubricate {card.version}.\n"
    )
    if report.again:
        parts.append(f"**Not complete**: {report.again:,} rows were not reached, or failed for outside reasons.\n")
    parts += [
        _made(card),
        _gathered(card),
        _counts(report),
        _left_out(report),
        _filters(report),
        _hygiene(card),
        _plots(report),
    ]
    parts.append(_columns(card))
    return "\n".join(part for part in parts if part)


def _header(card: Card) -> str:
    """YAML for hubs: where each part's files are, licence and size."""
    ending = {"jsonl": "jsonl", "parquet": "parquet", "datasets": ""}[card.recipe.output.format]
    licences = as_object(card.after.get("licences") or card.before.get("licences")) or {}
    known = [name for name in licences if name != "unknown"]
    licence = card.recipe.output.licence or (known[0] if len(known) == 1 and len(licences) == 1 else "")
    lines = ["---"]
    if licence:
        lines.append(f"license: {json.dumps(licence)}")
    lines += ["tags:", "- rubrics", "- reward-modelling", f"size_categories:\n- {_size(card.report.written)}"]
    if ending and card.report.splits:
        lines += ["configs:", "- config_name: default", "  data_files:"]
        for part in card.report.splits:
            lines += [f"  - split: {json.dumps(part)}", f"    path: {json.dumps(f'data/{part}-*.{ending}')}"]
    return "\n".join([*lines, "---\n"])


def _size(rows: int) -> str:
    for bound, name in ((1000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")):
        if rows < bound:
            return name
    return "n>1M"


def _made(card: Card) -> str:
    rows = [
        (str(place + 1), step.label, str(dict(step.options) or ""), _fingerprint(card, place))
        for place, step in enumerate(card.recipe.steps)
    ]
    text = "## How it was made\n\n" + _table(("step", "what", "options", "fingerprint"), rows)
    makers = [(*name.split(" | "), f"{count:,}") for name, count in card.report.makers.most_common(_SHOWN)]
    if makers:
        text += "\n" + _table(("method", "model", "prompt fingerprint", "criteria"), makers)
    used = card.report.usage
    if used.calls:
        cost = f", cost {used.cost:.4f}" if used.cost else ""
        text += (
            f"\n{used.calls:,} model calls, {used.prompt_tokens:,} prompt tokens and "
            f"{used.completion_tokens:,} completion tokens{cost}.\n"
        )
    return text


def _gathered(card: Card) -> str:
    if not card.gathered:
        return ""
    rows = [
        (*(str(made.get(name)) for name in ("label", "rows", "unfit", "criteria")), str(made.get("failure") or ""))
        for made in card.gathered
    ]
    return "## Rubrics of all rows\n\n" + _table(("method", "rows", "rows unfit", "criteria", "failure"), rows)


def _fingerprint(card: Card, place: int) -> str:
    rows = [index for index, _ in (*card.recipe.row_steps, *card.recipe.gather_steps)]
    if place not in rows or len(card.steps) <= rows.index(place):
        return ""
    return str(card.steps[rows.index(place)].get("fingerprint", ""))


def _counts(report: Report) -> str:
    if not report.written:
        return ""
    rows = [(name, f"{count:,}") for name, count in sorted(report.splits.items())]
    text = "## What is in it\n\n" + _table(("part", "rows"), rows)
    for what, counter in (
        ("kind", report.kinds),
        ("polarity", report.polarities),
        ("importance", report.importances),
    ):
        total = sum(counter.values())
        shares = [(name, f"{count:,}", f"{100 * count / total:.1f}%") for name, count in counter.most_common()]
        text += "\n" + _table((what, "criteria", "share"), shares)
    return text


def _left_out(report: Report) -> str:
    if not report.lost:
        return ""
    rows = [(name, f"{count:,}") for name, count in report.lost.most_common()]
    why = [(name, f"{count:,}") for name, count in report.reasons.most_common(_SHOWN)]
    return (
        "## Rows that were left out\n\n"
        + _table(("step and kind", "rows"), rows)
        + "\n"
        + _table(("reason", "rows"), why)
    )


def _filters(report: Report) -> str:
    text = ""
    for title, counter in (
        ("Criteria that filters dropped", report.dropped),
        ("Criteria that filters flagged", report.flagged),
        ("What was asked again, dropped or changed on the way", report.notes),
    ):
        if counter:
            rows = [(name, f"{count:,}") for name, count in counter.most_common(_SHOWN)]
            text += f"## {title}\n\n" + _table(("what", "times"), rows) + "\n"
    if report.figures:
        known = [
            (name, f"{total / count:.4g}", f"{count:,}") for name, (total, count) in sorted(report.figures.items())
        ]
        text += "## Figures of the filters\n\n" + _table(("figure", "mean", "rows"), known)
    return text


def _hygiene(card: Card) -> str:
    text = ""
    for when, found in (("before generation", card.before), ("of what was left", card.after)):
        if found:
            rows = [(name, str(found.get(name))) for name in ("rows", "kept", "removed", "benchmarks", "licences")]
            text += f"## Hygiene {when}\n\n" + _table(("what", "found"), rows) + "\n"
    return text


def _plots(report: Report) -> str:
    parts = [
        ("Criteria of a rubric", report.criteria),
        ("Words of a criterion", report.words),
        ("Words of a prompt", report.prompt_words),
    ]
    text = "## Distributions\n" if report.written else ""
    for title, counter in parts:
        if counter:
            text += f"\n{title}: {_summary(counter)}\n\n{bars(counter, title)}\n"
    return text


def _summary(counter: Counter[int]) -> str:
    """Least, quartiles and greatest."""
    total = sum(counter.values())
    ordered = sorted(counter.items())
    found: list[int] = []
    for share in (0.25, 0.5, 0.75):
        seen = 0
        for value, count in ordered:
            seen += count
            if seen >= share * total:
                found.append(value)
                break
    low, middle, high = found
    return f"{ordered[0][0]} to {ordered[-1][0]}, median {middle}, quartiles {low} and {high}"


def bars(counter: Counter[int], title: str) -> str:
    """A histogram as SVG: a bar a value, or a range of values where there are many."""
    low, high = min(counter), max(counter)
    width = max(1, -(-(high - low + 1) // _MOST))
    binned = Counter[int]()
    for value, count in counter.items():
        binned[(value - low) // width] += count
    number = (high - low) // width + 1
    top = max(binned.values())
    step = _WIDTH / number
    shapes: list[str] = []
    for place in range(number):
        count = binned[place]
        tall = (_HEIGHT - 2 * _EDGE) * count / top
        first = low + place * width
        name = str(first) if width == 1 else f"{first} to {first + width - 1}"
        shapes.append(
            f'<rect x="{place * step + 1:.1f}" y="{_HEIGHT - _EDGE - tall:.1f}" width="{max(step - 2, 1):.1f}" '
            f'height="{tall:.1f}" fill="#4878a8"><title>{name}: {count}</title></rect>'
        )
    label = 'font-size="11" font-family="sans-serif" fill="#666"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(title)}">'
        f"{''.join(shapes)}"
        f'<text x="1" y="{_HEIGHT - 3}" {label}>{low}</text>'
        f'<text x="{_WIDTH - 1}" y="{_HEIGHT - 3}" text-anchor="end" {label}>{high}</text>'
        f'<text x="1" y="11" {label}>{top:,}</text></svg>'
    )


def _columns(card: Card) -> str:
    rows = [
        (
            column.name,
            column.meaning or "as in the input",
            ", ".join(column.types) or "empty",
            f"{column.missing:,}",
        )
        for column in card.columns
    ]
    return "## Columns\n\n" + _table(("column", "what it holds", "types", "empty"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: str) -> str:
    return " ".join(value.split()).replace("|", "\\|").replace("<", "&lt;")
