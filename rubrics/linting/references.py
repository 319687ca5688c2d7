"""Rules about criteria that cannot be understood alone (family R). A judge sees one criterion at a time."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from rubricate.rubrics.linting.base import Found, Subject, described, rule
from rubricate.rubrics.linting.words import Text

__all__: list[str] = []

_THING = (
    r"(?:criteri(?:on|a)|rubric items?|rubric points?|checklist items?|requirements?|items?|rules?|conditions?)"
)
_OTHER = re.compile(
    rf"\b(?:the|this|that|these|those|any|all|of)\s+(?:above|aforementioned)\s+(?:\w+\s+)?{_THING}\b"
    r"|\b(?:the|this|that|these|those|any|all|of)\s+(?:previous|preceding|prior|earlier|next|subsequent|other)\s+"
    r"(?:criteri(?:on|a)|requirements?|rubric items?|checklist items?)\b"
    rf"|\b{_THING}\s+(?:(?:listed|mentioned|stated|given|described)\s+)?(?:above|below)\b(?!\s+(?:the|a|an|\d))"
    r"|\b(?:criterion|criteria|rubric item|checklist item)\s*(?:#|no\.?|number)?\s*"
    r"(?:\d+|one|two|three|four|five)\b"
    r"|\bsame as (?:criterion|item|rule|requirement|#|no\.?|number)\s*#?\d*"
    r"|\b(?:see|cf\.?|as in|as per|per|from|like)\s+(?:item|rule|requirement|criterion|#)\s*#?\d+\b"
    r"|\b(?:if|when|provided|given)\s+(?:the )?(?:previous|preceding|above|first|last)\s+(?:one|criterion|item)\b",
    re.I,
)
_ABOVE = re.compile(
    r"\b(?:(?:as|also|same as|like)\s+(?:(?:mentioned|described|stated|listed|noted|given|defined|explained)\s+)?"
    r"(?:above|below|before|previously|earlier)(?!\s+(?:the|a|an|all|average|\d))"
    r"|aforementioned|aforesaid|the (?:above|former|latter)[- ]?(?:mentioned)?(?=\s*[.,;:)]|\s*$|"
    r"\s+(?:is|are|holds?|appl(?:y|ies)|points?|steps?|facts?|errors?|topics?|elements?|aspects?|items?|things?|"
    r"names?)\b)|(?:mentioned|described|listed|stated|noted) (?:above|below|earlier|previously)(?=\s*[.,;:)]|\s*$)"
    r"|the \w+ (?:above|below)(?=\s*[.,;:)]|\s*$|\s+(?:is|are|was|were|has|have)\b)|ditto|idem)(?!\w)",
    re.I,
)
_PRONOUN = re.compile(
    r"\W*(?:(?:also|and|but|furthermore|moreover|additionally|in addition|then)\b,?\s+)?"
    r"(?:(?:this|that|these|those|they|he|she|its|their|his|her)\s+(?:is|are|was|were|has|have|must|"
    r"should|also|\w+s)\b"
    r"|it\s+also\b|(?:and|but|also|furthermore|moreover|additionally|otherwise|likewise)\b,?\s+\w+)",
    re.I,
)
_OWN = re.compile(
    r"\W*(?:this|that|these|those|the)\s+(?:response|answer|output|text|reply|model|essay|story|summary)", re.I
)
_REFERENCE = re.compile(
    r"\b(?:reference|gold|golden|gold[- ]standard|ground[- ]truth"
    r"|(?:the|a|an) (?:model|sample|expected|official|ideal))"
    r"[- ](?:answer|response|solution|text|output|summary|translation)s?\b|\banswer key\b"
    r"|\bthe reference\b(?=\s*[.,;:)]|\s*$|\s+(?:is|says|states|gives|mentions|does|has|lists|contains)\b)",
    re.I,
)
# Only from where a word begins: else a run of letters or digits is gone through from each of them.
_ID = re.compile(r"(?<![A-Za-z0-9])(?:[A-Za-z]+[-_]?\d+|[a-z0-9]+(?:[-_][a-z0-9]+)+)")


@rule("R401", "refers-to-criterion")
def other_criterion(subject: Subject) -> Iterator[Found]:
    """A criterion speaks of another criterion: `the above criterion`, `see criterion 3`, `as in c2`.

    Judges that decide one criterion a call do not see the others, and shuffled or pruned rubrics have other
    numbers.

    Fix: write out what the other criterion says.
    """
    ids = {c.id: c for c in subject.criteria if _ID.fullmatch(c.id) and len(c.id) < 60}
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        found = _other(text)
        spoken = _mentioned(text.raw, ids) if any(char in "0123456789-_" for char in text.raw) else ()
        named = next((name for name in spoken if name != criterion.id), None)
        if named is not None:
            fix = f'write out what {named!r} says: "{ids[named].text.strip()[:120]}"'
            yield Found(
                (criterion.id, named), f"it speaks of the criterion {named!r}, which its judge may not see", fix
            )
        elif found is not None:
            message = f'it speaks of other criteria ("{found[0].strip()}"), which its judge may not see'
            yield Found((criterion.id,), message, "write out what the other criterion says")


def _other(text: Text) -> re.Match[str] | None:
    """Words that speak of other criteria. Looking for a few letters first spares most texts the long pattern."""
    return _OTHER.search(text.unquoted) if any(part in text.folded for part in _NEEDED) else None


_NEEDED = ("criteri", "item", "requirement", "rule", "condition", "same as", "#", "previous", "preceding", "above")


def _mentioned(text: str, ids: Container[str]) -> Iterator[str]:
    """Ids of criteria that occur in a text where they can hardly be anything else."""
    for match in _ID.finditer(text):
        name = match[0]
        if name not in ids:
            continue
        before = text[max(0, match.start() - 24) : match.start()].lower()
        if len(name) > 8 and not name.isalpha():
            if re.search(r"\d|_", name) or re.search(_POINTS_AT, before):
                yield name
        elif re.search(_POINTS_AT, before):
            yield name


_POINTS_AT = (
    r"(?:\b(?:see|as in|as per|per|like|criterion|criteria|item|rule|from|with|and|or|if|than|for|of|in)|[(\[])"
    r"\s*[`'\"]?$"
)


@rule("R402", "not-self-contained")
def dangling(subject: Subject) -> Iterator[Found]:
    """A criterion points outside itself: `as above`, `the aforementioned`, or it begins with `This is` or `Also`.

    Its judge sees prompt, response and this text alone, and has to guess what is meant. Leaves of nested rubrics
    may rely on what their groups say, and are not reported for the word they begin with.

    Fix: name what is meant.
    """
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        if criterion.path:
            continue
        above, opening = _ABOVE.search(text.unquoted), _PRONOUN.match(text.raw)
        if above is not None and _other(text) is None:
            message = f'"{above[0].strip()}" points at something outside this criterion'
            yield Found((criterion.id,), message, "name what is meant in the criterion itself")
        elif opening is not None and above is None and not _OWN.match(text.raw):
            message = f'it begins with "{opening[0].strip()}", as if another sentence went before'
            yield Found((criterion.id,), message, "begin with what it is about, such as `The response …`")


@rule("R403", "missing-reference")
def missing_reference(subject: Subject) -> Iterator[Found]:
    """A criterion speaks of a reference answer, and the rubric's row has none.

    The judge cannot compare with what it does not see, and makes it up.

    Fix: put the reference into the row (`reference_answer`), or write what it says into the criterion.
    """
    if subject.reference:
        return
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        found = _REFERENCE.search(text.unquoted)
        if found is not None and not (
            criterion.path or described(criterion) and found[0].lower() == "model answer"
        ):
            message = f'it speaks of "{found[0].strip()}", and there is none here'
            yield Found((criterion.id,), message, "add reference_answer to the row, or write out what it says")
