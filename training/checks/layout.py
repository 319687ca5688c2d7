"""How the pieces of a response are laid out: paragraphs, lists, headings, a table, JSON; parts of letters; case."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["LAYOUTS", "Frame", "Piece", "render"]

LAYOUTS = {
    "paragraphs": 0.36,
    "single": 0.16,
    "bullets": 0.14,
    "numbered": 0.11,
    "headings": 0.09,
    "table": 0.06,
    "json": 0.05,
    "broken_json": 0.03,
}
"""Layouts and how often they are drawn."""

_HEADINGS = {
    "en": ("Overview", "Details", "Main points", "Background", "More", "The essentials", "In detail", "Notes"),
    "de": ("Überblick", "Einzelheiten", "Das Wesentliche", "Weiteres"),
    "fr": ("Aperçu", "Détails", "Points principaux", "Autres points"),
    "es": ("Resumen", "Detalles", "Puntos principales", "Otros puntos"),
    "it": ("Panoramica", "Dettagli", "Punti principali", "Altro"),
    "pt": ("Visão geral", "Detalhes", "Pontos principais", "Outros pontos"),
    "nl": ("Overzicht", "Details", "Hoofdpunten", "Verder"),
}
_COLUMNS = {
    "en": (("Item", "Note"), ("Point", "Detail"), ("Part", "Content")),
    "de": (("Punkt", "Inhalt"),),
    "fr": (("Point", "Contenu"),),
    "es": (("Punto", "Contenido"),),
}
_KEYS = (("points",), ("answer",), ("items",), ("notes",), ("content",))


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence of a response and where it comes from.

    Attributes:
        text: the sentence, or a block of its own where it has several lines.
        origin: `point`, `miss`, `aside`, `trait`, `near`, `form`, `foreign`, `cut` or `repeat`.
        key: id of the point, or name of the kind.
    """

    text: str
    origin: str
    key: str = ""

    @property
    def block(self) -> bool:
        """Whether it stands apart from the running text."""
        return self.text.startswith("```")


@dataclass(slots=True)
class Frame:
    """The pieces of a response by place, and the parts around them.

    Attributes:
        opening, body, closing: pieces in order.
        head: lines above the text: a subject line, a title, a salutation.
        foot: what stands below it: a sign-off, a postscript.
    """

    opening: list[Piece] = field(default_factory=list[Piece])
    body: list[Piece] = field(default_factory=list[Piece])
    closing: list[Piece] = field(default_factory=list[Piece])
    head: list[str] = field(default_factory=list[str])
    foot: list[str] = field(default_factory=list[str])

    @property
    def pieces(self) -> list[Piece]:
        """All pieces in the order of the text."""
        return [*self.opening, *self.body, *self.closing]


def render(frame: Frame, layout: str, language: str, rng: random.Random) -> str:
    """The text of a response."""
    if layout in ("json", "broken_json"):
        return _json(frame, rng, broken=layout == "broken_json")
    spaced = language not in ("zh", "ja")
    blocks = _blocks(frame, layout, language, rng, " " if spaced else "")
    return "\n\n".join([*frame.head, *blocks, *frame.foot])


def _blocks(frame: Frame, layout: str, language: str, rng: random.Random, gap: str) -> list[str]:
    inline = [piece.text for piece in frame.body if not piece.block]
    apart = [piece.text for piece in frame.body if piece.block]
    opening = [piece.text for piece in frame.opening]
    closing = [piece.text for piece in frame.closing]
    if layout == "single":
        return [gap.join([*opening, *inline, *closing]), *apart]
    if layout == "paragraphs":
        groups = [gap.join(group) for group in _split([*opening, *inline, *closing], rng)]
        place = rng.randint(1, len(groups))
        return [*groups[:place], *apart, *groups[place:]]
    if layout == "headings":
        groups = _split(inline, rng, least=2)
        names = rng.sample(_HEADINGS.get(language, _HEADINGS["en"]), len(groups))
        middle = [f"{'#' * 2} {name}\n\n{gap.join(group)}" for name, group in zip(names, groups, strict=True)]
    elif layout == "table":
        columns = rng.choice(_COLUMNS.get(language, _COLUMNS["en"]))
        rows = [f"| {chr(65 + number)} | {text} |" for number, text in enumerate(inline)]
        middle = ["\n".join([f"| {columns[0]} | {columns[1]} |", "| --- | --- |", *rows])]
    elif layout == "numbered":
        middle = ["\n".join(f"{number}. {text}" for number, text in enumerate(inline, 1))]
    else:
        mark = rng.choice(("-", "-", "*", "•"))
        middle = ["\n".join(f"{mark} {text}" for text in inline)]
    return [*([gap.join(opening)] if opening else []), *middle, *apart, *([gap.join(closing)] if closing else [])]


def _split(texts: Sequence[str], rng: random.Random, least: int = 1) -> list[list[str]]:
    """Two to four groups of neighbours, fewer where there are few texts."""
    count = min(len(texts), rng.choice((2, 2, 3, 3, 4)), 4)
    count = max(1, count, min(least, len(texts)))
    cuts = sorted(rng.sample(range(1, len(texts)), count - 1)) if len(texts) > 1 else []
    return [list(texts[start:end]) for start, end in zip([0, *cuts], [*cuts, len(texts)], strict=True)]


def _json(frame: Frame, rng: random.Random, *, broken: bool) -> str:
    document: dict[str, object] = {}
    if frame.opening:
        document["start"] = " ".join(piece.text for piece in frame.opening)
    document[rng.choice(_KEYS)[0]] = [piece.text for piece in frame.body]
    if frame.closing:
        document["end"] = " ".join(piece.text for piece in frame.closing)
    text = json.dumps(document, ensure_ascii=False, indent=rng.choice((None, 2)))
    if not broken:
        return text
    if rng.random() < 0.5:
        return text[:-1].rstrip()
    return re.sub(r'^\{(\s*)"(\w+)":', r"{\1\2:", text)
