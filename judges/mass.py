"""The probability of each answer that a judge may give, read from token log-probabilities, however tokenised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rubricate.chat.base import TokenLogprob
from rubricate.judges.spelling import goes_on, without_lead

__all__ = [
    "MAX_UNKNOWN",
    "LabelMass",
    "alternatives",
    "fault_of",
    "label_mass",
    "plain_tokens",
    "share_of",
    "shortfall",
    "spread_of",
    "unlisted_share",
]

MAX_UNKNOWN = 0.05
"""Largest share of probability that may lie on an answer of which the server tells nothing (ours).

Where an answer is not listed, all that is not listed could be its. Where every answer is, the rest is less likely,
token by token, than what is listed, and only `max_outside` bounds it."""

_ROUNDING = 1e-3  # servers round, and a logarithm just above 0 means certainty
_SUM = 1.01  # so much may rounded probabilities add up to
_APART = 0.01  # so far may two roundings of one probability lie apart
_EXACT = 1e-9  # a share at a limit is within it, whatever floating point makes of the sum
_MARKS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n", "ĉ": "\t"})
"""What stands for white space where a server gives tokens as its tokenizer's vocabulary spells them."""


def fault_of(token: TokenLogprob) -> str:
    """Why a token's log-probabilities cannot be some, in words; empty where they can.

    They must be no NaN nor above 0 by more than rounding explains, must not add up to more than 1, and the token's
    own must be that of one of the alternatives of its name. Minus infinity is sound: a probability of 0.
    """
    if not all(value <= _ROUNDING for value in (token.logprob, *(value for _, value in token.top))):
        return "are none (NaN, or above 0)"
    total = math.fsum(share_of(value) for _, value in alternatives(token))
    if total > _SUM:
        return f"add up to a probability of {total:.2f}"
    own, named = share_of(token.logprob), [share_of(value) for text, value in token.top if text == token.token]
    if named and all(abs(share - own) > _APART for share in named):
        return f"give {token.token!r} a probability of {own:.3f} and one of {named[0]:.3f}"
    return ""


def share_of(logprob: float) -> float:
    """The probability of a log-probability, in [0, 1]; 0 for what is none (see `fault_of`)."""
    return math.exp(min(logprob, 0.0)) if logprob <= _ROUNDING else 0.0


@dataclass(frozen=True, slots=True)
class LabelMass:
    """How the probability at an answer's position is spread over the labels.

    Attributes:
        shares: probability of each label, in [0, 1], summed over all its spellings.
        unknown: for each label, what may lie on it without being told, in [0, 1], a part of `outside`: tokens that
            the server did not list, and beginnings that nothing was generated behind.
        said: the label that the generated tokens spell, None where they spell none.
    """

    shares: Mapping[str, float]
    unknown: Mapping[str, float]
    said: str | None = None

    @property
    def inside(self) -> float:
        """What lies on the labels, in [0, 1]."""
        return min(1.0, math.fsum(self.shares.values()))

    @property
    def outside(self) -> float:
        """What does not, in [0, 1], tokens that the server did not list included."""
        return max(0.0, 1.0 - self.inside)

    def merged(self, answers: Mapping[str, str]) -> LabelMass:
        """The mass of answers that several labels stand for, such as yes and true.

        Args:
            answers: each label's answer.
        """
        shares = dict.fromkeys(answers.values(), 0.0)
        unknown = dict(shares)
        for label, answer in answers.items():
            shares[answer] += self.shares[label]
            unknown[answer] = max(unknown[answer], self.unknown[label])
        return LabelMass(shares, unknown, None if self.said is None else answers[self.said])

    def expected(self, values: Mapping[str, float]) -> float | None:
        """The labels' mean value by probability, within the range of the values; None without any mass.

        Sum of p(s) v(s) over sum of p(s): G-Eval (2303.16634, section 2.3), normalised by the mass on the labels.
        """
        total = math.fsum(self.shares.values())
        if total <= 0.0:
            return None
        mean = math.fsum(share * values[label] for label, share in self.shares.items()) / total
        return min(max(mean, min(values.values())), max(values.values()))


def shortfall(shares: Mapping[str, float], unknown: Mapping[str, float], max_outside: float, where: str) -> str:
    """Why the masses of the possible answers make no verdict, in words; empty where they do.

    Args:
        shares: of each answer, in [0, 1].
        unknown: what may lie on each besides; see `MAX_UNKNOWN`.
        max_outside: largest share outside the answers; so much itself is allowed.
        where: the answers, for people.
    """
    inside = math.fsum(shares.values())
    outside = max(0.0, 1.0 - inside)
    if inside <= 0.0 or outside > max_outside + _EXACT:
        return f"{outside:.1%} of the probability lies outside {where} (limit {max_outside:.0%})"
    absent = [a for a, share in shares.items() if share <= 0.0 and unknown[a] > MAX_UNKNOWN + _EXACT]
    if absent:
        most = max(unknown[answer] for answer in absent)
        return (
            f"{most:.1%} of the probability may lie on {', '.join(absent)} (limit {MAX_UNKNOWN:.0%}), which the "
            "server does not list: ask for more (top_logprobs), or for answers of which none begins another"
        )
    return ""


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
    unknown = dict(shares)
    weight, prefix, said = 1.0, "", None
    for token in tokens:
        followed: tuple[float, str] | None = None
        for label in _possible(without_lead(prefix).casefold(), names):
            unknown[label] += weight * unlisted_share(token)
        for text, logprob in alternatives(token):
            mass = weight * share_of(logprob)
            spelled = without_lead(prefix + text).casefold()
            label = _label(spelled, names, more=bool(text))
            if label is not None:
                shares[label] += mass
                said = label if text == token.token else said
            elif text == token.token and (not spelled or _begins(spelled, names)):
                followed = mass, prefix + text
            elif spelled:
                for possible in _possible(spelled, names):
                    unknown[possible] += mass
        if followed is None:
            return LabelMass(shares, unknown, said)
        weight, prefix = followed
    last = without_lead(prefix).casefold()
    if ended and last in names:
        said = names[last]
        shares[said] += weight
    return LabelMass(shares, unknown, said)


def alternatives(token: TokenLogprob) -> Iterator[tuple[str, float]]:
    """Every token listed with its log-probability; the generated one too, where it is not among them.

    Different tokens may read alike.
    """
    yield from token.top
    if all(text != token.token for text, _ in token.top):
        yield token.token, token.logprob


def unlisted_share(token: TokenLogprob) -> float:
    """The share of probability, in [0, 1], on tokens that the server did not list at a position."""
    return max(0.0, 1.0 - math.fsum(share_of(value) for _, value in alternatives(token)))


def _label(spelled: str, names: Mapping[str, str], *, more: bool) -> str | None:
    """The label that a text spells, or None where it spells none or might go on to spell another.

    Args:
        more: the text may go on; an empty alternative ends it.
    """
    word = spelled
    for at, sign in enumerate(spelled):
        if not (sign.isalnum() or sign == "-"):
            if goes_on(spelled[at:]):
                return None
            word, more = spelled[:at], False
            break
    if word in names and not (more and _begins(word, names, longer=True)):
        return names[word]
    if not more or not word.isalpha():
        return None
    possible = _possible(word, names)
    return possible[0] if len(possible) == 1 else None


def _possible(word: str, names: Mapping[str, str]) -> list[str]:
    """The labels that a text may be the beginning of."""
    return [label for name, label in names.items() if name.startswith(word)]


def _begins(word: str, names: Mapping[str, str], *, longer: bool = False) -> bool:
    return any(name.startswith(word) and (not longer or name != word) for name in names)
