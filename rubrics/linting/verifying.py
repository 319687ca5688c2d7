"""Rules about verifiers: unknown, impossible, at odds with each other or with the text (family V)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rubricate.narrow import as_array, as_number
from rubricate.rubrics.criterion import Criterion, Polarity, VerifierSpec
from rubricate.rubrics.linting.base import Found, Severity, Subject, VerifierFault, rule
from rubricate.rubrics.linting.constraints import LANGUAGES, find_constraints, find_languages, numbers_in
from rubricate.rubrics.linting.demands import Demand, conflicts, demands_of, span_of
from rubricate.rubrics.linting.words import Text

__all__: list[str] = []


def _own_fault(spec: VerifierSpec) -> VerifierFault | None:
    """What is wrong whatever the verifier: a range that is empty, a pattern that does not compile."""
    low, high = as_number(spec.args.get("min")), as_number(spec.args.get("max"))
    if low is not None and high is not None and low > high:
        return VerifierFault(f"min {low:g} is larger than max {high:g}", f"swap them: min {high:g}, max {low:g}")
    if spec.name == "regex" and isinstance(pattern := spec.args.get("pattern"), str):
        import regex  # the module that the verifier uses, which knows more than `re`

        try:
            regex.compile(pattern)
        except regex.error as error:
            return VerifierFault(f"the pattern does not compile: {error}", "mend the pattern")
    return None


def _fault(subject: Subject, spec: VerifierSpec) -> VerifierFault | None:
    found = subject.check_verifier(spec) if subject.check_verifier is not None else None
    return found or _own_fault(spec)


@rule("V601", "unknown-verifier", Severity.ERROR)
def unknown(subject: Subject) -> Iterator[Found]:
    """A criterion names a verifier that does not exist. Needs `verifiers=`; the command line gives it.

    Every verdict about the criterion fails.

    Fix: correct the name, or import the module that registers it (`--import`).
    """
    for criterion, spec in _specs(subject):
        fault = _fault(subject, spec)
        if fault is not None and fault.unknown:
            yield Found((criterion.id,), fault.message, fault.hint or "correct the name, or --import its module")


@rule("V602", "verifier-arguments", Severity.ERROR)
def arguments(subject: Subject) -> Iterator[Found]:
    """A verifier's arguments cannot be used: an unknown or missing one, min above max, a broken pattern.

    Every verdict about the criterion fails, or no response can meet it.

    Fix: correct the argument that the message names.
    """
    for criterion, spec in _specs(subject):
        fault = _fault(subject, spec)
        if fault is not None and not fault.unknown:
            yield Found((criterion.id,), fault.message, fault.hint or "correct the argument")


@rule("V603", "verifiers-conflict", Severity.ERROR)
def conflict(subject: Subject) -> Iterator[Found]:
    """No response can meet two verifiers of one rubric, or one verifier alone.

    At most 20 words and at least 50; a phrase both required and forbidden; a required text longer than the limit;
    two languages; lower case throughout and upper case throughout. Penalties and criteria with a condition are left
    out.

    Fix: make the two agree, or remove one.
    """
    demands: list[tuple[Criterion, Demand]] = []
    for criterion, spec in _specs(subject):
        if criterion.polarity is Polarity.REWARD and criterion.condition is None and _fault(subject, spec) is None:
            demands += [(criterion, demand) for demand in demands_of(spec)]
    for at, (criterion, demand) in enumerate(demands[:400]):
        for other, earlier in demands[: at + 1]:
            problem = conflicts(earlier, demand) if earlier is not demand else ""
            if problem:
                ids = (criterion.id,) if other is criterion else (criterion.id, other.id)
                yield Found(ids, f"no response can meet it: {problem}", "make the two agree, or remove one")
                break


@rule("V604", "verifier-against-text")
def against_text(subject: Subject) -> Iterator[Found]:
    """A verifier checks something else than the criterion's text says.

    The text says at most 100 words and the verifier counts to 200; the text quotes one phrase and the verifier
    looks for another; the text says `mentions` and the verifier forbids. People read the text, the reward follows
    the verifier.

    Fix: make the two agree; the fix names the argument that would.
    """
    for criterion, spec in _specs(subject):
        if _fault(subject, spec) is None:
            text = subject.texts[subject.rubric.ids.index(criterion.id)]
            for message, fix in _disagreements(text, spec):
                yield Found((criterion.id,), message, fix)


def _specs(subject: Subject) -> Iterator[tuple[Criterion, VerifierSpec]]:
    for criterion in subject.criteria:
        if criterion.verifier is not None:
            yield criterion, criterion.verifier


def _disagreements(text: Text, spec: VerifierSpec) -> Iterator[tuple[str, str]]:
    span = span_of(spec)
    if span is not None:
        yield from _ranges(text, *span)
    phrases = [part for part in _phrases(spec.args) if part]
    if spec.name in _LOOKS_FOR and phrases and text.quotations:
        folded = {_plain(part) for part in phrases}
        said = {_plain(part) for part in text.quotations}
        if not any(one in other or other in one for one in folded for other in said):
            quoted = ", ".join(repr(part) for part in text.quotations[:3])
            message = f"the text quotes {quoted}, the verifier looks for {', '.join(map(repr, phrases[:3]))}"
            yield message, f"make the two agree, such as {spec.name} of {quoted}"
    if spec.name in ("required", "keywords:existence") and _FORBIDS.match(text.raw):
        yield "the text forbids, the verifier requires", "use the verifier `forbidden`, or reword the text"
    if spec.name in ("forbidden", "keywords:forbidden_words") and _REQUIRES.match(text.raw):
        yield "the text requires, the verifier forbids", "use the verifier `required`, or reword the text"
    language = spec.args.get("language")
    named = find_languages(text.raw)
    if spec.name in ("language", "language:response_language") and isinstance(language, str) and named:
        if language.split("-")[0] not in {LANGUAGES[name] for name in named}:
            message = f"the text says {named[0].capitalize()}, the verifier checks {language!r}"
            yield message, f"set language={LANGUAGES[named[0]]!r}, or reword the text"


_LOOKS_FOR = frozenset(
    ("required", "forbidden", "starts_with", "ends_with", "occurrences", "nth_word", "keywords:existence")
) | frozenset(("keywords:forbidden_words", "keywords:frequency", "startend:end_checker"))
_FORBIDS = re.compile(
    r"\W*(?:the \w+ )?(?:does not|doesn't|must not|should not|never|avoids?|contains? no|is free of)\b", re.I
)
_REQUIRES = re.compile(
    r"\W*(?:the \w+ )?(?:must |should )?(?:mentions?|contains?|includes?|uses?|names?|states?|says?)\b(?!\s+no\b)",
    re.I,
)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(".,!?;: ")


def _phrases(args: Mapping[str, object]) -> Iterator[str]:
    for key in ("phrases", "keywords", "forbidden_words"):
        for part in as_array(args.get(key)) or ():
            if isinstance(part, str):
                yield part
    for key in ("phrase", "text", "word", "keyword", "end_phrase"):
        part = args.get(key)
        if isinstance(part, str):
            yield part


def _ranges(text: Text, unit: str, low: float | None, high: float | None) -> Iterator[tuple[str, str]]:
    """Whether the range in the text, or at least one of its numbers, is the verifier's."""
    said = [found for found in find_constraints(text.raw) if found.unit == unit]
    shown = ", ".join(f"{name} {bound:g}" for name, bound in (("min", low), ("max", high)) if bound is not None)
    firm = [found for found in said if found.exact]
    if firm:
        if all(
            (found.low, found.high) != (low, high) and not _close(found.low, found.high, low, high)
            for found in firm
        ):
            wanted = ", ".join(
                f"{name}={bound}"
                for name, bound in (("min", firm[0].low), ("max", firm[0].high))
                if bound is not None
            )
            yield (
                f'the text says "{firm[0].text}", the verifier checks {shown}',
                f"set {wanted}, or reword the text",
            )
        return
    numbers = numbers_in(text.raw)
    bounds = {int(bound) for bound in (low, high) if bound is not None}
    if (
        len(numbers) == 1
        and bounds
        and not any(abs(n - bound) <= max(1, 0.5 * n) for n in numbers for bound in bounds)
    ):
        number = next(iter(numbers))
        yield f"the text says {number}, the verifier checks {shown}", "make the two agree"


def _close(low: float | None, high: float | None, other_low: float | None, other_high: float | None) -> bool:
    """Whether two ranges differ by one at most: `fewer than 20` is often written as max 20."""
    pairs = ((low, other_low), (high, other_high))
    # A lower bound of 0 or 1 is no bound to speak of.
    return all(
        (a or 0) <= 1 and (b or 0) <= 1
        if i == 0 and (a is None or b is None)
        else a is None and b is None or a is not None and b is not None and abs(a - b) <= 1
        for i, (a, b) in enumerate(pairs)
    )
