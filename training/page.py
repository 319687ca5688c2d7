"""The page of a training run: its curves and tables as one HTML file that needs no network and no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from rubricate.narrow import as_number, as_object
from rubricate.training.recipe import Recipe

__all__ = ["render_run"]

_WIDTH, _HEIGHT = 320.0, 160.0
_PANELS = (
    ("Loss", (("loss", "training"), ("eval_loss", "held out"))),
    ("Held-out AUC", (("eval_auc", "AUC"),)),
    ("Held-out accuracy", (("eval_accuracy", "accuracy"),)),
    ("Mass outside yes and no", (("eval_outside", "mass"),)),
    ("Learning rate", (("learning_rate", "rate"),)),
    ("Gradient norm", (("grad_norm", "norm"),)),
)


@dataclass(frozen=True, slots=True)
class _Dot:
    x: float
    y: float
    step: int
    text: str


@dataclass(frozen=True, slots=True)
class _Curve:
    name: str
    dots: list[_Dot]

    @property
    def points(self) -> str:
        return " ".join(f"{dot.x},{dot.y}" for dot in self.dots)


@dataclass(frozen=True, slots=True)
class _Tick:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    curves: list[_Curve]
    ticks: list[_Tick]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    cells: list[str]


@dataclass(frozen=True, slots=True)
class _Table:
    title: str
    columns: list[str]
    rows: list[_Row]


def render_run(recipe: Recipe, result: Mapping[str, object], lines: Sequence[Mapping[str, float]]) -> str:
    """The page as HTML.

    Args:
        recipe: of the run.
        result: as in `result.json`.
        lines: of `metrics.jsonl`.
    """
    from jinja2 import Environment, StrictUndefined

    from rubricate.data.yamltext import yaml_text

    source = files("rubricate.training").joinpath("run_page.html.jinja2").read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined, lstrip_blocks=True).from_string(source)
    seconds = as_number(result.get("seconds")) or 0.0
    notes = [
        f"{recipe.model.name}, objective {recipe.objective}: {result.get('steps')} steps in {seconds / 60:.1f} min."
    ]
    notes += ["The time limit ended it."] if result.get("stopped_by_time") else []
    notes += [f"Kept: step {result['best_step']}, the best on held-out rows."] if result.get("best_step") else []
    notes += [f"Calibration: {result['calibration']}."] if result.get("calibration") else []
    panels = [panel for title, curves in _PANELS if (panel := _panel(title, curves, lines)) is not None]
    return template.render(
        title=recipe.about or f"Fine-tuning of {recipe.model.name}",
        notes=notes,
        panels=panels,
        tables=_tables(result),
        recipe=yaml_text(recipe.resolved()),
    )


def _panel(title: str, curves: Sequence[tuple[str, str]], lines: Sequence[Mapping[str, float]]) -> _Panel | None:
    series = [(name, [(line["step"], line[key]) for line in lines if key in line]) for key, name in curves]
    series = [(name, points) for name, points in series if points]
    if not series:
        return None
    steps = [step for _, points in series for step, _ in points]
    values = [value for _, points in series for _, value in points]
    low, high = min(values), max(values)
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    first, last = min(steps), max(steps)

    def dot(step: float, value: float) -> _Dot:
        x = _WIDTH * (step - first) / ((last - first) or 1.0)
        y = _HEIGHT * (1.0 - (value - low) / (high - low))
        return _Dot(round(x, 1), round(y, 1), int(step), f"{value:.4g}")

    ticks = [
        _Tick(round(_HEIGHT * (1.0 - part), 1), f"{low + part * (high - low):.3g}") for part in (0.0, 0.5, 1.0)
    ]
    drawn = [_Curve(name, [dot(step, value) for step, value in points]) for name, points in series]
    return _Panel(title, drawn, ticks, int(first), int(last))


def _tables(result: Mapping[str, object]) -> list[_Table]:
    stages = [("before training", result.get("untrained")), ("after", result.get("trained"))]
    judge = as_object(result.get("judge")) or {}
    stages += [(f"judge, {name.replace('_', ' ')}", value) for name, value in judge.items()]
    families = list((as_object(result.get("families")) or {}).items())
    tables = [_table("Held-out rows", stages), _table("By family of criteria", families)]
    return [table for table in tables if table.rows]


def _table(title: str, rows: Sequence[tuple[str, object]]) -> _Table:
    known = [(name, as_object(value) or {}) for name, value in rows]
    known = [(name, value) for name, value in known if value]
    columns = list(dict.fromkeys(column for _, value in known for column in value))
    return _Table(title, columns, [_Row(name, [_cell(c, value.get(c)) for c in columns]) for name, value in known])


def _cell(column: str, value: object) -> str:
    number = as_number(value)
    return "" if number is None else f"{number:.0f}" if column == "count" else f"{number:.3f}"
