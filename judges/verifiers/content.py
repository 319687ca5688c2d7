"""What a response says: phrases, beginnings and ends, single words, patterns, its language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from rubricate.judges.verifiers.bounds import AtLeastOne
from rubricate.judges.verifiers.detection import languages, probabilities
from rubricate.judges.verifiers.markdown import prose
from rubricate.judges.verifiers.patterns import bounded
from rubricate.judges.verifiers.registry import Check, Input, VerifierArgs, verifier
from rubricate.judges.verifiers.text import fold, has_word, snippet, words
from rubricate.narrow import as_object

__all__ = ["EdgeArgs", "ForbiddenArgs", "LanguageArgs", "NthWordArgs", "PhrasesArgs", "RegexArgs", "RequiredArgs"]


class PhrasesArgs(VerifierArgs):
    """Phrases, taken literally, and how they are looked for.

    Attributes:
        phrases: at least one; runs of white space in them match any white space, straight and typographic quotes
            are the same.
        case_sensitive: whether upper and lower case differ.
        whole_word: a phrase that begins or ends with a letter or digit must do so at a word's edge, so that
            `cat` is not in `category`. An edge in a script without spaces, or in Hangul, whose particles are
            written to the word, needs none.
    """

    phrases: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=1)
    case_sensitive: bool = False
    whole_word: bool = True

    @field_validator("phrases")
    @classmethod
    def _not_blank(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(phrase.strip() for phrase in value):
            raise ValueError("a phrase must not be blank")
        return value

    def found_in(self, text: str) -> list[str]:
        """The phrases that occur in the text, in their order."""
        folded = fold(text, case=self.case_sensitive)
        return [phrase for phrase in self.phrases if self._occurs(fold(phrase, case=self.case_sensitive), folded)]

    def _occurs(self, phrase: str, text: str) -> bool:
        if not self.whole_word:
            return phrase in text
        before, after = _joins(phrase[0]), _joins(phrase[-1])
        for start in _places(phrase, text):
            end = start + len(phrase)
            if before and start and _joins(text[start - 1]):
                continue
            if after and end < len(text) and _joins(text[end]):
                continue
            return True
        return False


def _places(phrase: str, text: str) -> Iterator[int]:
    start = text.find(phrase)
    while start >= 0:
        yield start
        start = text.find(phrase, start + 1)


# Thai to Lao, Burmese, Hangul, Khmer, kana, Han: scripts without spaces, or with particles written to the word.
_NO_EDGES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u30ff"
    "\u3130-\u318f\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)


def _joins(char: str) -> bool:
    """Whether a character next to a phrase makes it part of a longer word."""
    return (char.isalnum() or unicodedata.category(char)[0] == "M") and not _NO_EDGES.match(char)


class RequiredArgs(PhrasesArgs):
    """Phrases; how many of them must occur (all unless given); whether their share is partial credit."""

    min: int | None = Field(default=None, ge=1)
    partial: bool = False

    @model_validator(mode="after")
    def _enough(self) -> RequiredArgs:
        if self.min is not None and self.min > len(self.phrases):
            raise ValueError(f"argument 'min' is {self.min}, but there are only {len(self.phrases)} phrases")
        return self


@verifier("required", RequiredArgs)
def required(given: Input, args: RequiredArgs) -> Check:
    """All phrases occur, or at least `min` of them."""
    found = args.found_in(given.response)
    wanted = len(args.phrases) if args.min is None else args.min
    missing = [phrase for phrase in args.phrases if phrase not in found]
    met = len(found) >= wanted
    reason = f"{len(found)} of {len(args.phrases)} phrases" + (
        f"; missing {', '.join(map(snippet, missing[:3]))}" if missing else ""
    )
    return Check(met, reason, min(1.0, len(found) / wanted) if args.partial else None, len(found))


class ForbiddenArgs(PhrasesArgs):
    """Phrases that must not occur."""


@verifier("forbidden", ForbiddenArgs)
def forbidden(given: Input, args: ForbiddenArgs) -> Check:
    """None of the phrases occurs."""
    found = args.found_in(given.response)
    return Check(
        not found, f"found {', '.join(map(snippet, found[:3]))}" if found else "none of the phrases occurs"
    )


class EdgeArgs(VerifierArgs):
    """A phrase, taken literally, and whether upper and lower case differ (they do unless told)."""

    phrase: str = Field(min_length=1)
    case_sensitive: bool = True

    @field_validator("phrase")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    def texts(self, given: Input) -> tuple[str, str]:
        """Response and phrase without white space at both ends, as they are compared."""
        return fold(given.response, case=self.case_sensitive), fold(self.phrase, case=self.case_sensitive)


@verifier("starts_with", EdgeArgs)
def starts_with(given: Input, args: EdgeArgs) -> Check:
    """The response begins with the phrase; leading white space is ignored."""
    text, phrase = args.texts(given)
    return Check(text.startswith(phrase), f"begins with {snippet(text, 30)}")


@verifier("ends_with", EdgeArgs)
def ends_with(given: Input, args: EdgeArgs) -> Check:
    """The response ends with the phrase; trailing white space is ignored, nothing else is."""
    text, phrase = args.texts(given)
    return Check(text.endswith(phrase), f"ends with {snippet(text[-30:], 30)}")


class NthWordArgs(VerifierArgs):
    """A position (1 is the first word, -1 the last) and the word that must stand there."""

    n: int
    word: str = Field(min_length=1)
    case_sensitive: bool = False

    @field_validator("n")
    @classmethod
    def _not_zero(cls, value: int) -> int:
        if value == 0:
            raise ValueError("positions count from 1, or from -1 at the end")
        return value


@verifier("nth_word", NthWordArgs)
def nth_word(given: Input, args: NthWordArgs) -> Check:
    """The nth word is the given one; words are counted as `words` does."""
    found = words(given.response)
    place = args.n - 1 if args.n > 0 else len(found) + args.n
    if not 0 <= place < len(found):
        return Check(False, f"there are only {len(found)} words")
    met = fold(found[place], case=args.case_sensitive) == fold(args.word, case=args.case_sensitive)
    return Check(met, f"word {args.n} is {snippet(found[place])}")


class RegexArgs(AtLeastOne):
    """A regular expression in the syntax of Python's `re`, and how often it must match.

    Attributes:
        pattern: at most 5,000 characters; inline flags such as `(?i)` work.
        where: `search` looks anywhere, `whole` matches the whole response.
        ignore_case, multiline: the flags of those names.
        min, max: the number of matches; at least one unless told. `max: 0` says that it must not match.
    """

    pattern: str = Field(min_length=1)
    where: Literal["search", "whole"] = "search"
    ignore_case: bool = False
    multiline: bool = False

    @model_validator(mode="before")
    @classmethod
    def _never(cls, value: object) -> object:
        given = as_object(value)
        return {"min": 0, **given} if given is not None and given.get("max") == 0 else value

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        bounded(value)
        return value


@verifier("regex", RegexArgs)
def regex(given: Input, args: RegexArgs) -> Check:
    """The pattern matches. A search that takes more than two seconds is a failed check."""
    pattern = bounded(args.pattern, ignore_case=args.ignore_case, multiline=args.multiline)
    if args.where == "whole":
        return args.check(int(pattern.fullmatch(given.response) is not None), "matches")
    # One more than allowed is enough to decide, and few texts are worth counting to the end.
    stop = (args.max if args.max is not None else args.min or 0) + 1
    count = 0
    for _ in pattern.finditer(given.response):
        count += 1
        if count == stop:
            break
    return args.check(count, "matches")


class LanguageArgs(VerifierArgs):
    """The language or languages allowed: ISO 639-1 codes; `zh` stands for `zh-cn` and `zh-tw`.

    `min_probability` is what langdetect must give the languages together.
    """

    language: str | tuple[str, ...]
    min_probability: float = Field(default=0.5, ge=0.0, le=1.0)

    @field_validator("language")
    @classmethod
    def _known(cls, value: str | tuple[str, ...]) -> tuple[str, ...]:
        asked = (value,) if isinstance(value, str) else value
        codes = [
            code for entry in asked for code in (("zh-cn", "zh-tw") if entry.lower() == "zh" else (entry.lower(),))
        ]
        unknown = [code for code in codes if code not in languages()]
        if unknown or not codes:
            raise ValueError(f"unknown language {', '.join(unknown)!r}; known are zh, {', '.join(languages())}")
        return tuple(codes)


_URL = re.compile(r"https?://\S+")


@verifier("language", LanguageArgs)
def language(given: Input, args: LanguageArgs) -> Check:
    """The response is in the language. Code blocks and URLs are left out; a text without letters is in none.

    langdetect tells 55 languages apart; a text of a few words in a Latin script can mislead it. It is seeded.
    """
    text = _URL.sub(" ", "\n".join(prose(given.response)))
    found = probabilities(text) if has_word(text) else None
    if not found:
        return Check(False, "no words to tell a language by")
    share = min(1.0, sum(probability for code, probability in found if code in args.language))
    likeliest, probability = found[0]
    met = share > 0 and share >= args.min_probability
    return Check(met, f"looks like {likeliest} ({probability:.2f})", value=share)
