"""Words around a verdict that decide whether it counts: hedges, conditions, quotations, corrections, options."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = [
    "CONCLUDES",
    "CORRECTS",
    "HEDGES",
    "OPTIONS",
    "SUPPOSES",
    "corrections",
    "is_hypothetical",
    "is_quotation",
    "is_refusal",
    "is_strong_refusal",
    "introduces_quote",
]


def _words(*patterns: str, foreign: str = "") -> re.Pattern[str]:
    pattern = r"\b(?:" + "|".join(patterns) + r")\b"
    return re.compile(pattern + (f"|{foreign}" if foreign else ""), re.I)


HEDGES = _words(
    "mostly|mainly|largely|partial(?:ly)?|partly|in part|half(?:way)?|semi|somewhat|somehow|almost|nearly"
    "|borderline",
    "more or less|sort of|kind of|to (?:some|a certain|a) (?:extent|degree)|probably|possibly|perhaps|maybe"
    "|arguably",
    "likely|presumably|barely|hardly|scarcely|marginal(?:ly)?|roughly|generally|i guess|i suppose|not sure|unsure",
    "hard to say|incomplete(?:ly)?|not (?:entirely|fully|completely|quite|wholly|really|necessarily)|appears to"
    "|seems to",
    "teilweise|größtenteils|überwiegend|vielleicht|wohl|eher|knapp|nicht ganz",
    "parcialmente|casi|quizás?|mayormente|partiellement|presque|peut-être|plutôt|en partie|parzialmente|quasi"
    "|forse",
    foreign="部分|基本|大致|可能|也许|差不多|ほぼ|概ね|おおむね|一部|かもしれ|부분|거의|아마|частично|почти",
)
"""Between two verdicts, or not certain."""

SUPPOSES = _words(
    "if|unless|whether|suppose|supposing|assuming|provided|otherwise|in case|had (?:it|the|this)|were (?:it|the"
    "|this)",
    "wenn|ob|sofern|si|sauf|salvo",
    foreign="如果|假如|是否|もし|かどうか|만약|если",
)
_WOULD = _words(
    "would(?! (?:say|give|rate|put|score|call|judge|mark|assign|award|choose|pick|prefer|go|grade))",
    r"could|might|may(?! \d)|should|ought|shall|würde|wäre|könnte|sería|podría|serait|pourrait",
)

_SUBJECTS = (
    r"candidate|response|submission|author|student|writer|essay|answer|reply|text|letter|user|assistant|model"
    r"|chatbot"
    r"|article|document|poem|message|they|he|she|it|summary|post|email|prompt|page|report|line|paragraph"
    r"|sentence|note"
)
_SAYS = (
    r"wrote|writes?|written|says?|saying|said|claims?|claimed|claiming|states?|stated"
    r"|asserts?|asserted|tells?|told|instructs?|instructed|demands?|demanded|quotes?|quoted|quoting|declares?"
    r"|declared"
    r"|announces?|announced|insists?|insisted|tries|tried|attempts?|inserts?|inserted|injects?|injected|embeds?"
    r"|embedded"
    r"|grades itself|pretends?|appends?|appended"
)
_HOLDS = (
    r"contains?|contained|includes?|included|ends?(?: (?:with|on|in))?|ended|begins?(?: with)?|opens?(?: with)?"
    r"|reads?"
    r"|prints?|printed|adds?|added|puts?|has|had|shows?|asks?(?: for)?|asked(?: for)?|copies|copied|repeats?"
    r"|displays?|lists?"
)
_QUOTATION = _words(
    rf"(?:{_SUBJECTS})(?:'s)?\b[^.!?\n]{{0,60}}\b(?:{_SAYS})",
    rf"(?:{_SUBJECTS})\b[^.!?\n]{{0,40}}\b(?:{_HOLDS})\b(?=[^.!?\n]{{0,25}}\Z)",
    r"quot(?:e|ed|ation|ing)|according to|its own|self-(?:graded?|assessed|assigned|awarded|reported)|in its words",
    r"(?:kandidat|antwort|text|autor|aufsatz|einreichung)\w*\b[^.!?\n]{0,40}\b(?:schreibt|schrieb|behauptet|enthält"
    r"|endet|lautet|sagt|steht)",
    r"(?:respuesta|candidato|texto|autor)\b[^.!?\n]{0,40}\b(?:dice|escribe|afirma|contiene|termina)",
    r"(?:réponse|candidat|texte|auteur)\b[^.!?\n]{0,40}\b(?:dit|écrit|affirme|contient|termine)",
    foreign="(?:回答|候选|学生|作者|文本|回复)[^\u3002\n]{0,12}"
    "(?:写道|声称|说|包含|写着|自称)"
    "|(?:回答|応答|候補|本文)[^\u3002\n]{0,12}(?:書い|述べ|含|ある)",
)
CONCLUDES = _words(
    "so|thus|therefore|hence|consequently|accordingly|overall|ultimately|finally|in (?:conclusion|summary|short"
    "|sum)",
    "to (?:conclude|sum up)|for (?:these|this|that|those) reasons?|all in all|on balance|final(?: \\w+)?",
    "daher|somit|deshalb|insgesamt|fazit|por (?:lo )?tanto|en conclusión|en resumen|donc|en conclusion|au final",
    foreign="因此|所以|综上|总之|最终|よって|従って|したがって|以上より|最終|따라서|결론",
)
OPTIONS = _words(
    "allowed|options?(?: are| were| is)|options?(?= ?:)|choices?(?: are| were)|choices(?= ?:)",
    "choose (?:from|between|one|either)|one of|either|possible (?:verdicts?|values?|answers?|labels?|outcomes?"
    "|scores?|ratings?)",
    "(?:answer|respond|reply|end|conclude|finish) (?:only |just )?with|output (?:either|only|exactly|one|format)",
    "format (?:would|is|was|must|should|asks|wants|requires|given)",
    r"(?:for|as an) example|e\.g\.?|such as|schema|template|placeholder",
    "(?:the |my )?(?:prompt|instructions?|system message|rubric) (?:wants?|wanted|asks?|asked|says?|said|tells?"
    "|told"
    "|requires?|required|offers?|offered|demands?)",
    "i (?:was|am) (?:asked|told|instructed)|(?:as|was|were) (?:told|instructed) to|scale (?:is|runs|goes|from"
    "|of)|valid (?:values?|verdicts?|labels?)",
    "entweder|mögliche (?:werte|urteile)|opciones|options possibles",
    foreign="可选|选项|选择其一|選択肢|格式",
)
_CORRECTION_WORDS = (
    r"wait|hold on|hang on|correction|corrected|correcting|actually|on second thoughts?|on reflection|on "
    r"re-?reading"
    r"|scratch that|strike that|oops|i (?:was|am) wrong|i made (?:a|an) (?:mistake|error)|i (?:take|took) "
    r"(?:that|it) back"
    r"|i (?:must|need to|have to|should) (?:revise|correct|change)|let me (?:revise|correct|re-?consider|fix)"
    r"|revis(?:ed|ing|ion)"
    r"|i (?:have )?changed? my mind|changing my|amended|updat(?:ed|ing)|looking again|no, (?:that|this)|my "
    r"mistake|apologies"
    r"|korrektur|korrigiert|moment|doch nein|corrección|corregido|espera|rectification|attends|correzione"
)
CORRECTS = re.compile(
    rf"(?:^|[.!?\n\u2014] ?|\()(?:(?:but|no|oh|hmm|ah|well|so|and|however|then|i|my)[,.]? "
    rf")?(?:{_CORRECTION_WORDS})\b"
    "|更正|纠正|修正|訂正|再考|정정|수정"
    "|исправление",
    re.I,
)
"""Marks what follows as a correction of what stood before."""

_JUDGING = (
    r"help|assist|judge|judging|evaluat\w*|grad(?:e|ing)|assess\w*|rat(?:e|ing)\b|scor(?:e|ing)\b|compar(?:e|ing"
    r"|ison)"
    r"|comply|engage|provid(?:e|ing) (?:a|an|my|this|that|any)|fulfil\w*|process|respond|review\w*|discuss\w*|do "
    r"(?:that|this)"
)
_REFUSALS = re.compile(
    r"\b(?:can(?:'t| not|not)|could not|couldn't|unable to|not able to|won't|will not|refuse to|declin(?:e|ing) to"
    r"|must decline|have to decline|'ll decline|not (?:comfortable|willing|going to|allowed|permitted))"
    rf"\b[^.!?\n]{{0,40}}\b(?:{_JUDGING})"
    r"|\b(?:i'll|i will|i must|i have to|i'd rather|let me|i) (?:pass on|sit (?:this )?(?:one )?out|abstain"
    r"|decline|recuse)\b"
    r"|\bich kann\b[^.!?\n]{0,60}\bnicht (?:bewerten|beurteilen|helfen|unterstützen)"
    r"|\bno puedo (?:ayudar|evaluar|calificar|juzgar)|\bje ne peux pas (?:aider|évaluer|noter|juger)"
    "|(?:无法|無法|不能|拒绝)[^\u3002\n]{0,10}(?:评|評|协助|協助|提供|帮助)"
    "|お手伝いできません|評価できません|応じられません"
    "|평가할 수 없|도와드릴 수 없|не могу (?:оцен|помо)",
    re.I,
)
_NO_VERDICT = re.compile(
    r"\b(?:can(?:'t| not|not)|unable to|won't|will not|refuse to|decline to) (?:give|provide|assign|offer|issue"
    r"|make)"
    r" (?:you )?(?:an?|any|this|the) (?:\w+ )?(?:score|rating|grade|verdict|judge?ment|preference)\b",
    re.I,
)
_APOLOGY = re.compile(
    r"\W{0,20}(?:i(?:'m| am) (?:very |so |really )?sorry|sorry|i apologi[sz]e|apologies|unfortunately|as an "
    r"ai\b[^.\n]{0,60}"
    r"|i (?:can't|cannot|can not|won't|will not|must decline|'m unable|am unable|am not able)|i'm (?:unable|not "
    r"able)"
    "|es tut mir leid|lo siento|je suis désolé|抱歉|对不起|申し訳|죄송|извините)",
    re.I,
)


def corrections(text: str) -> Iterator[str]:
    """What stands behind words that announce a correction, each to the end of its line."""
    for match in CORRECTS.finditer(text):
        yield text[match.end() : match.end() + 120].partition("\n")[0]


def is_hypothetical(clause: str) -> bool:
    """Whether the clause speaks of what would or could be, not of what is."""
    return SUPPOSES.search(clause) is not None or _WOULD.search(clause) is not None


def is_quotation(lead: str) -> bool:
    """Whether what follows `lead` in the same sentence is reported as somebody else's words."""
    end = max((match.end() for match in _QUOTATION.finditer(lead)), default=None)
    return end is not None and CONCLUDES.search(lead, end) is None


_OWN = re.compile(r"\bmy (?:own |final )?\w+ ?:?$|\bhere (?:is|are) (?:my|the)\b", re.I)
_FORMAT = re.compile(
    r"^\W{0,20}(?:the )?(?:(?:output|answer|response|required|expected|requested|reply) )?format\b", re.I
)


def introduces_quote(line: str) -> bool:
    """Whether a line announces a passage that is not the judge's own: a quotation, an example, the asked format."""
    if _OWN.search(line.rstrip(" :")):
        return False
    return is_quotation(line) or OPTIONS.search(line) is not None or _FORMAT.match(line) is not None


def is_refusal(text: str) -> bool:
    """Whether the text says that its writer does not or cannot judge."""
    return _REFUSALS.search(text) is not None


def is_strong_refusal(text: str) -> bool:
    """Whether the text opens with a refusal: an apology, then what its writer will not do, or no verdict at all."""
    head = text[:300]
    if _NO_VERDICT.search(head):
        return True
    return _APOLOGY.match(head) is not None and _REFUSALS.search(head) is not None
