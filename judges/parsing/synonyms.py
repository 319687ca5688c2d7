"""Plain words for the usual verdicts, in the languages that judges answer in, as `text.fold` gives them."""

from __future__ import annotations

import enum

__all__ = ["NEGATIONS", "SYNONYMS", "Concept", "concept_of", "is_whole"]


class Concept(enum.Enum):
    """What a verdict word means."""

    MET = "met"
    UNMET = "unmet"
    PARTIAL = "partial"
    NOT_APPLICABLE = "not applicable"
    CANNOT_ASSESS = "cannot assess"

    @property
    def opposite(self) -> Concept | None:
        """The other side of met and unmet, None for the rest."""
        return {Concept.MET: Concept.UNMET, Concept.UNMET: Concept.MET}.get(self)


_MET = """
met|yes|y|true|1|pass|passes|passed|passing|satisfied|satisfies|satisfy|satisfactory|fulfilled
fulfils|fulfills|fulfil
meets|meet|complies|compliant|achieved|criterion met|criteria met|requirement met|fully met
completely met|clearly met
fully satisfied|clearly satisfied|✓|✔|✅|☑|👍|
ja|erfüllt|wahr|bestanden|zutreffend|trifft zu|oui|vrai|satisfait|satisfaite|rempli|remplie|respecté
respectée|conforme
sí|si|cumple|cumplido|cumplida|verdadero|aprobado|satisfecho|sim|cumpre|cumprido|atende|atendido
verdadeiro|satisfeito
sì|vero|soddisfatto|soddisfatta|rispettato|voldaan|waar|spełnione|spełniony|tak|uppfyllt|uppfylld
evet|karşılandı
はい|満たす|満たしている|満たしています|満たされている|達成|合格|真|適合|充足|○|〇|◯
是|是的|符合|满足|滿足|通过|通過|达成|达到|合格|达标|真|对|已满足|已滿足
예|네|충족|충족함|충족됨|충족합니다|만족|통과|합격|참|да|выполнено|выполнен|соответствует|истина|пройдено
نعم|مستوفى|مستوفاة|हाँ|हां
"""
_UNMET = """
unmet|no|n|false|0|fail|fails|failed|failing|unsatisfied|unsatisfactory|unfulfilled|violated
violates|noncompliant
non compliant|missed|✗|✘|❌|✖|×|❎|👎|criterion unmet|criteria unmet|criterion failed|clearly unmet
dissatisfied
nein|unerfüllt|falsch|durchgefallen|trifft nicht zu|non|faux|insatisfait|échoué|incumple|incumplido
falso|suspenso|não
nee|onwaar|nie|niespełnione|nej|hayır
いいえ|満たさない|満たしていない|満たしていません|満たされていない|満たしません|未達成|未達|不合格
偽|不適合|未充足|不十分
否|不是|不符合|不满足|不滿足|未满足|未滿足|没有满足|沒有滿足|未通过|未通過|不通过|未达成|未达到
不合格|不达标|未达标|假|不对
아니오|아니요|아니|미충족|불충족|불만족|불합격|거짓|충족하지 않음|충족되지 않음|충족하지 않습니다
нет|невыполнено|ложь|провалено|لا|नहीं
"""
_PARTIAL = """
partial|partially|partly|partially met|partly met|partially satisfied|half met
teilweise
teilweise erfüllt|parcial|parcialmente|partiel|partiellement|部分符合|部分满足|部分滿足
一部満たす|△|부분 충족|частично
"""
_NOT_APPLICABLE = """
not applicable|n/a|na|n.a|n a|inapplicable|does not apply|doesn't apply|do not apply|not relevant|irrelevant
nicht anwendbar|nicht zutreffend|entfällt|no aplica|no aplicable|non applicable|sans objet|não se aplica|nvt
不适用|不適用|該当なし|該当しない|対象外|適用外|해당 없음|해당없음|неприменимо|не применимо
"""
_CANNOT_ASSESS = """
cannot assess|can't assess|can not assess|cannot be assessed|can't be assessed|cannot judge
can't judge|cannot tell
can't tell|cannot say|can't say|cannot determine|can't determine|cannot be determined
can't be determined|unassessable
unable to assess|unable to determine|unable to judge|undetermined|indeterminate|undecided
insufficient information
not enough information|insufficient evidence|not assessable|not determinable|unknown|unclear|uncertain|unsure
nicht beurteilbar|nicht bewertbar|无法判断|無法判斷|无法评估|无法确定|判断できない|判断不能|評価不能
判定不能|판단 불가|판단불가
"""


def _table() -> dict[str, Concept]:
    lists = {
        Concept.MET: _MET,
        Concept.UNMET: _UNMET,
        Concept.PARTIAL: _PARTIAL,
        Concept.NOT_APPLICABLE: _NOT_APPLICABLE,
        Concept.CANNOT_ASSESS: _CANNOT_ASSESS,
    }
    return {
        word: concept
        for concept, words in lists.items()
        for line in words.split("\n")
        for word in line.split("|")
        if word
    }


SYNONYMS: dict[str, Concept] = _table()

NEGATIONS = (
    "not|does not|do not|did not|doesn't|don't|didn't|is not|isn't|was not|wasn't|are not|aren't|has not been"
    "|hasn't been"
    "|fails to|failed to|never|by no means|in no way|nowhere near|nicht|ist nicht|wurde nicht|no|no se|non|n'est "
    "pas|ne|não|niet|не|нет|nie|inte"
    "|غير|لم"
).split("|")
"""Words that turn the verdict word after them into its opposite, folded."""


def is_whole(word: str) -> bool:
    """Whether a folded verdict says that all of it is met, so that its negation leaves a part open."""
    return word.startswith(("fully", "completely", "entirely", "wholly", "vollständig", "完全", "全部"))


def concept_of(word: str) -> Concept | None:
    """Meaning of a folded word or phrase, one negation in front allowed, None when it is not a plain verdict."""
    concept = SYNONYMS.get(word)
    if concept is not None or " " not in word:
        return concept
    for negation in NEGATIONS:
        if word.startswith(negation + " "):
            rest = word[len(negation) + 1 :]
            # "Not fully met" may be partly met; "not 1" is nothing.
            if SYNONYMS.get(rest) is Concept.MET and rest not in ("1", "yes", "y") and not is_whole(rest):
                return Concept.UNMET
    return None
