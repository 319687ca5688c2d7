"""Rules about a criterion and its prompt and reference (family Q). They need the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.linting.base import Found, Severity, Subject, rule
from rubricate.rubrics.linting.constraints import (
    FORMATS,
    find_constraints,
    find_formats,
    find_languages,
    numbers_in,
)
from rubricate.rubrics.linting.scripts import language_of
from rubricate.rubrics.linting.words import Text

__all__: list[str] = []

_PHRASE = re.compile(
    r"\b(?:contains?|includes?|uses?|using|has|with|ends?|begins?|starts?|opens?|"
    r"closes?)\b[^.;\"“`']{0,30}?\b(?:exact |literal |specific )?"
    r"(?:words?|phrases?|keywords?|terms?|hashtags?|title|sentence|line|string)\s+(?:[\"“`']|"
    r"#)(?P<phrase>[^\"”`'\n]{1,80})",
    re.I,
)


def _unasked(text: Text, known: str) -> Iterator[tuple[str, str]]:
    """What a text demands that is checkable and not mentioned, and the words that say it."""
    numbers: set[int] | None = None
    for found in find_constraints(text.raw):
        if (
            found.strong
            and found.exact
            and found.unit in ("words", "sentences", "paragraphs", "characters", "bullets")
        ):
            numbers = numbers_in(known) if numbers is None else numbers
            bounds = {bound for bound in (found.low, found.high) if bound is not None and bound > 1}
            if bounds and not any(near in numbers for bound in bounds for near in (bound - 1, bound, bound + 1)):
                yield f"the number of {found.unit}", found.text
    for language in find_languages(text.raw):
        if language not in known.casefold() and language.capitalize() != language_of(Text(known)):
            yield "a language", f"in {language.capitalize()}"
    for name in find_formats(text.raw):
        if not re.search(FORMATS[name], known, re.I):
            yield "a format", name
    for match in _PHRASE.finditer(text.raw):
        if match["phrase"].casefold().strip() not in known.casefold():
            yield "a wording", match["phrase"].strip()


@rule("Q701", "not-asked")
def not_asked(subject: Subject) -> Iterator[Found]:
    """A criterion demands something checkable that neither prompt nor reference mentions.

    A limit of words, a language, an output format, a literal phrase: nobody could know of it, and a policy learns
    to do it everywhere. Needs the prompt: in the row, or given.

    Fix: remove the criterion, or put the demand into the prompt.
    """
    if not subject.prompt.strip():
        return
    known = f"{subject.prompt}\n{subject.reference}"
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        for what, words in _unasked(text, known):
            message = f'it demands {what} ("{words}") that the prompt does not ask for'
            yield Found((criterion.id,), message, "remove it, or put the demand into the prompt")


@rule("Q702", "not-asked-by-model")
def not_asked_by_model(subject: Subject) -> Iterator[Found]:
    """A language model says that the prompt does not ask for what a criterion demands (needs one: `model=`).

    Fix: remove the criterion, or put the demand into the prompt, or leave it if any good response does it.
    """
    for index, why in (subject.unasked or {}).items():
        criterion: Criterion = subject.criteria[index]
        message = "the prompt does not ask for it, says the model" + (f": {why}" if why else "")
        yield Found((criterion.id,), message, "remove it, or put the demand into the prompt")


@rule("Q703", "quotes-reference", parameters=("quoted_words",))
def quotes_reference(subject: Subject) -> Iterator[Found]:
    """A criterion copies a long piece of the reference answer (15 words in a row).

    It asks for wording, not for content, and rewards those who have seen the reference (RaR, 2507.17746, asks
    generators for no large copied blocks).

    Fix: say what the passage states, in a few words.
    """
    span = subject.limits.quoted_words
    reference = Text(subject.reference).words if subject.reference.strip() else ()
    if len(reference) < span:
        return
    runs = {reference[at : at + span] for at in range(len(reference) - span + 1)}
    prompt = Text(subject.prompt).words
    asked = {prompt[at : at + span] for at in range(len(prompt) - span + 1)}
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        words = text.words
        copied = [at for at in range(len(words) - span + 1) if words[at : at + span] in runs]
        if copied and words[copied[0] : copied[0] + span] not in asked:
            shown = " ".join(words[copied[0] : copied[0] + 8])
            message = f'it copies {span} words and more of the reference ("{shown} …")'
            yield Found((criterion.id,), message, "say what the passage states, in a few words")


@rule("Q704", "model-unanswered", Severity.INFO)
def unanswered(subject: Subject) -> Iterator[Found]:
    """The model that was to say what the prompt asks for gave no answer that can be read.

    Whether the criteria are asked for is unknown: nothing is taken for granted.

    Fix: run again, or choose another model.
    """
    if subject.unanswered:
        yield Found((), f"what the prompt asks for is unknown: {subject.unanswered}", "run again, or another model")
