"""Marks of form that are put on the pieces of a draft, and the traits that they make doubtful."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace

from rubricate.training.checks.banks import Banks
from rubricate.training.checks.layout import Piece
from rubricate.training.checks.plan import Plan, insert

__all__ = ["mark_pieces", "mute_marks"]

_EMOJI = ("🙂", "👍", "🌟", "✅", "🎉", "📌", "🌱", "☕")
_MUTED_BY_MARK = {
    "exclamation": ("enthusiastic", "urgency", "clickbait", "rude", "encouraging"),
    "emoji": ("slang", "enthusiastic", "humour", "formal", "encouraging", "informal", "friendly"),
    "upper_case": ("rude", "urgency", "clickbait", "enthusiastic", "formal", "threatening"),
    "lower_case": ("formal", "slang", "names_person"),
    "salutation": ("by_name", "formal", "names_person", "greeting", "second_person"),
    "sign_off": ("by_name", "formal", "names_person", "farewell", "good_wishes"),
    "title": ("summary", "clickbait", "second_person"),
    "mixed": ("jargon",),
    "headings": ("summary",),
    "repeated": ("repetition",),
}


def mark_pieces(plan: Plan, marks: set[str], banks: Banks, rng: random.Random) -> None:
    """Change some pieces of the body as the marks say: repeated, exclaimed, with an emoji, bold, cut off."""
    body = plan.frame.body
    json = plan.layout in ("json", "broken_json")
    if "repeated" in marks:
        again = rng.choice([piece for piece in body if not piece.block])
        body.insert(rng.randint(body.index(again) + 1, len(body)), replace(again, origin="repeat"))
        plan.marks.add("repeated")
    if "mixed" in marks or "mixed_language" in marks:
        _add_foreign(plan, banks, rng)
    changes: list[tuple[str, Callable[[str, random.Random], str]]] = [
        ("exclamation", _exclaim),
        ("emoji", _add_emoji),
        *((("bold", _embolden), ("italic", _italicise)) if not json else ()),
    ]
    for name, change in changes:
        if name in marks:
            index = rng.choice([number for number, piece in enumerate(body) if not piece.block])
            body[index] = replace(body[index], text=change(body[index].text, rng))
            # The same sentence in another dress is no longer a verbatim repetition.
            if any(piece.origin == "repeat" and piece.key == body[index].key for piece in body):
                plan.muted.add("repeated_sentence")
    if "cut" in marks and not json and plan.layout != "table":
        _cut(plan, rng)


def _add_foreign(plan: Plan, banks: Banks, rng: random.Random) -> None:
    others = [topic for topic in banks.topics if topic.language != plan.source.language and topic.asides]
    if not others:
        return
    other = rng.choice(others)
    # Asides say nothing that a request asks for; points of another topic might.
    for text in rng.sample(other.asides, min(len(other.asides), rng.choice((1, 2)))):
        insert(plan.frame.body, Piece(text, "foreign"), rng)
    plan.marks.add("mixed")


def _exclaim(text: str, rng: random.Random) -> str:
    return text[:-1] + "!" if text.endswith(".") else text


def _add_emoji(text: str, rng: random.Random) -> str:
    return f"{text} {rng.choice(_EMOJI)}"


def _wrap(text: str, mark: str, rng: random.Random) -> str:
    spots = [match.span() for match in re.finditer(r"\b[^\W\d_]{5,}\b", text)]
    if not spots or "*" in text:
        return text
    start, end = rng.choice(spots)
    return f"{text[:start]}{mark}{text[start:end]}{mark}{text[end:]}"


def _embolden(text: str, rng: random.Random) -> str:
    return _wrap(text, "**", rng)


def _italicise(text: str, rng: random.Random) -> str:
    return _wrap(text, "*", rng)


def _cut(plan: Plan, rng: random.Random) -> None:
    """End in the first half of a sentence that is not in yet; what it would have said is unknown then."""
    used = set(plan.stated) | plan.missed
    rest = [point for point in plan.source.points if point.id not in used]
    if not rest:
        return
    point = rng.choice(rest)
    words = rng.choice(point.says).split(" ")
    if len(words) < 6:
        return
    half = words[: rng.randint(3, max(3, len(words) * 2 // 3))]
    plan.frame.closing.clear()
    plan.frame.foot.clear()
    for kind in [kind for kind in plan.traits if not any(p.key == kind for p in plan.frame.pieces)]:
        del plan.traits[kind]
    plan.frame.body = [piece for piece in plan.frame.body if not piece.block]
    plan.traits.pop("code_block", None)
    plan.frame.body.append(Piece(" ".join(half).rstrip(",;:"), "cut", point.id))
    plan.unknown.add(point.id)
    plan.marks.add("cut")


def mute_marks(plan: Plan, marks: set[str]) -> None:
    """Note the kinds that the marks make doubtful."""
    done = {*marks, *plan.marks, plan.layout}
    for name, kinds in _MUTED_BY_MARK.items():
        if name in done:
            plan.muted.update(kinds)
