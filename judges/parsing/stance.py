"""What a sentence says about whether the criterion is met, in plain prose."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rubricate.judges.parsing import cues
from rubricate.judges.parsing.synonyms import Concept

__all__ = ["last_stance", "stances"]

_THING = r"criteri(?:on|a)|requirements?|conditions?|rules?|standards?|constraints?|checks?|expectations?"
_OBJECT = (
    rf"(?:(?:the|this|that|these|those|all|every|each|its|both|stated|given|of"
    rf"|above)\s+){{0,4}}(?:\w+\s+)?(?:{_THING})\b"
)
_ACTIVE = re.compile(
    r"\b(?P<verb>meets?|met|satisf(?:y|ies|ied)|fulfil?ls?|fulfil?led|compl(?:y|ies|ied) with|pass(?:es|ed)?"
    rf"|fails?|failed|violat(?:e|es|ed)|breaks?)\s+(?P<thing>{_OBJECT})"
)
_PASSIVE = re.compile(
    rf"\b(?P<thing>(?:{_THING}|it|this))\s+(?:itself\s+)?(?:is|are|was|were|has been|have been|remains?|isn't"
    rf"|aren't|wasn't"
    r"|hasn't been)\s+(?:\w+\s+){0,3}?(?P<state>met|unmet|satisfied|unsatisfied|fulfil?led|unfulfilled|violated"
    r"|failed|passed)\b(?!\s+with)"
)
_BARE = re.compile(
    r"\b(?:response|answer|reply|submission|it|this|text|essay|letter|output)\s+(?:\w+ly\s+)?(?P<verb>passes"
    r"|fails)\s*[.!]?$"
)
_NOT_APPLICABLE = re.compile(
    rf"\b(?:{_THING}|it|this) (?:(?:does not|doesn't|do not|don't) apply|(?:is|are|was) (?:not applicable"
    rf"|inapplicable|n/a))\b"
)
_ADVERSE = re.compile(r"fail|violat|break|unmet|unsatisf|unfulfil")
_CLAUSE = re.compile(
    r"[,;:\u2013\u2014]|\s-\s|\b(?:and|but|so|yet|although|though|because|since|as|which|while|however)\b"
)
_HARMLESS = re.compile(
    r"\bnot only\b|\bnot just\b|\bno doubt\b|\bwithout (?:a |any )?doubt\b|\bno question\b|\bcannot be denied\b"
    r"|\bundoubtedly\b"
)
_NEGATION = re.compile(
    r"\b(?:not|never|cannot|neither|nor|no longer|fails? to|failed to|without|nothing|none|nobody|unable to|far "
    r"from)\b|n't\b"
)
_NO = re.compile(r"\bno\b")
_REPORTED = re.compile(
    r"\b(?:claim\w*|asserts?|says?|states?|declares?|insists?|argues?|pretends?|wrote|writes?|suggests?"
    r"|believes?)(?: that)?\b"
)
_FOREIGN_HINT = re.compile(r"kriteri|criteri|critère|критери|满足|滿足|符合|达到|満た|기준")
_ANY_HINT = re.compile(r"me[et]t|satisf|ful[f]?il|compl[yi]|pass|fail|violat|break|criter|krit", re.I)

# Other languages: a sentence, by its first pattern that fits. The negative forms come first.
_FOREIGN: tuple[tuple[re.Pattern[str], Concept], ...] = (
    (
        re.compile(
            r"\bkriterium\b.*\b(?:nicht|un)\s?erfüllt|erfüllt (?:das|dieses) kriterium nicht|kriterium nicht erfüll"
        ),
        Concept.UNMET,
    ),
    (re.compile(r"\bkriterium\b.*\berfüllt|erfüllt (?:das|dieses) kriterium"), Concept.MET),
    (
        re.compile(
            r"\bno (?:se )?(?:cumple|satisface)\b(?: con)? (?:el|este|los) criterio|criterio no (?:se "
            r")?(?:cumple|satisface)"
        ),
        Concept.UNMET,
    ),
    (
        re.compile(r"\b(?:cumple|satisface)\b(?: con)? (?:el|este|los) criterio|criterio (?:se|está) cumpl"),
        Concept.MET,
    ),
    (
        re.compile(
            r"\bne (?:remplit|respecte|satisfait) pas (?:le|ce) critère|critère n'est pas (?:rempli|satisfait"
            r"|respecté)"
        ),
        Concept.UNMET,
    ),
    (
        re.compile(
            r"\b(?:remplit|respecte|satisfait) (?:bien )?(?:le|ce) critère|critère est (?:bien )?(?:rempli"
            r"|satisfait|respecté)"
        ),
        Concept.MET,
    ),
    (re.compile(r"(?:不|未|没有|沒有)(?:能)?(?:满足|滿足|符合|达到)"), Concept.UNMET),
    (
        re.compile(
            r"(?:满足|滿足|符合|达到)(?:了|此|该|这|本|一|所有|全部)*(?:个|项|条)?(?:标准|要求|条件|準則|标準)"
        ),
        Concept.MET,
    ),
    (
        re.compile(
            r"(?:基準|要件|条件|要求)[をはが](?:十分に)?満た(?:して(?:い(?:ない|ません)|おらず)|さない|しません"
            r"|されて(?:いない|いません))"
        ),
        Concept.UNMET,
    ),
    (
        re.compile(
            r"(?:基準|要件|条件|要求)[をはが](?:十分に)?満た(?:して(?:いる|います)|す|します|されて(?:いる|います))"
        ),
        Concept.MET,
    ),
    (re.compile(r"기준.{0,6}충족(?:하지|되지) (?:않|못)"), Concept.UNMET),
    (re.compile(r"기준.{0,6}충족(?:한다|합니다|된다|됩니다|함|됨)"), Concept.MET),
    (re.compile(r"критери\w* не (?:выполнен|соблюд)|не (?:соответствует|удовлетворяет) критери"), Concept.UNMET),
    (re.compile(r"критери\w* (?:выполнен|соблюд)|(?:соответствует|удовлетворяет) критери"), Concept.MET),
)


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
    if _FOREIGN_HINT.search(text):
        yield from _foreign(text)
    inapplicable = _NOT_APPLICABLE.search(text)
    if inapplicable and not cues.is_hypothetical(text[: inapplicable.end()]):
        yield Concept.NOT_APPLICABLE
    if not _ANY_HINT.search(text):
        return
    text = _HARMLESS.sub("", text)
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


def _foreign(text: str) -> Iterator[Concept]:
    for pattern, concept in _FOREIGN:
        if pattern.search(text):
            if not cues.SUPPOSES.search(text):
                yield Concept.PARTIAL if cues.HEDGES.search(text) else concept
            return


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
    if cues.HEDGES.search(before + words) or negations > 1 or _NO.search(before):
        return Concept.PARTIAL
    groups = match.groupdict()
    adverse = _ADVERSE.match(groups.get("verb") or groups.get("state") or "") is not None
    return Concept.UNMET if adverse != (negations == 1) else Concept.MET
