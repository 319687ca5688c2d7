"""Reading of verdicts or scores on several criteria out of one judge's reply."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from rubricate.errors import ConfigError, ParseError
from rubricate.judges.parsing import cues
from rubricate.judges.parsing.agreed import agreed
from rubricate.judges.parsing.behind import said_of
from rubricate.judges.parsing.domains import Domain, score_domain, verdict_domain
from rubricate.judges.parsing.entries import Entry, Ids, Keys, entries_in, listed_lines
from rubricate.judges.parsing.fields import is_error
from rubricate.judges.parsing.labels import announcement
from rubricate.judges.parsing.listing import entries_in_text
from rubricate.judges.parsing.marks import Mark, Standing, outcome
from rubricate.judges.parsing.reading import Reading, Structure, read_reply
from rubricate.judges.parsing.reason import parse_reason
from rubricate.judges.parsing.score import parse_score
from rubricate.judges.parsing.text import mend_surrogates
from rubricate.judges.parsing.verdict import ALIASES, parse_verdict
from rubricate.judges.parsing.vocabulary import Unreadable, vocabulary_of

__all__ = ["CriterionScores", "CriterionVerdicts", "parse_criterion_scores", "parse_criterion_verdicts"]

T = TypeVar("T")
_ORDINAL = re.compile(r"\bcriterion ?#? ?(\d{1,4})\b", re.I)
_SCORE_ALIASES = ("score", "rating", "grade", "points", "mark", "level", "value", "verdict")


@dataclass(frozen=True, slots=True)
class CriterionVerdicts:
    """Verdicts on several criteria.

    Attributes:
        verdicts: id to verdict, as spelled in the choices.
        reasons: id to reason, for ids with a verdict and a reason.
        missing: ids without a usable verdict, in the order asked.
        ambiguous: ids whose verdicts contradict each other or their reason.
        extra: names the reply has a verdict on and nobody asked for.
    """

    verdicts: Mapping[str, str]
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CriterionScores:
    """Scores on several criteria.

    Attributes:
        scores: id to score, in the units of its scale, or to one of the choices that stand beside the scale.
        reasons: id to reason, for ids with a score and a reason.
        missing: ids without a usable score, in the order asked.
        ambiguous: ids whose scores contradict each other, or stand on another scale.
        out_of_range: ids whose score is outside the scale.
        extra: names the reply has a score on and nobody asked for.
    """

    scores: Mapping[str, float | str]
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    out_of_range: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


@dataclass(slots=True)
class _Gathered(Generic[T]):
    values: dict[str, T | Unreadable]
    reasons: dict[str, str]
    extra: list[str]

    def having(self, *why: Unreadable) -> tuple[str, ...]:
        return tuple(id for id, value in self.values.items() if isinstance(value, Unreadable) and value in why)


def parse_criterion_verdicts(
    reply: str,
    ids: Sequence[str],
    choices: Sequence[str] | Mapping[str, Sequence[str]] = ("met", "unmet"),
    *,
    index_base: int | None = None,
    key: str = "verdict",
    list_key: str = "verdicts",
    known: Sequence[str] = (),
    quoted: Sequence[str] = (),
) -> CriterionVerdicts:
    """The verdicts of a reply on several criteria, each under the id it carries.

    Reads JSON (a list of entries, an object from ids to verdicts, or a bare list of exactly as many verdicts as
    were asked for), tables, YAML-like blocks, lines of `id: verdict`, and sections. Ids match exactly, or but for
    case, blanks and punctuation where only one can be meant; likeness is not enough.

    Args:
        reply: the judge's visible reply.
        ids: the criteria, in the order asked.
        choices: the allowed verdicts, for all ids or for each.
        index_base: the number that the judge was told to number from, where it was.
        key, list_key: the JSON keys of a verdict and of the list.
        known: further ids that may occur in the reply; they are neither read nor reported as extra.
        quoted: texts that the judge was shown; longer passages copied from them do not count.

    Raises ParseError when the whole reply is unusable: empty, refused, unreadable, or verdicts without ids whose
    number is not the number asked for.
    """
    per_id = choices if isinstance(choices, Mapping) else dict.fromkeys(ids, choices)
    words = {id: vocabulary_of(_given(per_id, id)) for id in ids}
    domain = verdict_domain(words, key)
    keys = Keys(key, ALIASES, list_key)
    gathered = _read(reply, quoted, Ids(ids, known), keys, domain, index_base)
    if gathered is None:
        id = ids[0]
        verdict = parse_verdict(reply, _given(per_id, id), key=key, quoted=quoted)
        return CriterionVerdicts({id: verdict}, _reason_of(id, reply))
    return CriterionVerdicts(
        {id: value for id, value in gathered.values.items() if isinstance(value, str)},
        gathered.reasons,
        gathered.having(Unreadable.UNKNOWN, Unreadable.PLACEHOLDER, Unreadable.OUT_OF_RANGE),
        gathered.having(Unreadable.AMBIGUOUS),
        tuple(gathered.extra),
    )


def parse_criterion_scores(
    reply: str,
    scales: Mapping[str, tuple[float, float]],
    *,
    integer: bool = False,
    choices: Sequence[str] = (),
    index_base: int | None = None,
    key: str = "verdict",
    list_key: str = "verdicts",
    known: Sequence[str] = (),
    quoted: Sequence[str] = (),
) -> CriterionScores:
    """The scores of a reply on several criteria, each in the units of its scale. See `parse_criterion_verdicts`.

    Args:
        reply: the judge's visible reply.
        scales: id to lowest and highest score, both included, in the order asked.
        integer: refuse scores that are not whole.
        choices: words allowed beside a number, such as `not_applicable`.
        index_base, key, list_key, known, quoted: as for verdicts.

    Raises ParseError when the whole reply is unusable.
    """
    ids = list(scales)
    domain = score_domain(scales, integer, choices, key)
    keys = Keys(key, _SCORE_ALIASES, list_key)
    gathered = _read(reply, quoted, Ids(ids, known), keys, domain, index_base)
    if gathered is None:
        low, high = scales[ids[0]]
        try:
            score: float | str = parse_score(reply, low, high, integer=integer, key=key, quoted=quoted)
        except ParseError:
            if not choices:
                raise
            score = parse_verdict(reply, choices, key=key, quoted=quoted)
        return CriterionScores({ids[0]: score}, _reason_of(ids[0], reply))
    return CriterionScores(
        {id: value for id, value in gathered.values.items() if not isinstance(value, Unreadable)},
        gathered.reasons,
        gathered.having(Unreadable.UNKNOWN, Unreadable.PLACEHOLDER),
        gathered.having(Unreadable.AMBIGUOUS),
        gathered.having(Unreadable.OUT_OF_RANGE),
        tuple(gathered.extra),
    )


def _reason_of(id: str, reply: str) -> dict[str, str]:
    reason = parse_reason(reply)
    return {id: reason} if reason else {}


def _given(choices: Mapping[str, Sequence[str]], id: str) -> Sequence[str]:
    if id not in choices:
        raise ConfigError(f"no choices are given for criterion {id!r}")
    return choices[id]


def _read(
    reply: str, quoted: Sequence[str], ids: Ids, keys: Keys, domain: Domain[T], index_base: int | None
) -> _Gathered[T] | None:
    return agreed(
        lambda text: _gather(read_reply(text, quoted), ids, keys, domain, index_base),
        reply,
        quoted,
        lambda found: found.values if found is not None else None,
    )


def _gather(
    reading: Reading, ids: Ids, keys: Keys, domain: Domain[T], index_base: int | None
) -> _Gathered[T] | None:
    """Values by id, or None when the reply has no entries and one criterion was asked for."""
    entries = _entries_of(reading, ids, keys, domain)
    if not entries:
        if len(ids.ids) == 1 and not any(part.value == {} for part in reading.structures):
            return None
        _refuse_unusable(reading)
    owners, extra = _assign(entries, ids, index_base, reading.reply)
    doubted = _doubted(reading, ids, entries)
    behind = said_of(_text_behind(reading, entries, ids), ids.ids, domain.is_value, others=sorted(ids.known))
    values: dict[str, T | Unreadable] = {}
    reasons: dict[str, str] = {}
    for id in ids.ids:
        mine = owners.get(id, [])
        value = Unreadable.AMBIGUOUS if id in doubted else outcome(_marks_of(id, mine, domain, reading))
        reason = next((entry.reason for entry in reversed(mine) if entry.reason), "")
        if not isinstance(value, Unreadable) and reason:
            if domain.contradicted(id, value, reading.own_words(reason)):
                value = Unreadable.AMBIGUOUS
            else:
                reasons[id] = mend_surrogates(reason)
        if not isinstance(value, Unreadable) and id in behind and domain.opposed(id, value, behind[id]):
            value = Unreadable.AMBIGUOUS
        values[id] = value
    return _Gathered(values, reasons, extra)


def _doubted(reading: Reading, ids: Ids, entries: Sequence[Entry]) -> set[str]:
    """Identifiers that a correction after the entries speaks of, without a verdict of its own."""
    first = min(entry.part for entry in entries) if entries else 0
    corrected = {id for entry in entries if entry.corrects for id in _owners_of(entry, ids)}
    found: set[str] = set()
    for part in reading.parts[first:]:
        for said in cues.corrections(part) if isinstance(part, str) else ():
            found |= {id for id in ids.ids if re.search(rf"(?<!\w){re.escape(id)}(?!\w)", said, re.I)}
    return found - corrected - {id for entry in entries if entry.part > first for id in _owners_of(entry, ids)}


def _text_behind(reading: Reading, entries: Sequence[Entry], ids: Ids) -> str:
    """What stands behind the last JSON value with entries; "criterion 2" is the one whose name ends in 2."""
    places = [entry.part for entry in entries if isinstance(reading.parts[entry.part], Structure)]
    if not places:
        return ""
    text = "\n".join(part for part in reading.parts[max(places) + 1 :] if isinstance(part, str))
    return _ORDINAL.sub(lambda match: f"criterion {ids.numbered(int(match[1])) or match[1]}", text)


def _refuse_unusable(reading: Reading) -> None:
    text = reading.text
    if any(is_error(part.value) for part in reading.structures) or cues.is_refusal(text):
        raise ParseError("the judge refused to judge", kind="refusal", reply=reading.reply)
    if not reading.structures:
        raise ParseError("the reply holds no readable verdicts", kind="unparsable", reply=reading.reply)


def _entries_of(reading: Reading, ids: Ids, keys: Keys, domain: Domain[T]) -> list[Entry]:
    first = ids.ids[0]

    def is_value(text: str) -> bool:
        # Any id will do: what matters is whether the line reads as a verdict at all.
        return any(not isinstance(domain.read(id, text), Unreadable) for id in {first, ids.ids[-1]})

    found: list[Entry] = []
    for index, part in enumerate(reading.parts):
        if isinstance(part, Structure):
            found += entries_in(part.value, ids, keys, index)
            listed = listed_lines(part.value, keys)
            found += entries_in_text(listed, ids, keys, is_value, index) if listed else []
    if found:
        return found
    for index, part in enumerate(reading.parts):
        if isinstance(part, str):
            found += entries_in_text(part, ids, keys, is_value, index)
    found = [entry for entry in found if entry.id or entry.name or entry.index is not None]
    return [entry for entry in found if entry.fields or entry.section.strip()]


def _assign(
    entries: Sequence[Entry], ids: Ids, index_base: int | None, reply: str
) -> tuple[dict[str, list[Entry]], list[str]]:
    """Entries by the id they belong to, and the names that belong to none."""
    owners: dict[str, list[Entry]] = {}
    extra: list[str] = []
    indexed: list[Entry] = []
    for entry in entries:
        found = _owners_of(entry, ids)
        if len(found) > 1:
            entry.fields = [replace(one, value=Unreadable.AMBIGUOUS) for one in entry.fields]
        for id in found:
            owners.setdefault(id, []).append(entry)
        if found:
            continue
        if entry.place is not None:
            _by_place(entry, ids, owners, reply)
        elif entry.index is not None:
            indexed.append(entry)
        elif entry.id or entry.name:
            extra.append((entry.id or entry.name or "").strip())
    if indexed and owners:
        extra += [str(entry.index) for entry in indexed]
    elif indexed:
        base = ids.base_of([entry.index for entry in indexed if entry.index is not None], index_base)
        if base is None:
            raise ParseError("the reply numbers its verdicts in an unknown way", kind="ambiguous", reply=reply)
        for entry in indexed:
            id = ids.at(entry.index or 0, base)
            if id is not None:
                owners.setdefault(id, []).append(entry)
    return owners, list(dict.fromkeys(extra))


def _owners_of(entry: Entry, ids: Ids) -> list[str]:
    found = [owner for name in (entry.id, entry.name) if name and (owner := ids.owner(name)) is not None]
    if not found and entry.index is not None:
        numbered = ids.numbered(entry.index)
        found = [numbered] if numbered is not None else []
    return list(dict.fromkeys(found))


def _by_place(entry: Entry, ids: Ids, owners: dict[str, list[Entry]], reply: str) -> None:
    assert entry.place is not None
    place, count = entry.place
    if count != len(ids.ids):
        message = f"the reply has {count} verdicts without ids for {len(ids.ids)} criteria"
        raise ParseError(message, kind="ambiguous", reply=reply)
    owners.setdefault(ids.ids[place], []).append(entry)


def _marks_of(id: str, entries: Sequence[Entry], domain: Domain[T], reading: Reading) -> list[Mark[T]]:
    marks: list[Mark[T]] = []
    for entry in entries:
        part = reading.parts[entry.part]
        announced, corrects = announcement(part.lead if isinstance(part, Structure) else "")
        corrected = entry.corrects or (bool(marks) and _corrects(reading, entry.part))
        for one in entry.fields:
            value = one.value if isinstance(one.value, Unreadable) else domain.read(id, one.value)
            if value in (Unreadable.PLACEHOLDER, Unreadable.UNKNOWN):
                continue
            standing = one.standing if one.standing is not Standing.PLAIN else announced
            marks.append(Mark(value, standing, one.correction or corrected or corrects, entry.part))
        if not entry.fields and entry.section:
            value = domain.section(id, entry.section)
            if value is not Unreadable.UNKNOWN:
                marks.append(Mark(value, Standing.PLAIN, corrected, entry.part))
                entry.reason = entry.reason or entry.section.strip()
    return marks


def _corrects(reading: Reading, part: int) -> bool:
    """Whether the text in front of a JSON value announces a correction."""
    before = reading.parts[part - 1] if part > 0 else ""
    return isinstance(before, str) and cues.CORRECTS.search(before[-600:]) is not None
