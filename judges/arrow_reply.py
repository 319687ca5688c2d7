"""Reading RUBRIC-ARROW's reply: flags by key, and the probabilities at the very tokens that spell them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rubricate.chat.base import Completion, TokenLogprob
from rubricate.errors import ParseError
from rubricate.judges.mass import LabelMass, label_mass, plain_tokens
from rubricate.judges.parsing.behind import said_of, speaks_against
from rubricate.judges.parsing.objects import find_spans
from rubricate.judges.parsing.reading import Reading, Structure, read_reply
from rubricate.judges.parsing.verdict import takes_back, verdict_labels
from rubricate.judges.parsing.vocabulary import vocabulary_of
from rubricate.narrow import as_object

__all__ = ["Flag", "FlagMass", "read_flags"]

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:\s*)?', re.S)
_WORD = re.compile(r"[\"'\s]*(\w+)")
_TRUE = frozenset({"true", "yes"})
_FALSE = frozenset({"false", "no"})
_CHOICES = ("met", "unmet", "not_applicable")
_KEY = re.compile(r"[\"'`]?\bcriteria_met_(\d{1,4})\b[\"'`]?")
_MET = "criteria_met_"


@dataclass(frozen=True, slots=True)
class FlagMass:
    """How the probability is spread where a flag stands.

    Attributes:
        true, false: summed over all spellings, each in [0, 1].
        unknown: what may lie on one of them without being told, in [0, 1]; see `LabelMass`.
    """

    true: float
    false: float
    unknown: float = 0.0

    @property
    def outside(self) -> float:
        """What lies on neither, in [0, 1]."""
        return max(0.0, 1.0 - self.true - self.false)

    @property
    def p_true(self) -> float | None:
        """P(true) among the two, in [0, 1]; None without any mass."""
        total = self.true + self.false
        return self.true / total if total > 0.0 else None

    @property
    def signed(self) -> float:
        """p(true) - p(false), in [-1, 1]: RUBRIC-ARROW's value of a criterion (2605.29156)."""
        return self.true - self.false


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of a reply.

    Attributes:
        value: as it was written.
        mass: its probabilities, None where the server gave none.
        clear: nothing else in the reply says otherwise, and the tokens spell it where the answer has it, once.
            What is not clear has no mass.
    """

    value: bool
    mass: FlagMass | None = None
    clear: bool = True


def read_flags(
    reply: Completion, keys: Sequence[str], quoted: Sequence[str] = ()
) -> tuple[dict[str, Flag], dict[str, str]]:
    """The flags of a reply by key, those without a usable one left out, and all its texts by key.

    The last JSON object that is the judge's own is read: not one that is quoted, or that a shown text holds. Keys
    are what they decode to: one that is written with escapes (`"\\u0063riteria_met_1"`) is the same key, and both
    spellings in one object are a key that occurs twice. A flag is found among the tokens by its place in their
    joined text, inside that object and outside its strings, so that nothing an explanation quotes is taken for it.
    A flag is not clear where another object of the reply gives the key another value, or where its explanation or
    the words behind the object say otherwise.

    Args:
        reply: a usable answer, with or without log-probabilities.
        keys: of the flags.
        quoted: the texts that the judge was shown.

    Raises ParseError where the answer holds no JSON object of the judge's own, or one that was cut.
    """
    reading = read_reply(reply.text, quoted)
    records = _own_records(reading, keys)
    last: Mapping[str, object] = records[-1] if records else {}
    flags = {key: value for key in keys if (value := _flag(last.get(key))) is not None}
    texts = {key: value for key, value in last.items() if isinstance(value, str)}
    said = {key: Flag(value, clear=not _doubted(key, value, reading, records)) for key, value in flags.items()}
    if not reply.logprobs:
        return said, texts
    tokens = plain_tokens(reply.logprobs, reply.text)
    places = _places("".join(token.token for token in tokens), flags, last)
    masses = {key: _mass(tokens, places[key], value) for key, value in flags.items() if key in places}
    read: dict[str, Flag] = {}
    for key, flag in said.items():
        mass = masses.get(key)
        read[key] = replace(flag, mass=mass) if flag.clear and mass is not None else replace(flag, clear=False)
    return read, texts


def _own_records(reading: Reading, keys: Sequence[str]) -> list[Mapping[str, object]]:
    """The judge's objects with such keys, in order."""
    structures = reading.structures
    if not structures or not structures[-1].complete:
        raise ParseError("the reply holds no whole JSON object", kind="unparsable", reply=reading.reply)
    found = [record for part in structures if (record := as_object(part.value)) is not None]
    records = [record for record in found if any(key in record for key in keys)]
    # What a response holds is quoted from it, however short.
    shown = [text for text in reading.quoted if records and "{" in text]
    held = [as_object(span.value) for text in shown for span in find_spans(text)[1]]
    own = [record for record in records if record not in held]
    if records and not own:
        raise ParseError("the only verdicts are those that a response holds", kind="ambiguous", reply=reading.reply)
    return own


def _doubted(key: str, value: bool, reading: Reading, records: Sequence[Mapping[str, object]]) -> bool:
    """Whether anything else in the reply says otherwise than a flag of its last object."""
    others = [_flag(record[key]) for record in records[:-1] if key in record]
    if any(other is not value for other in others):
        return True
    name, _, number = key.rpartition("_")
    if f"{name}_" != _MET:
        return False
    places = [at for at, part in enumerate(reading.parts) if isinstance(part, Structure)]
    words = " ".join(part for part in reading.parts[places[-1] + 1 :] if isinstance(part, str))
    explanation = records[-1].get(f"explanation_{number}")
    reason = reading.own_words(explanation) if isinstance(explanation, str) else ""
    vocabulary, finder, verdict = vocabulary_of(_CHOICES), verdict_labels("verdict"), _CHOICES[0 if value else 1]
    numbers = sorted({name.removeprefix(_MET) for record in records for name in record if name.startswith(_MET)})
    said = said_of(
        _KEY.sub(r"criterion \1", words),
        numbers,
        lambda text: isinstance(vocabulary.exact(text), str),
        others=sorted({*re.findall(r"\b\d{1,3}\b", words)} - {*numbers}),
    )
    return takes_back(reason, verdict, vocabulary, finder) or (
        number in said and speaks_against(said[number], verdict, vocabulary, finder)
    )


def _flag(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    word = value.strip().casefold() if isinstance(value, str) else ""
    return True if word in _TRUE else False if word in _FALSE else None


def _places(text: str, keys: Mapping[str, bool], own: Mapping[str, object]) -> dict[str, int]:
    """Where the value of each key begins. A key that stands there more than once has no place, and none has one
    where the text does not end with the judge's own object."""
    found, spans = find_spans(text)
    if found != text or not spans or spans[-1].value != own:
        return {}
    places: dict[str, list[int]] = {}
    for match in _STRING.finditer(text, spans[-1].start, spans[-1].end):
        name = _decoded(match[1])
        if match[2] is not None and name in keys:
            places.setdefault(name, []).append(match.end())
    return {key: found[0] for key, found in places.items() if len(found) == 1}


def _decoded(raw: str) -> str:
    """The text of a JSON string's inside."""
    if "\\" not in raw:
        return raw
    try:
        return str(json.loads(f'"{raw}"', strict=False))
    except ValueError:
        return raw


def _mass(tokens: Sequence[TokenLogprob], place: int, value: bool) -> FlagMass | None:
    """The mass of a flag whose value begins at `place`; None where the tokens do not spell that value there."""
    end = 0
    for at, token in enumerate(tokens):
        end += len(token.token)
        if end > place:
            offset = place - end + len(token.token)
            spelled = _WORD.match("".join(token.token for token in tokens[at:])[offset:])
            if spelled is None or _flag(spelled[1]) is not value:
                return None
            rest = [_without(token, token.token[:offset]), *tokens[at + 1 :]]
            return _summed(label_mass(rest[_blank_tokens(rest) :], (*_TRUE, *_FALSE)))
    return None


def _without(token: TokenLogprob, lead: str) -> TokenLogprob:
    """A token and its alternatives without what they begin with; those that begin otherwise as they are."""
    top = tuple((text.removeprefix(lead), value) for text, value in token.top)
    return TokenLogprob(token.token.removeprefix(lead), token.logprob, top)


def _blank_tokens(tokens: Sequence[TokenLogprob]) -> int:
    """How many tokens hold blanks and quotes alone, and nothing of the flag."""
    return next((at for at, token in enumerate(tokens) if token.token.strip(" \t\r\n\"'")), 0)


def _summed(mass: LabelMass) -> FlagMass:
    both = mass.merged(dict.fromkeys(_TRUE, "true") | dict.fromkeys(_FALSE, "false"))
    return FlagMass(min(both.shares["true"], 1.0), min(both.shares["false"], 1.0), max(both.unknown.values()))
