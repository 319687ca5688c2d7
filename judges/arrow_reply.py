"""Reading RUBRIC-ARROW's reply: flags by key, and the probabilities at the very tokens that spell them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rubricate.chat.base import Completion, TokenLogprob
from rubricate.errors import ParseError
from rubricate.judges.mass import LabelMass, label_mass, plain_tokens
from rubricate.judges.parsing.objects import find_spans
from rubricate.judges.parsing.reasoning import strip_reasoning
from rubricate.narrow import as_object

__all__ = ["Flag", "FlagMass", "read_flags"]

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:\s*)?', re.S)
_WORD = re.compile(r"[\"'\s]*(\w+)")
_TRUE = frozenset({"true", "yes"})
_FALSE = frozenset({"false", "no"})


@dataclass(frozen=True, slots=True)
class FlagMass:
    """How the probability is spread where a flag stands.

    Attributes:
        true, false: summed over all spellings, each in [0, 1].
    """

    true: float
    false: float

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
        clear: the tokens spell it where the answer has it, once. What is not clear has no mass.
    """

    value: bool
    mass: FlagMass | None = None
    clear: bool = True


def read_flags(reply: Completion, keys: Sequence[str]) -> tuple[dict[str, Flag], dict[str, str]]:
    """The flags of a reply by key, those without a usable one left out, and all its texts by key.

    The last JSON object of the answer is read. A flag is found among the tokens by its place in their joined text,
    inside that object and outside its strings, so that nothing an explanation quotes is taken for it.

    Args:
        reply: a usable answer, with or without log-probabilities.
        keys: of the flags.

    Raises ParseError where the answer holds no JSON object, or one that was cut.
    """
    record = _last_object(strip_reasoning(reply.text))
    flags = {key: value for key in keys if (value := _flag(record.get(key))) is not None}
    texts = {key: value for key, value in record.items() if isinstance(value, str)}
    if not reply.logprobs:
        return {key: Flag(value) for key, value in flags.items()}, texts
    tokens = plain_tokens(reply.logprobs, reply.text)
    places = _places("".join(token.token for token in tokens), flags)
    masses = {key: _mass(tokens, places[key], value) for key, value in flags.items() if key in places}
    return {
        key: Flag(value, mass := masses.get(key), clear=mass is not None) for key, value in flags.items()
    }, texts


def _last_object(text: str) -> Mapping[str, object]:
    spans = find_spans(text)[1]
    record = as_object(spans[-1].value) if spans else None
    if record is None or not spans[-1].complete:
        raise ParseError("the reply holds no whole JSON object", kind="unparsable", reply=text)
    return record


def _flag(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    word = value.strip().casefold() if isinstance(value, str) else ""
    return True if word in _TRUE else False if word in _FALSE else None


def _places(text: str, keys: Mapping[str, bool]) -> dict[str, int]:
    """Where the value of each key begins. A key that stands there more than once has no place."""
    found, spans = find_spans(text)
    if found != text or not spans:
        return {}
    places: dict[str, list[int]] = {}
    for match in _STRING.finditer(text, spans[-1].start, spans[-1].end):
        if match[2] is not None and match[1] in keys:
            places.setdefault(match[1], []).append(match.end())
    return {key: found[0] for key, found in places.items() if len(found) == 1}


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
    true = sum(mass.shares[word] for word in _TRUE)
    return FlagMass(min(true, 1.0), min(sum(mass.shares[word] for word in _FALSE), 1.0))
