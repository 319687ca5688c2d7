"""Reading of scores for several responses out of one reply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rubricate.errors import ParseError
from rubricate.judges.parsing import cues
from rubricate.judges.parsing.agreed import agreed
from rubricate.judges.parsing.entries import Entry, Ids, Keys, entries_in
from rubricate.judges.parsing.fields import is_error
from rubricate.judges.parsing.labels import find_tags
from rubricate.judges.parsing.listing import entries_in_text
from rubricate.judges.parsing.marks import Mark, decide, unreadable
from rubricate.judges.parsing.numbers import Scale, numbers_in
from rubricate.judges.parsing.reading import Structure, read_reply
from rubricate.judges.parsing.text import mask_quotes
from rubricate.judges.parsing.vocabulary import Unreadable

__all__ = ["parse_scores"]

_ALIASES = ("score", "rating", "grade", "points", "mark", "value")
_NOUNS = (
    "response",
    "answer",
    "assistant",
    "option",
    "candidate",
    "model",
    "output",
    "reply",
    "text",
    "summary",
    "completion",
)
_LEADING_LABEL = re.compile(
    r"^\W{0,20}(?:(?:final|overall|the|my) )*(?:scores?|ratings?|grades?)\b[^:=\n\d]{0,40}[:=] ?", re.I
)


def parse_scores(
    reply: str,
    names: Sequence[str],
    low: float,
    high: float,
    *,
    integer: bool = False,
    key: str = "score",
    list_key: str = "scores",
    quoted: Sequence[str] = (),
) -> dict[str, float]:
    """One score for each of several responses, in the units of the scale.

    Reads JSON (an object from names to scores, a list of entries, a list of exactly as many numbers), a closing tag
    (`\\boxed{8, 6}`), labelled lines (`Response A: 8`), or a line that holds nothing but the numbers. Lists without
    names are taken in the order shown.

    Args:
        reply: the judge's visible reply.
        names: the responses' labels in the order shown. "Response A" and "A" mean the same response.
        low, high: ends of the scale, both included.
        integer: refuse scores that are not whole.
        key, list_key: the JSON keys of a score and of the list.
        quoted: texts that the judge was shown; longer passages copied from them do not count.

    Raises ParseError when not every response has exactly one plain score.
    """
    scale = Scale(low, high, integer)
    ids, keys = Ids(names, aliases=_aliases(names)), Keys(key, _ALIASES, list_key)
    return agreed(lambda text: _scores(text, ids, scale, keys, quoted), reply, quoted)


def _scores(reply: str, ids: Ids, scale: Scale, keys: Keys, quoted: Sequence[str]) -> dict[str, float]:
    reading = read_reply(reply, quoted)
    marks: dict[str, list[Mark[float]]] = {name: [] for name in ids.ids}
    for index, part in enumerate(reading.parts):
        entries = _entries(part, ids, keys, scale, index)
        for name, value in _named(entries, ids, reply):
            marks[name].append(Mark(scale.read(value), part=index))
    if not any(marks.values()):
        if any(is_error(part.value) for part in reading.structures) or cues.is_refusal(reading.text):
            raise ParseError("the judge refused to judge", kind="refusal", reply=reply)
        raise unreadable(Unreadable.UNKNOWN, reply, "scores")
    without = [name for name, found in marks.items() if not found]
    if without:
        raise ParseError(f"the reply has no score for {', '.join(without)}", kind="incomplete", reply=reply)
    return {name: decide(found, reply, f"score for {name}") for name, found in marks.items()}


def _aliases(names: Sequence[str]) -> dict[str, str]:
    """Other ways to write a name: with or without its noun, with the word score."""
    noun = re.compile(rf"(?:{'|'.join(_NOUNS)})s?[ _-]+(\S.*)$", re.I)
    cores = {name: match.group(1) if (match := noun.match(name)) else name for name in names}
    if len({core.casefold() for core in cores.values()}) < len(names):
        return {}
    forms: dict[str, str] = {}
    for name, core in cores.items():
        forms[core] = name
        forms |= {f"{word} {core}": name for word in _NOUNS}
        forms |= {f"score for {word} {core}": name for word in _NOUNS}
        forms |= {f"{word} {core} score": name for word in _NOUNS}
        forms |= {f"{word} {core}": name for word in ("score", "rating", "score of", "score for", "rating for")}
        forms |= {f"{core} score": name, f"{core} rating": name}
    return {form: name for form, name in forms.items() if form not in names}


def _entries(part: Structure | str, ids: Ids, keys: Keys, scale: Scale, index: int) -> list[Entry]:
    if isinstance(part, Structure):
        return entries_in(part.value, ids, keys, index)
    text = mask_quotes(part, lambda inner: bool(numbers_in(inner)) or inner.strip().isdigit())

    def is_value(cell: str) -> bool:
        return scale.read_text(cell, foreign=False) is not Unreadable.UNKNOWN

    found = [entry for entry in entries_in_text(text, ids, keys, is_value, index) if entry.fields]
    owned = [entry for entry in found if entry.id and ids.owner(entry.id)]
    return owned or list(_lists(text, len(ids.ids)))


def _lists(text: str, count: int) -> Iterator[Entry]:
    """Lists of numbers in closing tags, or alone on their line."""
    lists = [numbers for numbers, _ in find_tags(text, numbers_in)]
    if not any(lists):
        lists = [numbers_in(_LEADING_LABEL.sub("", line)) for line in text.split("\n")]
    for numbers in lists:
        if len(numbers) > 1 or (numbers and count == 1):
            for place, number in enumerate(numbers):
                entry = Entry(place=(place, len(numbers)))
                entry.section = number
                yield entry


def _named(entries: Sequence[Entry], ids: Ids, reply: str) -> Iterator[tuple[str, object]]:
    for entry in entries:
        values: list[object] = [one.value for one in entry.fields] or [entry.section]
        if entry.place is not None:
            place, count = entry.place
            if count != len(ids.ids):
                message = f"the reply has {count} scores for {len(ids.ids)} responses"
                raise ParseError(message, kind="ambiguous", reply=reply)
            owner = ids.ids[place]
        else:
            owner = next((found for name in (entry.id, entry.name) if name and (found := ids.owner(name))), None)
        if owner is not None:
            for value in values:
                yield owner, value
