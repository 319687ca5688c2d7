"""What a sentence in another language than English says about whether the criterion is met."""

from __future__ import annotations

import re

from rubricate.judges.parsing import cues
from rubricate.judges.parsing.synonyms import Concept

__all__ = ["foreign_stance"]

_HINT = re.compile(r"kriteri|criteri|critère|критери|满足|滿足|符合|达到|満た|기준")

_UNMET = re.compile(
    r"\bkriterium\b.*\b(?:nicht|un)\s?erfüllt|erfüllt (?:das|dieses) kriterium nicht|kriterium nicht erfüll"
    r"|\bno (?:se )?(?:cumple|satisface)\b(?: con)? (?:el|este|los) criterio|criterio no (?:se )?(?:cumple"
    r"|satisface)"
    r"|\bne (?:remplit|respecte|satisfait) pas (?:le|ce) critère|critère (?:n'est pas|non) (?:rempli|satisfait"
    r"|respecté)"
    r"|критери\w* не (?:выполнен|соблюд)|не (?:соответствует|удовлетворяет) критери"
    r"|(?:不|未|没有|沒有)(?:能)?(?:满足|滿足|符合|达到)"
    r"|(?:基準|要件|条件|要求)[をはが]満た(?:して(?:い(?:ない|ません)|おらず)|さない|しません|されて(?:いない"
    r"|いません))"
    r"|기준.{0,6}충족(?:하지|되지) (?:않|못)"
)
_MET = re.compile(
    r"\bkriterium\b.*\berfüllt|erfüllt (?:das|dieses) kriterium"
    r"|\b(?:cumple|satisface)\b(?: con)? (?:el|este|los) criterio|criterio (?:se|está) cumpl"
    r"|\b(?:remplit|respecte|satisfait) (?:bien )?(?:le|ce) critère|critère est (?:bien )?(?:rempli|satisfait"
    r"|respecté)"
    r"|критери\w* (?:выполнен|соблюд)|(?:соответствует|удовлетворяет) критери"
    r"|(?:满足|滿足|符合|达到)(?:了|此|该|这|本|一|所有|全部)*(?:个|项|条)?(?:标准|要求|条件|準則|標準)"
    r"|(?:基準|要件|条件|要求)[をはが](?:十分に)?満た(?:して(?:いる|います)|す|します|されて(?:いる|います))"
    r"|기준.{0,6}충족(?:한다|합니다|된다|됩니다|함|됨)"
)
_NOT_WHOLLY = re.compile(
    r"とは(?:言え|いえ|限ら|言い切れ)|わけでは|不是[不没未]|并非[不没未]|nicht un|не не|nicht (?:ganz|vollständig)"
    r"|no (?:del todo|completamente)|pas (?:tout à fait|entièrement)|(?:不|没有|未)(?:能)?(?:完全|充分|全部)"
    r"|(?:完全|十分)に満たして(?:いない|いません)|не (?:полностью|совсем)"
)
_NEGATION = re.compile(r"[不没未沒非無无]|ない|ません|\b(?:nicht|kein\w*|no|ne|pas|не|нет)\b|않|못|없")


def foreign_stance(text: str) -> Concept | None:
    """MET, UNMET, PARTIAL where a lower-case sentence hedges or negates twice, None where it says neither.

    The negative forms are looked for first; a positive form beside any other negation is not taken at its word.
    """
    if not _HINT.search(text) or cues.SUPPOSES.search(text):
        return None
    unmet = _UNMET.search(text)
    met = None if unmet else _MET.search(text)
    if unmet is None and met is None:
        return Concept.PARTIAL if _NOT_WHOLLY.search(text) else None
    if cues.HEDGES.search(text) or _NOT_WHOLLY.search(text) or (met and _NEGATION.search(text)):
        return Concept.PARTIAL
    return Concept.UNMET if unmet else Concept.MET
