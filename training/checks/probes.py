"""Kinds of criteria that code decides on the finished text: what may be asked of it, and the answer.

A probe offers few questions at a time, of both answers where it can. It offers none where a careful reader could
be of two minds.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rubricate.judges.verifiers.text import words
from rubricate.training.checks.draft import Draft

__all__ = ["NAMES", "PROBES", "Probed"]

NAMES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "en": "English",
        "de": "German",
        "fr": "French",
        "es": "Spanish",
        "it": "Italian",
        "pt": "Portuguese",
        "nl": "Dutch",
        "zh": "Chinese",
        "ja": "Japanese",
        "pl": "Polish",
        "sv": "Swedish",
    },
    "it": {
        "en": "inglese",
        "de": "tedesco",
        "fr": "francese",
        "es": "spagnolo",
        "it": "italiano",
        "pt": "portoghese",
    },
    "pt": {"en": "inglês", "de": "alemão", "fr": "francês", "es": "espanhol", "it": "italiano", "pt": "português"},
    "de": {"en": "englischer", "de": "deutscher", "fr": "französischer", "es": "spanischer", "it": "italienischer"},
    "fr": {"en": "anglais", "de": "allemand", "fr": "français", "es": "espagnol", "it": "italien"},
    "es": {"en": "inglés", "de": "alemán", "fr": "francés", "es": "español", "it": "italiano"},
}
"""Names of languages by the language that they are named in."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A question of a kind: what fills the wordings, the answer, and the size that answers are balanced within."""

    fill: Mapping[str, str] = field(default_factory=dict[str, str])
    met: bool = False
    bucket: str = ""


Probe = Callable[[Draft, random.Random], list[Probed]]
PROSE = frozenset({"paragraphs", "single"})
LISTS = frozenset({"bullets", "numbered"})


def _flag(value: bool | None) -> list[Probed]:
    return [] if value is None else [Probed(met=value)]


def _round(number: float) -> int:
    step = 5 if number < 100 else 10
    return max(5, step * round(number / step))


def _size(number: float, edges: tuple[int, ...]) -> str:
    return str(sum(number > edge for edge in edges))


WORD_EDGES = (35, 50, 65, 80, 100, 130, 170)


def _thresholds(count: int, rng: random.Random) -> list[int]:
    """A number clearly below a count and one clearly above it."""
    below = _round(count * rng.uniform(0.45, 0.88))
    above = _round(count * rng.uniform(1.12, 1.9))
    return [n for n in (below, above) if abs(n - count) >= max(3, count * 0.08)]


def _words_max(draft: Draft, rng: random.Random) -> list[Probed]:
    count = len(draft.measured.words)
    return [Probed({"n": str(n)}, count <= n, str(n)) for n in _thresholds(count, rng)]


def _words_min(draft: Draft, rng: random.Random) -> list[Probed]:
    count = len(draft.measured.words)
    return [Probed({"n": str(n)}, count >= n, str(n)) for n in _thresholds(count, rng)]


def _words_range(draft: Draft, rng: random.Random) -> list[Probed]:
    count = len(draft.measured.words)
    spans = (
        (count * rng.uniform(0.6, 0.85), count * rng.uniform(1.15, 1.5)),
        (count * rng.uniform(0.3, 0.5), count * rng.uniform(0.6, 0.85)),
        (count * rng.uniform(1.2, 1.4), count * rng.uniform(1.6, 2.2)),
    )
    found: list[Probed] = []
    for low, high in ((_round(a), _round(b)) for a, b in spans):
        if low < high:
            met = low <= count <= high
            found.append(
                Probed(
                    {"low": str(low), "high": str(high)}, met, f"{_size(low, WORD_EDGES)} {_size(high, WORD_EDGES)}"
                )
            )
    return found


def _plain(draft: Draft) -> bool:
    """Whether nobody would doubt what a sentence or paragraph of the text is."""
    odd = draft.marks & {"salutation", "sign_off", "subject_line", "title", "cut"}
    return not odd and not draft.measured.code and not draft.measured.postscript


def _sentences(draft: Draft, rng: random.Random, *, most: bool) -> list[Probed]:
    if not _plain(draft) or draft.layout not in PROSE | LISTS or draft.measured.sentences is None:
        return []
    count = draft.measured.sentences
    numbers = {count + rng.choice((1, 2, 3)), count - rng.choice((1, 2, 3))} - {-1, 0, 1}
    return [Probed({"n": str(n)}, count <= n if most else count >= n, str(n)) for n in sorted(numbers) if n > 1]


def _sentences_max(draft: Draft, rng: random.Random) -> list[Probed]:
    return _sentences(draft, rng, most=True)


def _sentences_min(draft: Draft, rng: random.Random) -> list[Probed]:
    return _sentences(draft, rng, most=False)


def _paragraphs(draft: Draft, rng: random.Random) -> list[Probed]:
    if draft.layout not in PROSE or not _plain(draft):
        return []
    count = draft.measured.paragraphs
    other = rng.choice([n for n in (2, 3, 4, 5) if n != count])
    return [Probed({"n": str(n)}, n == count, str(n)) for n in (count, other) if n > 1]


def _one_paragraph(draft: Draft, rng: random.Random) -> list[Probed]:
    if draft.layout not in PROSE or not _plain(draft):
        return []
    return _flag(draft.measured.paragraphs == 1)


def _list_length(draft: Draft, rng: random.Random) -> list[Probed]:
    count = draft.measured.bullets + draft.measured.numbered
    if draft.layout in ("table", "json", "broken_json"):
        return []
    if draft.layout not in LISTS:
        return [Probed({"n": str(n)}, False, str(n)) for n in (rng.choice((2, 3, 4, 5)),)]
    numbers = {count + 1, count + 2, count, count - 1} - {0, 1, -1}
    return [Probed({"n": str(n)}, count >= n, str(n)) for n in sorted(numbers)]


def _title(draft: Draft, rng: random.Random) -> list[Probed]:
    # A heading, a subject line or a salutation at the top may pass for a title.
    if "title" in draft.marks:
        return _flag(True)
    return [] if draft.layout == "headings" or "subject_line" in draft.marks else _flag(False)


_FIRST = re.compile(r"(?:^|[.!?] )([^\W\d_]+)\b")
_LAST = re.compile(r"\b([^\W\d_]+)[.!?]")


def _edge(draft: Draft, right: str, pattern: re.Pattern[str], rng: random.Random) -> list[Probed]:
    """The word at an edge of the response, and one that stands at the same edge of some sentence of the topic."""
    texts = [text for point in draft.topic.points for text in point.says]
    words = {word for word in pattern.findall(" ".join(texts)) if word.casefold() != right.casefold()}
    wrong = rng.choice(sorted(words)) if words else None
    found = [Probed({"word": right.capitalize() if pattern is _FIRST else right.lower()}, True)]
    return found + ([Probed({"word": wrong}, False)] if wrong else [])


def _starts_with(draft: Draft, rng: random.Random) -> list[Probed]:
    own = draft.measured.words
    if len(own) < 20 or not own[0].isalpha() or not draft.response.startswith(own[0]):
        return []
    return _edge(draft, own[0], _FIRST, rng)


def _ends_with(draft: Draft, rng: random.Random) -> list[Probed]:
    own = draft.measured.words
    if len(own) < 20 or draft.layout not in PROSE or draft.marks & {"cut", "sign_off"} or draft.measured.code:
        return []
    return _edge(draft, own[-1], _LAST, rng) if own[-1].isalpha() else []


def _content_words(texts: list[str]) -> list[str]:
    return [word for word in texts if len(word) > 4 and word.isalpha()]


def _elsewhere(draft: Draft, rng: random.Random) -> list[str]:
    """The words of a sentence that the topic has in store, whether the response has it or not."""
    point = rng.choice(draft.topic.points)
    return rng.choice((*point.says, *point.misses, *draft.topic.asides)).split()


def _contains_word(draft: Draft, rng: random.Random) -> list[Probed]:
    whole = draft.response.casefold()
    # What is there is taken from the same sentences as what is not, so that the word alone tells nothing.
    inside = [word for word in _content_words(words(draft.matter)) if word.casefold() in draft.measured.lowered]
    outside = [
        word
        for word in _content_words([part.strip(".,") for part in _elsewhere(draft, rng)])
        if word.casefold() not in whole
    ]
    return [
        Probed({"word": rng.choice(found).lower()}, met)
        for found, met in ((inside, True), (outside, False))
        if found
    ]


def _spans(parts: list[str]) -> list[str]:
    """Three words in a row without marks between them."""
    starts = range(len(parts) - 2)
    return [" ".join(parts[at : at + 3]) for at in starts if all(part.isalpha() for part in parts[at : at + 3])]


def _contains_phrase(draft: Draft, rng: random.Random) -> list[Probed]:
    whole = " ".join(draft.response.split()).casefold()
    inside = [span for span in _spans(draft.matter.split()) if span.casefold() in whole]
    outside = [span for span in _spans(_elsewhere(draft, rng)) if span.casefold() not in whole]
    return [Probed({"word": rng.choice(found)}, met) for found, met in ((inside, True), (outside, False)) if found]


def _word_count(draft: Draft, rng: random.Random) -> list[Probed]:
    counts: dict[str, int] = {}
    for word in draft.measured.lowered:
        if len(word) > 2 and word.isalpha():
            counts[word] = counts.get(word, 0) + 1
    often = [word for word, count in counts.items() if count >= 2]
    if not often:
        return []
    word = rng.choice(often)
    count = counts[word]
    once = rng.choice([word for word in counts if counts[word] == 1] or [word])
    found = [(word, rng.randint(2, count)), (word, count + 1), (once, 2)]
    return [Probed({"word": word, "n": str(n)}, counts[word] >= n, str(min(n, 4))) for word, n in found]


def _ends_question(draft: Draft, rng: random.Random) -> list[Probed]:
    if draft.marks & {"sign_off", "cut"} or draft.layout in ("json", "broken_json"):
        return []
    return _flag(draft.response.rstrip().endswith("?"))


def _cased(draft: Draft, *, lower: bool) -> list[Probed]:
    text = draft.response
    if not draft.measured.cased:
        return []
    return _flag(not any(char.isupper() for char in text) if lower else not any(char.islower() for char in text))


def _digits(draft: Draft, rng: random.Random) -> list[Probed]:
    # Whether the numbers of a list count is open to doubt.
    return [] if draft.layout == "numbered" else _flag(any(char.isdigit() for char in draft.response))


def _quotes(draft: Draft, rng: random.Random) -> list[Probed]:
    doubtful = draft.layout in ("json", "broken_json") or draft.measured.code
    return [] if doubtful else _flag(draft.measured.quotes)


def _parentheses(draft: Draft, rng: random.Random) -> list[Probed]:
    return [] if draft.measured.code else _flag("(" in draft.response or "（" in draft.response)


def _language(draft: Draft, rng: random.Random) -> list[Probed]:
    if "mixed" in draft.marks or draft.language not in NAMES["en"]:
        return []
    other = rng.choice([name for name in ("en", "de", "fr", "es", "it") if name != draft.language])
    if draft.topic.language != draft.language:
        other = draft.topic.language
    return [
        Probed({"name": NAMES["en"][name], "code": name}, name == draft.language, name)
        for name in (draft.language, other)
    ]


def _postscript(draft: Draft, rng: random.Random) -> list[Probed]:
    return [] if draft.layout in ("json", "broken_json") else _flag(draft.measured.postscript)


def _mark(name: str, *, prose: bool = False) -> Probe:
    """A probe of something that was done by construction, or not."""

    def probe(draft: Draft, rng: random.Random) -> list[Probed]:
        if prose and draft.layout in ("json", "broken_json"):
            return []
        return _flag(name in draft.marks)

    return probe


def _is(read: Callable[[Draft], bool | None]) -> Probe:
    def probe(draft: Draft, rng: random.Random) -> list[Probed]:
        return _flag(read(draft))

    return probe


PROBES: Mapping[str, Probe] = {
    "words_max": _words_max,
    "words_min": _words_min,
    "words_range": _words_range,
    "sentences_max": _sentences_max,
    "sentences_min": _sentences_min,
    "paragraphs_exact": _paragraphs,
    "one_paragraph": _one_paragraph,
    "bullets": _is(lambda draft: draft.measured.bullets > 0),
    "numbered": _is(lambda draft: draft.measured.numbered > 0),
    "list_length": _list_length,
    "headings": _is(lambda draft: draft.measured.headings),
    "bold": _is(lambda draft: draft.measured.bold),
    "table": _is(lambda draft: draft.measured.table),
    "code_block": _is(lambda draft: draft.measured.code),
    "json": _is(lambda draft: draft.measured.json),
    "title": _title,
    "starts_with": _starts_with,
    "ends_with": _ends_with,
    "contains_word": _contains_word,
    "contains_phrase": _contains_phrase,
    "word_count": _word_count,
    "no_commas": _is(lambda draft: not any(mark in draft.response for mark in ",，、")),
    "lower_case": lambda draft, rng: _cased(draft, lower=True),
    "upper_case": lambda draft, rng: _cased(draft, lower=False),
    "ends_question": _ends_question,
    "exclamation": _is(lambda draft: "!" in draft.response or "！" in draft.response),
    "emoji": _is(lambda draft: draft.measured.emoji),
    "digits": _digits,
    "quotes": _quotes,
    "parentheses": _parentheses,
    "postscript": _postscript,
    "placeholder": _is(lambda draft: draft.measured.placeholder),
    "repeated_sentence": _mark("repeated"),
    "cut_off": _mark("cut", prose=True),
    "salutation": _mark("salutation", prose=True),
    "sign_off": _mark("sign_off", prose=True),
    "subject_line": _mark("subject_line", prose=True),
    "mixed_language": _mark("mixed"),
    "in_language": _language,
}
"""By the name of the kind."""
