"""Rules about how a criterion is worded (family C). Those about English words find nothing in other languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from rubricate.rubrics.criterion import Criterion, NumericScale, Polarity
from rubricate.rubrics.linting.base import Found, Severity, Subject, described, rule
from rubricate.rubrics.linting.compound import requirements
from rubricate.rubrics.linting.scripts import language_of
from rubricate.rubrics.linting.words import BOILERPLATE, NEGATIONS, STOP, Text

__all__: list[str] = []

VAGUE = frozenset(
    "appropriate appropriately good nice great excellent high-quality quality suitable suitably "
    "adequate adequately "
    "proper properly reasonable reasonably sufficient sufficiently effective effectively well well-written "
    "well-structured well-organized engaging interesting helpful useful relevant clear clearly "
    "meaningful insightful deep "
    "thoughtful compelling satisfactory decent fine acceptable optimal ideal nicely better best strong solid "
    "professional comprehensive thorough impressive elegant fluent natural coherent overall general generally "
    "somewhat fairly quite very really highly high various nuanced".split()
)
"""Words that say that something is good and leave open what would be."""

_FILLER = frozenset(
    "response answer reply output text written style way manner level should must overall user "
    "prompt question task "
    "request content information details detail reader audience fashion degree extent enough "
    "etc understanding topic subject".split()
)
_OPEN_END = re.compile(
    r"\b(?:etc\b\.?|and so on|and so forth|and the like|among others|or similar|or something)", re.I
)
_QUESTION_FORMATS = frozenset(("advancedif", "multichallenge", "prometheus", "rlcf", "rubricjudge", "tail", "rbr"))
_YES_NO = re.compile(
    r"\W*(?:does|do|did|is|are|was|were|has|have|had|can|could|will|would|should|must|may|in (?:the|"
    r"this) \w+,? (?:does|is))\b",
    re.I,
)
_IMPERATIVE = re.compile(
    r"(?:Please\s+)?(?:Mention|Explain|Include|Provide|Describe|List|State|Give|Avoid|Ensure|Make "
    r"sure|Use|Write|Check|"
    r"Answer|Do not|Don't|Discuss|Identify|Evaluate|Assess|Rate|Summari[sz]e|Verify)\s",
)
_PLACEHOLDER = re.compile(
    r"\bTODO\b|\bTBD\b|\bFIXME\b|\bXXX+\b|\blorem ipsum\b|(?<![\\\w}])\{\{\s*[A-Za-z_][\w. ]*\s*\}\}|<%.*?%>|"
    r"(?<![\w$\\^_{}])\{[a-z]+(?:_[a-z]+)+\}|"
    r"[\[<](?:insert|your|add|fill in|placeholder|enter|specify)\b[^\]>]{0,60}[\]>]|\bplaceholder text\b|"
    r"\[(?:criterion|criteria|topic|name|text|description|number|x|n|\.\.\.|…)\]|^\W*(?:\.\.\.|…|n/?a|"
    r"none|null|-+|\?+)\W*$",
    re.I,
)
_SPEAKS_OF_PLACEHOLDERS = re.compile(r"\bplaceholders?\b(?! text)", re.I)
_FLATTERY = re.compile(
    r"\b(?:prais\w+|compliment\w*|flatter\w*|congratulat\w+|thank(?:s|ing)|"
    r"admir\w+)\s+(?:\w+\s+){0,2}?(?:the\s+|its\s+)?(?:user|"
    r"question|asker|judge|grader|evaluator|prompt|reader|request|query)\b"
    r"|\b(?:tells?|assur\w+|convinc\w+|persuad\w+)\s+(?:the\s+)?(?:user|judge|grader|evaluator|"
    r"reader)\s+(?:\w+\s+){0,3}(?:that\s+)?"
    r"(?:(?:the|this|its)\s+(?:response|answer)\s+(?:is|meets|satisf\w+|follows|fulfil\w+|deserves)|"
    r"(?:it|they) (?:is|are) (?:right|correct|great)|(?:their|his|her|the) (?:question|request|idea) is \w+)"
    r"|\bclaims to be (?:\w+\s+){0,2}(?:best|perfect|correct|complete|excellent|ideal)\b"
    r"|\bstatement that (?:it|the (?:response|answer)) (?:meets|satisfies|follows|fulfil(?:l)?s)\b"
    r"|\b(?:states?|claims?|says?|declares?|mentions?|notes?|emphasi[sz]es|explains?)\s+that\s+(?:it|"
    r"the (?:response|answer)|its (?:response|answer)|this (?:response|answer))\s+"
    r"(?:is|meets|satisfies|fulfil(?:l)?s|follows|covers|has met|deserves|"
    r"addresses)\s+(?:(?:of\s+)?(?:high|the highest|excellent|great|top|"
    r"very good|correct|complete|comprehensive|accurate|helpful|all|every|each|the criteria|full)\b)"
    r"|\b(?:self[- ]prais\w+|self[- ]congratulat\w+|rates? (?:itself|its own)|evaluates? itself (?:as|"
    r"positively|highly))"
    r"|\b(?:appeals? to|impress(?:es)?|pleas(?:es|ing)) the (?:judge|grader|evaluator)",
    re.I,
)


def _plain(text: Text) -> tuple[list[str], list[str]]:
    """The vague words of a text, and those that say what is asked."""
    vague = [word for word in text.words if word in VAGUE]
    ignored = STOP | NEGATIONS | BOILERPLATE | _FILLER | VAGUE
    return vague, [word for word in text.words if word not in ignored]


def _is_vague(text: Text, most: int) -> bool:
    vague, concrete = _plain(text)
    return bool(vague) and len(concrete) <= most and not text.quotations and not any(w.isdigit() for w in concrete)


@rule("C501", "compound", parameters=("requirements",))
def compound(subject: Subject) -> Iterator[Found]:
    """A criterion holds several requirements: two verbs joined by `and`, several sentences, (a) and (b).

    A response that does one of the two has no right verdict, and judges decide as they like. Lists of nouns that
    one verb governs (`names aspirin and ibuprofen`) are not reported. Info only, where described levels say what
    partial fulfilment is worth, and for leaves of nested rubrics, which often describe one procedure.

    Fix: one criterion for each requirement, the weight divided among them.
    """
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        parts = requirements(text)
        if len(parts) >= subject.limits.requirements:
            graded = described(criterion) or isinstance(criterion.scale, NumericScale)
            soft = graded or bool(criterion.path)
            weight = f"{criterion.weight / len(parts):.3g}"
            listed = "; ".join(f'"{part}"' for part in parts[:6])
            yield Found(
                (criterion.id,),
                f"it asks for {len(parts)} things at once",
                f"split it, each part with the weight {weight}: {listed}",
                Severity.INFO if soft else None,
            )


@rule("C502", "vague", parameters=("concrete_words",))
def vague(subject: Subject) -> Iterator[Found]:
    """A criterion says that something should be good and not what would be: `is well written`, `is appropriate`.

    Two judges, or one judge twice, decide differently, and a policy learns what the judge likes. Info only where
    described levels say more. `etc.` and `and so on` are reported as info.

    Fix: say what a reader could point at: which facts, which form, how much.
    """
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        if criterion.verifier is not None or criterion.veto or _is_label(text):
            continue
        if _is_vague(text, subject.limits.concrete_words):
            words = ", ".join(f'"{word}"' for word in dict.fromkeys(_plain(text)[0]))
            soft = Severity.INFO if described(criterion) or criterion.path else None
            fix = "say what a reader could point at: which facts, which form, how much"
            yield Found((criterion.id,), f"{words}: it does not say what would be so", fix, soft)
        elif (ending := _OPEN_END.search(text.unquoted)) is not None:
            fix = "name all that counts, or say what is common to it"
            yield Found((criterion.id,), f'"{ending[0]}" leaves open what else counts', fix, Severity.INFO)


@rule("C503", "too-long", Severity.INFO, parameters=("long_words", "very_long_words"))
def too_long(subject: Subject) -> Iterator[Found]:
    """A criterion is very long: more than 120 words (a warning from 250).

    Long texts hold several requirements or a piece of the reference, cost tokens with each response, and are
    judged by their gist.

    Fix: keep what decides, one requirement a criterion.
    """
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        if len(text.raw) > subject.limits.long_words * 2 and text.count > subject.limits.long_words:
            severity = Severity.WARNING if text.count > subject.limits.very_long_words else None
            message = f"it has {text.count} words"
            yield Found((criterion.id,), message, "keep what decides, one requirement a criterion", severity)


def _is_label(text: Text) -> bool:
    """Whether a text is one word, or two that are no statement such as `Names aspirin`."""
    if text.count > 2 or len(text.raw.strip()) >= 30:
        return False
    first = text.words[0] if text.words else ""
    return text.count < 2 or not (first.endswith("s") and not first.endswith("ss"))


@rule("C504", "too-short")
def too_short(subject: Subject) -> Iterator[Found]:
    """A criterion is a bare label, such as `Accuracy`, with no verifier and no described levels.

    The judge has to invent what it stands for.

    Fix: write a statement that a response meets or not.
    """
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        if criterion.verifier is None and _is_label(text) and not _PLACEHOLDER.search(text.raw):
            soft = Severity.INFO if described(criterion) or criterion.path else None
            fix = f'write a statement, such as "The response … {text.raw.strip().rstrip(".").lower()} …"'
            yield Found((criterion.id,), f"{text.raw.strip()!r} is a label, not a statement", fix, soft)


@rule("C505", "not-a-statement")
def not_a_statement(subject: Subject) -> Iterator[Found]:
    """A criterion is a question or an order, not a statement that a response meets or not.

    An open question (`What dose is given?`) has no yes or no. A yes/no question, in a format whose criteria are
    statements, and an order (`Mention the dose.`), which a judge may take as addressed to itself, are info.

    Fix: write `The response …`.
    """
    asking = subject.format in _QUESTION_FORMATS or _mostly_questions(subject)
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        raw = text.raw.strip()
        if described(criterion):
            continue
        if raw.endswith(("?", "？")):
            yes_no = (
                bool(_YES_NO.match(raw)) or not raw.isascii() or re.search(r"\b(?:does|did|is|are|has|have)\b", raw)
            )
            if not yes_no:
                fix = 'write what a right answer says, as "The response …"'
                yield Found((criterion.id,), "it is an open question, which no verdict answers", fix)
            elif not asking:
                yield Found((criterion.id,), "it is a question", f'write "{_as_statement(raw)}"', Severity.INFO)
        elif _IMPERATIVE.match(raw):
            fix = f'write "The response … {raw[:1].lower()}{raw[1:80]}", as a statement'
            yield Found((criterion.id,), "it is an order, not a statement", fix, Severity.INFO)


def _mostly_questions(subject: Subject) -> bool:
    asked = sum(criterion.text.rstrip().endswith(("?", "？")) for criterion in subject.criteria)
    return asked * 2 > len(subject.criteria) > 1


def _as_statement(question: str) -> str:
    found = re.match(r"(?i)(?:does|did|is|has) (the (?:response|answer|model)) (.*)\?$", question)
    if not found:
        return "The response …"
    verb = question.split()[0].lower()  # "does" too: without it, "name" would have to become "names"
    return f"{found[1][:1].upper()}{found[1][1:]} {verb} {found[2]}."


@rule("C506", "placeholder", Severity.ERROR)
def placeholder(subject: Subject) -> Iterator[Found]:
    """A criterion holds text that was meant to be replaced: TODO, {{topic}}, [insert fact], lorem ipsum.

    A template was not filled in; the judge sees the placeholder.

    Fix: fill it in, or remove the criterion.
    """
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        found = _PLACEHOLDER.search(text.raw) if _may_hold_placeholder(text) else None
        if found is None or found[0] in subject.prompt or found[0] in subject.reference:
            continue
        if found[0] in text.quotations or _SPEAKS_OF_PLACEHOLDERS.search(text.raw.replace(found[0], "")):
            continue
        fix = "fill it in, or remove the criterion"
        yield Found((criterion.id,), f'"{found[0].strip()}" was meant to be replaced', fix)


def _may_hold_placeholder(text: Text) -> bool:
    return len(text.raw) < 10 or any(part in text.folded for part in _PLACEHOLDER_PARTS)


_PLACEHOLDER_PARTS = ("todo", "tbd", "fixme", "xxx", "lorem", "{", "[", "<", "placeholder")


@rule("C507", "mixed-languages")
def mixed_languages(subject: Subject) -> Iterator[Found]:
    """One criterion is in another language or script than the rest of its rubric.

    Judges decide less well across languages, and texts of another rubric may have slipped in.

    Fix: translate it.
    """
    languages = [language_of(text) for text in subject.texts]
    known = Counter(name for name in languages if name)
    if len(known) < 2:
        return
    (main, most), *_ = known.most_common(1)
    if most * 2 <= known.total():
        return
    for criterion, name in zip(subject.criteria, languages, strict=True):
        if name and name != main:
            message = f"it is in {name}, the rubric mostly in {main}"
            yield Found((criterion.id,), message, f"translate it into {main}")


@rule("C508", "vague-veto", Severity.ERROR, parameters=("concrete_words",))
def vague_veto(subject: Subject) -> Iterator[Found]:
    """A veto hangs on a vague criterion.

    A veto sets the reward to the floor; where it cannot be said what meets it, chance does.

    Fix: say exactly what is not to be had, or remove the veto.
    """
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        if criterion.veto and criterion.verifier is None and _is_vague(text, subject.limits.concrete_words):
            fix = "say exactly what forfeits the reward, or remove the veto"
            yield Found((criterion.id,), "a vague criterion can set the reward to the floor", fix)


@rule("C509", "rewards-flattery")
def rewards_flattery(subject: Subject) -> Iterator[Found]:
    """A criterion rewards praise of user or question, or the response's praise of itself.

    Policies find these first: opening flattery and self-evaluation are the two patterns of reward hacking that
    Rubicon (2508.12790) reports.

    Fix: remove it, or make it a penalty.
    """
    for criterion, text in zip(subject.criteria, subject.texts, strict=True):
        found = _FLATTERY.search(text.unquoted) if any(part in text.folded for part in _FLATTERING) else None
        if found is not None and criterion.polarity is Polarity.REWARD and not text.negative:
            message = f'it rewards flattery or self-praise ("{found[0]}")'
            yield Found((criterion.id,), message, _no_reward(criterion))


_FLATTERING = (
    *("prais", "compliment", "flatter", "congrat", "thank", "admir", "tell", "assur", "convinc", "persuad"),
    *(" that ", "self", "rates ", "evaluates", "appeal", "impress", "pleas", "claim"),
)


def _no_reward(criterion: Criterion) -> str:
    return f"remove it, or make it a penalty of weight {criterion.weight:g}"
