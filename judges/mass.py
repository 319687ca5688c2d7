"""The probability of each answer that a judge may give, read from token log-probabilities, however tokenised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rubricate.chat.base import TokenLogprob

__all__ = ["LabelMass", "is_sound", "label_mass", "plain_tokens", "share_of", "spread_of"]

_WRAPPING = " \t\r\n\"'`*_.,:;!()[]{}<>\ufeff\u200b"
_ROUNDING = 1e-3  # servers round, and a logarithm just above 0 means certainty
_MARKS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n", "ĉ": "\t"})
"""What stands for white space where a server gives tokens as its tokenizer's vocabulary spells them."""


def is_sound(token: TokenLogprob) -> bool:
    """Whether a token's log-probabilities are some: neither NaN, nor above 0 by more than rounding explains.

    Minus infinity is sound: a probability of 0.
    """
    return all(value <= _ROUNDING for value in (token.logprob, *(value for _, value in token.top)))


def share_of(logprob: float) -> float:
    """The probability of a log-probability, in [0, 1]; 0 for what is none (see `is_sound`)."""
    return math.exp(min(logprob, 0.0)) if logprob <= _ROUNDING else 0.0


@dataclass(frozen=True, slots=True)
class LabelMass:
    """How the probability at an answer's position is spread over the labels.

    Attributes:
        shares: probability of each label, in [0, 1], summed over all its spellings.
    """

    shares: Mapping[str, float]

    @property
    def inside(self) -> float:
        """What lies on the labels, in [0, 1]."""
        return min(1.0, math.fsum(self.shares.values()))

    @property
    def outside(self) -> float:
        """What does not, in [0, 1], tokens that the server did not list included."""
        return max(0.0, 1.0 - self.inside)

    def expected(self, values: Mapping[str, float]) -> float | None:
        """The labels' mean value by probability, within the range of the values; None without any mass.

        Sum of p(s) v(s) over sum of p(s): G-Eval (2303.16634, section 2.3), normalised by the mass on the labels.
        """
        total = math.fsum(self.shares.values())
        if total <= 0.0:
            return None
        mean = math.fsum(share * values[label] for label, share in self.shares.items()) / total
        return min(max(mean, min(values.values())), max(values.values()))


def spread_of(shares: Sequence[float], values: Sequence[float]) -> float:
    """Standard deviation of values by probability, as a part of their range: 0 to 0.5 (ours).

    Args:
        shares: probability of each value, of which some is above 0; they need not sum to 1.
        values: at least two that differ.
    """
    total, low, high = math.fsum(shares), min(values), max(values)
    parts = [((value - low) / (high - low), share / total) for value, share in zip(values, shares, strict=True)]
    mean = math.fsum(value * share for value, share in parts)
    return min(math.sqrt(math.fsum(share * (value - mean) ** 2 for value, share in parts)), 0.5)


def plain_tokens(tokens: Sequence[TokenLogprob], text: str) -> tuple[TokenLogprob, ...]:
    """Tokens as they read in the text: vocabulary spellings of spaces and line breaks made plain.

    Args:
        tokens: of the answer.
        text: the answer's text. A mark that occurs in it is left alone.
    """
    table = {mark: plain for mark, plain in _MARKS.items() if chr(mark) not in text}
    return tuple(
        TokenLogprob(
            token.token.translate(table),
            token.logprob,
            tuple((name.translate(table), value) for name, value in token.top),
        )
        for token in tokens
    )


def label_mass(tokens: Iterable[TokenLogprob], labels: Iterable[str], *, ended: bool = True) -> LabelMass:
    """The mass of each label at the position where an answer begins, over all spellings.

    Case, spaces, quotes and punctuation around a label do not matter. A label may take several tokens, and one may
    begin another ("1" and "10"). The rule (ours): at each position every alternative counts that, put behind the
    tokens chosen before it, spells a label or the beginning of one single word among them. What spells the
    beginning of several, such as "1" of "1" and "10", is followed along the tokens that were generated, the only
    ones whose continuation is known, and its mass is split by what comes next; elsewhere it counts as outside.
    Mass that a generated token of mere spaces or quotes carries is followed as well.

    Args:
        tokens: from the answer's first token on, with alternatives; only as many are read as are needed.
        labels: the possible answers; letters are compared without case.
        ended: the answer was not cut, so that "1" at its end is "1" and not the beginning of "10".
    """
    names = {label.casefold(): label for label in labels}
    shares = dict.fromkeys(names.values(), 0.0)
    weight, prefix = 1.0, ""
    for token in tokens:
        followed: tuple[float, str] | None = None
        for text, logprob in _alternatives(token):
            mass = weight * share_of(logprob)
            spelled = (prefix + text).lstrip(_WRAPPING).casefold()
            label = _label(spelled, names, more=bool(text))
            if label is not None:
                shares[label] += mass
            elif text == token.token and (not spelled or _begins(spelled, names)):
                followed = mass, spelled
        if followed is None:
            return LabelMass(shares)
        weight, prefix = followed
    if ended and prefix in names:
        shares[names[prefix]] += weight
    return LabelMass(shares)


def _alternatives(token: TokenLogprob) -> Iterator[tuple[str, float]]:
    """Every token listed; the one generated too, where it is not among them. Different tokens may read alike."""
    yield from token.top
    if all(text != token.token for text, _ in token.top):
        yield token.token, token.logprob


def _label(spelled: str, names: Mapping[str, str], *, more: bool) -> str | None:
    """The label that a text spells, or None where it spells none or might go on to spell another.

    Args:
        more: the text may go on; an empty alternative ends it.
    """
    word = spelled
    for at, sign in enumerate(spelled):
        if not (sign.isalnum() or sign == "-"):
            word, more = spelled[:at], False
            break
    if word in names and not (more and _begins(word, names, longer=True)):
        return names[word]
    if not more or not word.isalpha():
        return None
    possible = [name for name in names if name.startswith(word)]
    return names[possible[0]] if len(possible) == 1 else None


def _begins(word: str, names: Mapping[str, str], *, longer: bool = False) -> bool:
    return any(name.startswith(word) and (not longer or name != word) for name in names)
