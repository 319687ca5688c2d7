"""Line plots as SVG text, without a plotting package: axes with round ticks, bands, points, a legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Curve", "Point", "line_plot"]

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # told apart by colour-blind readers (Okabe and Ito)
_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 20, 20, 56


@dataclass(frozen=True, slots=True)
class Point:
    """A point with the interval of its y, and a few words beside it."""

    x: float
    y: float
    low: float
    high: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points that belong together, in the order in which they are joined."""

    name: str
    points: tuple[Point, ...]


def line_plot(curves: Sequence[Curve], *, x: str, y: str) -> str:
    """The curves with bands between the ends of their intervals, as the text of an SVG file.

    Args:
        x, y: what the axes show.
    """
    points = [point for curve in curves for point in curve.points]
    xs = _ticks(min(0.0, *(p.x for p in points)), max(p.x for p in points))
    ys = _ticks(min(p.low for p in points), max(p.high for p in points))

    def across(value: float) -> float:
        return _LEFT + (value - xs[0]) / (xs[-1] - xs[0]) * (_WIDTH - _LEFT - _RIGHT)

    def up(value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - ys[0]) / (ys[-1] - ys[0]) * (_HEIGHT - _TOP - _BOTTOM)

    body = _axes(xs, ys, across, up, x, y)
    for number, curve in enumerate(curves):
        body += _curve(curve, _COLOURS[number % len(_COLOURS)], across, up, above=number % 2 == 0)
    for number, curve in enumerate(curves):
        line = _HEIGHT - _BOTTOM - 16 - 20 * (len(curves) - 1 - number)
        body.append(
            f'<circle cx="{_WIDTH - 290}" cy="{line - 4}" r="5" fill="{_COLOURS[number % len(_COLOURS)]}"/>'
        )
        body.append(f'<text x="{_WIDTH - 278}" y="{line}">{escape(curve.name)}</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
            f'font-size="13" fill="#222" role="img" aria-label="{escape(y)} against {escape(x)}">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
            *body,
            "</svg>\n",
        ]
    )


def _axes(
    xs: Sequence[float],
    ys: Sequence[float],
    across: Callable[[float], float],
    up: Callable[[float], float],
    x: str,
    y: str,
) -> list[str]:
    body: list[str] = []
    for value in xs:
        at = across(value)
        body.append(f'<path d="M{at:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#e5e5e5"/>')
        body.append(f'<text x="{at:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{value:g}</text>')
    for value in ys:
        at = up(value)
        body.append(f'<path d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}" stroke="#e5e5e5"/>')
        body.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>')
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    body.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 12}" text-anchor="middle">{escape(x)}</text>'
    )
    body.append(f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">{escape(y)}</text>')
    return body


def _curve(
    curve: Curve, colour: str, across: Callable[[float], float], up: Callable[[float], float], *, above: bool
) -> list[str]:
    points = curve.points
    line = " ".join(f"{across(p.x):.1f},{up(p.y):.1f}" for p in points)
    edge = [*((p.x, p.high) for p in points), *((p.x, p.low) for p in reversed(points))]
    band = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in edge)
    body = [
        f'<polygon points="{band}" fill="{colour}" fill-opacity="0.12"/>',
        f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>',
    ]
    if len(points) == 1:
        (p,) = points
        body.append(f'<path d="M{across(p.x):.1f} {up(p.low):.1f}V{up(p.high):.1f}" stroke="{colour}"/>')
    steep = max(across(p.x) for p in points) - min(across(p.x) for p in points) < 40
    taken = (-math.inf, -math.inf)
    for p in points:
        x, y = across(p.x), up(p.y)
        body.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        if p.label and (abs(x - taken[0]) > 26 or abs(y - taken[1]) > 14):  # or labels would run into one another
            taken = (x, y)
            place = (x - 8, y + 4, "end") if steep else (x, y + (-10 if above else 20), "middle")
            body.append(
                f'<text x="{place[0]:.1f}" y="{place[1]:.1f}" text-anchor="{place[2]}" font-size="11" '
                f'fill="{colour}">{escape(p.label)}</text>'
            )
    return body


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from below `low` to above `high`, four to ten of them."""
    span = max(high - low, 1e-9)
    base = 10.0 ** math.floor(math.log10(span))
    step = next(base * part for part in (0.1, 0.2, 0.5, 1.0, 2.0) if span / (base * part) <= 9)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * number, 10) for number in range(first, last + 1)]
