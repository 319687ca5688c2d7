"""What verifiers demand, in a form in which two of them can be compared."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rubricate.narrow import as_array, as_number
from rubricate.rubrics.criterion import VerifierSpec

__all__ = ["Demand", "conflicts", "demands_of", "span_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """One thing that a verifier demands.

    Attributes:
        kind: `range`, `required`, `forbidden`, `start`, `end`, `language`, `case`, `answer`, `no_comma`, `nth`.
        verifier: the verifier's name, for messages.
        unit: what a range counts, or the number of the word.
        low, high: the range.
        texts: phrases, languages or answers.
        case_sensitive: whether upper and lower case differ.
        whole_word: whether a forbidden phrase counts as a whole word alone.
    """

    kind: str
    verifier: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    texts: tuple[str, ...] = ()
    case_sensitive: bool = False
    whole_word: bool = True
    args: Mapping[str, object] = field(default_factory=dict[str, object])


_COUNTS = {
    "words": "words",
    "sentences": "sentences",
    "paragraphs": "paragraphs",
    "lines": "lines",
    "characters": "characters",
    "tokens": "tokens",
    "bullets": "bullets",
    "numbered": "numbered items",
    "headings": "headings",
    "table": "tables",
    "code": "code blocks",
    "sections": "sections",
    "citations": "citations",
}
_RELATED = {
    "length_constraints:number_words": ("words", "num_words", "relation"),
    "length_constraints:number_sentences": ("sentences", "num_sentences", "relation"),
    "keywords:frequency": ("occurrences", "frequency", "relation"),
}
_EXACTLY = {
    "length_constraints:number_paragraphs": ("paragraphs by ***", "num_paragraphs"),
    "detectable_format:number_bullet_lists": ("bullets", "num_bullets"),
}
_OPTIONS = ("language", "tokenizer", "spaces", "level", "titles", "kinds", "top_level", "divider", "bold")


def span_of(spec: VerifierSpec) -> tuple[str, float | None, float | None] | None:
    """What a verifier counts, and its range; None for those that count nothing."""
    args = spec.args
    if spec.name in _COUNTS:
        return _COUNTS[spec.name], as_number(args.get("min")), as_number(args.get("max"))
    if spec.name in _RELATED:
        unit, key, relation = _RELATED[spec.name]
        value = as_number(args.get(key))
        if value is None:
            return None
        return (unit, None, value - 1) if args.get(relation) == "less than" else (unit, value, None)
    if spec.name in _EXACTLY:
        unit, key = _EXACTLY[spec.name]
        value = as_number(args.get(key))
        return None if value is None else (unit, value, value)
    return None


def _strings(value: object) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else as_array(value) or ()
    return tuple(part for part in listed if isinstance(part, str) and part)


def demands_of(spec: VerifierSpec) -> Iterator[Demand]:
    """What a verifier demands, as far as it can be compared."""
    span, args, name = span_of(spec), spec.args, spec.name
    if span is not None and span[0] != "occurrences":
        options = {key: args[key] for key in _OPTIONS if key in args}
        low, high = (span[1] if span[1] is not None else -math.inf), (span[2] if span[2] is not None else math.inf)
        yield Demand("range", name, span[0], low, high, args=options)
    sensitive = args.get("case_sensitive") is True
    texts = next((found for key in _TEXTS.get(name, ()) if (found := _strings(args.get(key)))), ())
    if name == "occurrences":
        low, high = as_number(args.get("min")), as_number(args.get("max"))
        sensitive = args.get("case_sensitive", True) is not False
        if high == 0:
            yield Demand("forbidden", name, texts=texts, case_sensitive=sensitive, whole_word=False)
        elif low:
            yield Demand("required", name, texts=texts, case_sensitive=sensitive)
    elif name == "keywords:frequency" and span is not None and (span[1] or 0) >= 1:
        yield Demand("required", name, texts=texts)
    elif name in ("required", "keywords:existence") and (name != "required" or _all_wanted(args, texts)):
        yield Demand("required", name, texts=texts, case_sensitive=sensitive)
    elif name in ("forbidden", "keywords:forbidden_words"):
        whole = args.get("whole_word", True) is not False
        yield Demand("forbidden", name, texts=texts, case_sensitive=sensitive, whole_word=whole)
    elif name in _SIMPLE and (texts or name in _CASES or name == "punctuation:no_comma"):
        unit = _CASES.get(name, str(args.get("n", "")))
        yield Demand(_SIMPLE[name], name, unit, texts=texts, case_sensitive=sensitive)


_TEXTS: Mapping[str, tuple[str, ...]] = {
    "required": ("phrases",),
    "forbidden": ("phrases",),
    "keywords:existence": ("keywords",),
    "keywords:forbidden_words": ("forbidden_words",),
    "keywords:frequency": ("keyword",),
    "occurrences": ("text",),
    "starts_with": ("phrase",),
    "ends_with": ("phrase",),
    "startend:end_checker": ("end_phrase",),
    "language": ("language",),
    "language:response_language": ("language",),
    "exact": ("answers",),
    "nth_word": ("word",),
}
_SIMPLE = {
    "starts_with": "start",
    "ends_with": "end",
    "startend:end_checker": "end",
    "language": "language",
    "language:response_language": "language",
    "exact": "answer",
    "nth_word": "nth",
    "change_case:english_capital": "case",
    "change_case:english_lowercase": "case",
    "punctuation:no_comma": "no_comma",
}
_CASES = {"change_case:english_capital": "upper case", "change_case:english_lowercase": "lower case"}


def _all_wanted(args: Mapping[str, object], texts: Sequence[str]) -> bool:
    least = as_number(args.get("min"))
    return least is None or least >= len(texts)


def _fold(text: str, sensitive: bool) -> str:
    return " ".join((text if sensitive else text.casefold()).split())


def _holds(text: str, part: str, one: Demand, two: Demand) -> bool:
    """Whether a text that must occur holds one that must not."""
    sensitive = one.case_sensitive and two.case_sensitive
    outer, inner = _fold(text, sensitive), _fold(part, sensitive)
    if not two.whole_word:
        return inner in outer
    return re.search(rf"(?<!\w){re.escape(inner)}(?!\w)", outer) is not None


def _ranges(one: Demand, two: Demand) -> str:
    if one.unit == two.unit and one.args == two.args:
        for low, high in ((one, two), (two, one)):
            if low.low > high.high:
                return f"at least {low.low:g} and at most {high.high:g} {one.unit}"
        return ""
    for low, high in ((one, two), (two, one)):
        least = _LEAST.get((low.unit, high.unit))
        if least is not None and least(low.low) > high.high:
            return f"at least {low.low:g} {low.unit} do not fit into {high.high:g} {high.unit}"
    return ""


def _same(count: float) -> float:
    return count


_LEAST: Mapping[tuple[str, str], Callable[[float], float]] = {
    ("words", "characters"): lambda count: 2 * count - 1,
    ("sentences", "words"): _same,
    ("sentences", "characters"): _same,
    ("paragraphs", "lines"): _same,
    ("paragraphs", "words"): _same,
    ("bullets", "lines"): _same,
}
"""How many of the second unit so many of the first need at least."""


def _presence(one: Demand, two: Demand) -> str:
    clash = next(((a, b) for a in one.texts for b in two.texts if _holds(a, b, one, two)), None)
    return f"{clash[0]!r} must occur and {clash[1]!r} must not" if clash else ""


def _fit(one: Demand, two: Demand) -> str:
    if two.unit == "characters":
        longest = max(one.texts, key=len, default="")
        return f"{longest[:40]!r} is longer than {two.high:g} characters" if len(longest) > two.high else ""
    if two.unit == "words":
        longest = max(one.texts, key=lambda text: len(text.split()), default="")
        return f"{longest[:40]!r} has more than {two.high:g} words" if len(longest.split()) > two.high else ""
    return ""


def _edges(one: Demand, two: Demand) -> str:
    sensitive = one.case_sensitive and two.case_sensitive
    a, b = _fold(one.texts[0], sensitive), _fold(two.texts[0], sensitive)
    fits = a.startswith(b) or b.startswith(a) if one.kind == "start" else a.endswith(b) or b.endswith(a)
    return "" if fits else f"it cannot {one.kind} with {one.texts[0]!r} and with {two.texts[0]!r}"


def _unequal(one: Demand, two: Demand) -> str:
    different = one.unit == two.unit and {t.casefold() for t in one.texts}.isdisjoint(
        t.casefold() for t in two.texts
    )
    return f"{' or '.join(one.texts)} and {' or '.join(two.texts)}" if different else ""


def _cases(one: Demand, two: Demand) -> str:
    return f"all {one.unit} and all {two.unit}" if one.unit != two.unit else ""


def _comma(one: Demand, two: Demand) -> str:
    text = next((text for text in one.texts if "," in text), "")
    return f"{text!r} has a comma, and none is allowed" if text else ""


def _sensitive_case(one: Demand, two: Demand) -> str:
    wrong = [t for t in one.texts if t != (t.upper() if two.unit == "upper case" else t.lower())]
    return f"{wrong[0]!r} must occur as it is, and all be {two.unit}" if one.case_sensitive and wrong else ""


_RULES: Mapping[tuple[str, str], Callable[[Demand, Demand], str]] = {
    ("range", "range"): _ranges,
    ("start", "start"): _edges,
    ("end", "end"): _edges,
    ("language", "language"): _unequal,
    ("answer", "answer"): _unequal,
    ("nth", "nth"): _unequal,
    ("case", "case"): _cases,
} | {
    (kind, other): check
    for kind in ("required", "start", "end")
    for other, check in (
        ("forbidden", _presence),
        ("range", _fit),
        ("no_comma", _comma),
        ("case", _sensitive_case),
    )
}


def conflicts(one: Demand, two: Demand) -> str:
    """Why no response can meet both, "" where one can."""
    check = _RULES.get((one.kind, two.kind))
    if check is not None:
        return check(one, two)
    check = _RULES.get((two.kind, one.kind))
    return check(two, one) if check is not None else ""
