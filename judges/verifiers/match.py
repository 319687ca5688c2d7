"""Comparison with a reference answer: numbers within a tolerance, equal texts, similar texts."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter, deque
from fractions import Fraction
from typing import Literal

from pydantic import Field, field_validator

from rubricate.errors import VerifierError
from rubricate.judges.verifiers.numerals import Decimal, Number, find_numbers
from rubricate.judges.verifiers.patterns import bounded
from rubricate.judges.verifiers.registry import Check, Input, VerifierArgs, verifier
from rubricate.judges.verifiers.text import snippet, words

__all__ = ["ExactArgs", "FuzzyArgs", "NumberArgs", "lcs_ratio", "normalised", "token_f1"]


class _Extract(VerifierArgs):
    """Where in the response the answer is: group 1 (or the whole) of the last match of `extract`, if given."""

    extract: str | None = None

    @field_validator("extract")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            bounded(value)
        return value

    def answer(self, response: str) -> str | None:
        """The part of the response to compare; None when the pattern does not match."""
        if self.extract is None:
            return response
        matches = deque(bounded(self.extract).finditer(response), maxlen=1)
        if not matches:
            return None
        last = matches[0]
        try:
            return last.group(1)
        except IndexError:
            return last.group()


class NumberArgs(_Extract):
    """Which number is right, which of the response's counts, and how near it must be.

    Attributes:
        value: the right number, as a number or as text such as `3/4`; without it, the last number of the
            reference.
        tolerance: largest absolute difference, included.
        relative: largest difference as a share of the right value, included. The larger of the two holds.
        which: `last` or `first` number of the response (or of what `extract` matches), or `any` of them. With
            `last`, a LaTeX `\\boxed{}` has precedence.
        decimal: the decimal mark, see `find_numbers`.
        percent: `keep` reads 25% as 25, `ratio` as 0.25, `either` accepts both.
    """

    value: int | float | str | None = None
    tolerance: float = Field(default=0.0, ge=0.0)
    relative: float = Field(default=1e-9, ge=0.0)
    which: Literal["last", "first", "any"] = "last"
    decimal: Decimal = "auto"
    percent: Literal["keep", "ratio", "either"] = "keep"

    @field_validator("value", mode="before")
    @classmethod
    def _readable(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("must be a number, not true or false")
        if isinstance(value, str) and len(find_numbers(value)) != 1:
            raise ValueError("must hold exactly one number")
        return value


_BOXED = re.compile(r"\\boxed\s?\{((?:[^{}]|\{[^{}]*\}){0,200})\}")


@verifier("number", NumberArgs)
def number(given: Input, args: NumberArgs) -> Check:
    """The response gives the right number within a tolerance; compared exactly, without rounding errors."""
    wanted = _wanted(given, args)
    text = args.answer(given.response)
    if text is None:
        return Check(False, "the answer's pattern does not match")
    boxed = _BOXED.findall(text) if args.which == "last" else []
    chosen = _chosen(boxed[-1] if boxed else text, args)
    if not chosen:
        return Check(False, "no number in the response")
    allowed = max(Fraction(repr(args.tolerance)), Fraction(repr(args.relative)) * max(map(abs, wanted)))
    met = any(abs(value - right) <= allowed for one in chosen for value in _values(one, args) for right in wanted)
    shown = "any number" if args.which == "any" else f"the {args.which} number, {_shown(chosen[0])},"
    return Check(met, f"{shown} {'is' if met else 'is not'} {_shown(Number(wanted[0]))}")


_PART = 10_000


def _chosen(text: str, args: NumberArgs) -> list[Number]:
    """The number or numbers that count; for the first and the last, not all of a long text is read."""
    if args.which == "any":
        return find_numbers(text, args.decimal)
    last = args.which == "last"
    found = find_numbers(text[-_PART:] if last else text[:_PART], args.decimal)
    # A number at the cut may be half a number; with two of them, the outer one is whole.
    if len(text) > _PART and len(found) < 2:
        found = find_numbers(text, args.decimal)
    return found[-1:] if last else found[:1]


def _wanted(given: Input, args: NumberArgs) -> list[Fraction]:
    if isinstance(args.value, int | float):
        return [Fraction(repr(args.value))]
    source = args.value if args.value is not None else given.reference
    if source is None:
        raise VerifierError("there is no number to compare with", hint="give the argument 'value' or a reference")
    values = _values((find_numbers(source, args.decimal) or [Number(None)])[-1], args)
    if not values:
        raise VerifierError("the reference has no number", hint="give the argument 'value'")
    return values


def _values(found: Number, args: NumberArgs) -> list[Fraction]:
    """What a number may stand for: 25% for 25, for 0.25, or for either."""
    if found.value is None:
        return []
    if not found.percent or args.percent == "keep":
        return [found.value]
    return [found.value / 100] if args.percent == "ratio" else [found.value, found.value / 100]


def _shown(found: Number) -> str:
    if found.value is None:
        return "too large to read"
    try:
        return f"{float(found.value):g}{'%' if found.percent else ''}"
    except OverflowError:
        return "a very large number"


Normalisation = Literal["none", "space", "text", "squad"]
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_OUTER = string.punctuation + "。、！？「」『』“”‘’„«»…（）" + string.whitespace


def normalised(text: str, how: Normalisation) -> str:
    """A text as it is compared.

    `none`: as it is. `space`: runs of white space made one blank, none at the ends. `text`: NFKC and case-folded,
    too, without punctuation at the ends. `squad`: lower case, no ASCII punctuation, no a/an/the (Rajpurkar et
    al. 2016, the evaluation script of SQuAD).
    """
    if how == "none":
        return text
    if how == "space":
        return " ".join(text.split())
    if how == "squad":
        bare = text.lower().translate(str.maketrans("", "", string.punctuation))
        return " ".join(_ARTICLES.sub(" ", bare).split())
    folded = unicodedata.normalize("NFKC", text).casefold()
    stripped = " ".join(folded.split()).strip(_OUTER)
    # A lone sign, such as the answer "+", must not vanish.
    return stripped or " ".join(folded.split())


class _Answers(_Extract):
    answers: tuple[str, ...] = ()

    def expected(self, given: Input) -> tuple[str, ...]:
        """The right answers: those given, otherwise the reference."""
        if self.answers:
            return self.answers
        if given.reference is None:
            raise VerifierError(
                "there is no answer to compare with", hint="give the argument 'answers' or a reference"
            )
        return (given.reference,)


class ExactArgs(_Answers):
    """The right answers (the reference unless given), of which one must be equal.

    Attributes:
        answers: spellings of the right answer.
        normalise: what is made equal first, see `normalised`.
        extract: a pattern whose last match (its group 1) is compared in place of the whole response.
    """

    normalise: Normalisation = "text"


@verifier("exact", ExactArgs)
def exact(given: Input, args: ExactArgs) -> Check:
    """The response, or what `extract` finds in it, equals the reference after normalisation."""
    expected = args.expected(given)
    text = args.answer(given.response)
    if text is None:
        return Check(False, "the answer's pattern does not match")
    found = normalised(text, args.normalise)
    met = any(found == normalised(answer, args.normalise) for answer in expected)
    return Check(met, f"{snippet(found)} {'equals' if met else 'does not equal'} the reference")


class FuzzyArgs(_Answers):
    """How similar the response must be to one of the answers (the reference unless given).

    Attributes:
        threshold: the similarity wanted, in (0, 1].
        measure: `characters`: 2·LCS/(m+n) over the normalised characters; `words`: F1 over the bags of words, as
            in SQuAD.
        normalise: what is made equal first, see `normalised`.
        partial: give the similarity as partial credit when it is below the threshold.
    """

    threshold: float = Field(default=0.8, gt=0.0, le=1.0)
    measure: Literal["characters", "words"] = "characters"
    normalise: Normalisation = "text"
    partial: bool = False


@verifier("fuzzy", FuzzyArgs)
def fuzzy(given: Input, args: FuzzyArgs) -> Check:
    """The response, or what `extract` finds in it, is similar to the reference."""
    expected = args.expected(given)
    text = args.answer(given.response)
    if text is None:
        return Check(False, "the answer's pattern does not match", 0.0 if args.partial else None)
    found = normalised(text, args.normalise)
    ratio = max(_similarity(found, normalised(answer, args.normalise), args) for answer in expected)
    met = ratio >= args.threshold
    score = (1.0 if met else ratio) if args.partial else None
    return Check(met, f"similarity {ratio:.3f}, wanted {args.threshold:g}", score, ratio)


def _similarity(found: str, answer: str, args: FuzzyArgs) -> float:
    if args.measure == "words":
        return token_f1(found, answer)
    # The lengths alone bound the ratio. A response cannot escape judgement by being endless.
    bound = 2 * min(len(found), len(answer)) / max(1, len(found) + len(answer))
    if _too_long(found, answer) and bound < args.threshold and not args.partial:
        return bound
    return lcs_ratio(found, answer)


_LCS_LIMIT = 40_000_000_000


def lcs_ratio(left: str, right: str) -> float:
    """2·LCS/(m+n), in [0, 1]: the share of characters in a longest common subsequence; 1 for two empty texts.

    Bit-parallel (Hyyrö 2004): m·n/64 word operations. Raises VerifierError when both texts are so long that it
    would take more than a few seconds (m·n above 4·10¹⁰).
    """
    if not left and not right:
        return 1.0
    if _too_long(left, right):
        raise VerifierError(
            "the response and the reference are too long to compare by characters", hint="use `words`"
        )
    # Few long additions are faster than many short ones: the longer text makes the bits.
    short, long = sorted((left, right), key=len)
    places = _places(long, set(short))
    full = (1 << len(long)) - 1
    rows = full
    for char in short:
        matches = rows & places.get(char, 0)
        rows = ((rows + matches) | (rows - matches)) & full
    return 2 * (len(long) - rows.bit_count()) / (len(left) + len(right))


def _places(text: str, chars: set[str]) -> dict[str, int]:
    """For each of the characters, an integer whose bits say where in the text it stands."""
    import numpy as np

    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return {
        char: int.from_bytes(np.packbits(codes == ord(char), bitorder="little").tobytes(), "little")
        for char in chars
    }


def _too_long(left: str, right: str) -> bool:
    return len(left) * len(right) > _LCS_LIMIT


def token_f1(left: str, right: str) -> float:
    """F1 of the two bags of words, in [0, 1]; 1 for two texts without words (SQuAD)."""
    bags = Counter(words(left)), Counter(words(right))
    total = bags[0].total() + bags[1].total()
    return 2 * (bags[0] & bags[1]).total() / total if total else 1.0
