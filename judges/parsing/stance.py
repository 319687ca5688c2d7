"""What a sentence says about whether the criterion is met, in plain prose."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rubricate.judges.parsing import cues
from rubricate.judges.parsing.foreign import foreign_stance
from rubricate.judges.parsing.synonyms import Concept

__all__ = ["last_stance", "stances"]

_THING = r"criteri(?:on|a)|requirements?|conditions?|rules?|standards?|constraints?|checks?|expectations?"
_OBJECT = (
    rf"(?:(?:the|this|that|these|those|all|every|each|its|both|stated|given|of"
    rf"|above)\s+){{0,4}}(?:\w+\s+)?(?:{_THING})\b"
)
_ACTIVE = re.compile(
    r"\b(?P<verb>meets?|met|satisf(?:y|ies|ied)|fulfil?ls?|fulfil?led|compl(?:y|ies|ied) with|pass(?:es|ed)?"
    rf"|fails?|failed|violat(?:e|es|ed)|breaks?|falls? short of|fell short of)\s+(?P<thing>{_OBJECT})"
)
_PASSIVE = re.compile(
    rf"\b(?P<thing>(?:{_THING}|it|this))\s+(?:itself\s+)?(?:is|are|was|were|has been|have been|remains?|isn't"
    rf"|aren't|wasn't"
    r"|hasn't been)\s+(?:\w+\s+){0,3}?(?P<state>met|unmet|satisfied|unsatisfied|fulfil?led|unfulfilled|violated"
    r"|failed|passed)\b"
)
_BARE = re.compile(
    r"\b(?:response|answer|reply|submission|it|this|text|essay|letter|output)\s+"
    r"(?:\w+ly\s+|does\s+|did\s+|not\s+|doesn't\s+|didn't\s+)*(?P<verb>pass(?:es|ed)?|fail(?:s|ed)?)\s*[.!]?$"
)
_NOT_APPLICABLE = re.compile(
    rf"\b(?:{_THING}|it|this) (?:(?:does not|doesn't|do not|don't) apply|(?:is|are|was) (?:not applicable"
    rf"|inapplicable|n/a))\b"
)
_ADVERSE = re.compile(r"fail|fall|fell|violat|break|unmet|unsatisf|unfulfil")
_CLAUSE = re.compile(
    r"[,;:\u2013\u2014]|\s-\s|\b(?:and|but|so|yet|although|though|because|since|as|which|while|however)\b"
)
_HARMLESS = re.compile(
    r"\bnot only\b|\bnot just\b|\bno doubt\b|\bwithout (?:a |any )?doubt\b|\bno question\b|\bcannot be denied\b"
    r"|\bundoubtedly\b"
)
_NEGATION = re.compile(
    r"\b(?:not|never|cannot|neither|nor|fails? to|failed to|without|nothing|none|nobody|unable to)\b|n't\b"
)
_NO = re.compile(r"\bno\b")
_NOT_FORMS = re.compile(r"\b(?:by no means|in no way|nowhere near|no longer|far from)\b")
_REPORTED = re.compile(
    r"\b(?:claim\w*|asserts?|says?|states?|declares?|insists?|argues?|pretends?|wrote|writes?|suggests?"
    r"|believes?)(?: that)?\b"
)
_ANY_HINT = re.compile(r"me[et]t|satisf|ful[f]?il|compl[yi]|pass|fail|violat|break|short of|criter|krit", re.I)


def stances(sentence: str, *, strict: bool = False) -> Iterator[Concept]:
    """What the sentence says, in order: MET, UNMET, or PARTIAL for hedged and doubly negated statements.

    Questions, conditions, reported claims and sentences about anything else give nothing.

    Args:
        sentence: plain text.
        strict: only statements on "the criterion" or "the criteria", not on single requirements.
    """
    text = sentence.lower().strip()
    if text.endswith(("?", "？")):
        return
    foreign = foreign_stance(text)
    if foreign is not None:
        yield foreign
    inapplicable = _NOT_APPLICABLE.search(text)
    if inapplicable and not cues.is_hypothetical(text[: inapplicable.end()]):
        yield Concept.NOT_APPLICABLE
    if not _ANY_HINT.search(text):
        return
    text = _NOT_FORMS.sub("not", _HARMLESS.sub("", text))
    found = [match for pattern in (_ACTIVE, _PASSIVE, _BARE) for match in pattern.finditer(text)]
    for match in sorted(found, key=lambda one: one.start()):
        if strict and "criteri" not in match.group():
            continue
        reading = _read(text, match)
        if reading is not None:
            yield reading


def last_stance(sentence: str, *, strict: bool = False) -> Concept | None:
    """The last thing that the sentence says."""
    last = None
    for last in stances(sentence, strict=strict):  # noqa: B007
        pass
    return last


def _read(text: str, match: re.Match[str]) -> Concept | None:
    start = 0
    for boundary in _CLAUSE.finditer(text, 0, match.start()):
        start = boundary.end()
    before = text[start : match.start()]
    words = text[match.start() : match.end()]
    if (
        cues.SUPPOSES.search(text, 0, match.start())
        or cues.is_hypothetical(before + words)
        or _REPORTED.search(before)
    ):
        return None
    if re.search(r"\b(?:one|some|part|first|second|third|fourth|last|most|other|another) ", before[-20:] + words):
        return None
    negations = len(_NEGATION.findall(before)) + len(_NEGATION.findall(words))
    if cues.HEDGES.search(before + words) or negations > 1 or _NO.search(before + words):
        return Concept.PARTIAL
    groups = match.groupdict()
    if groups.get("state") and groups["thing"] in ("it", "this") and text[match.end() :].startswith(" with"):
        return None
    adverse = _ADVERSE.match(groups.get("verb") or groups.get("state") or "") is not None
    return Concept.UNMET if adverse != (negations == 1) else Concept.MET
