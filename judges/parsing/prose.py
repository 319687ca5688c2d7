"""Verdicts in plain prose: bare words, answers to the judge's own questions, conclusions, statements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rubricate.judges.parsing import cues
from rubricate.judges.parsing.marks import Mark, Standing
from rubricate.judges.parsing.stance import last_stance, stances
from rubricate.judges.parsing.synonyms import Concept
from rubricate.judges.parsing.text import sentences
from rubricate.judges.parsing.vocabulary import Unreadable, Vocabulary

__all__ = ["bare_marks", "last_word", "read_phrase", "stated_marks"]

_LEADING = re.compile(
    r"^(?:\W|\d+[.)])*(?:(?:so|thus|therefore|hence|overall|ultimately|finally|in (?:conclusion|summary|short)"
    r"|to (?:conclude|sum up)"
    r"|i(?:'d| would)? (?:say|conclude|choose|pick|select|answer|judge (?:it|this)(?: as)?|vote|rule)(?: that)?"
    r"|it is|it's|this is|that is"
    r"|that's|criterion"
    r"|(?:the|this) (?:answer|verdict|criterion|requirement|response|reply|proof|claim|statement|argument"
    r"|solution|code|output"
    r"|submission|essay|text|result|rating|grade) (?:is|was|remains)|i(?:'d| would)? (?:give|rate|call|consider"
    r"|find|deem|mark|grade)"
    r" (?:it|this|that|the (?:criterion|response|answer|requirement|condition))(?: as| to be| an?)?"
    r"|daher|somit|donc|por tanto)\b[\s,:]*)+",
    re.I,
)
_WRONG = re.compile(
    r"[\"']?(?P<word>[\w -]{2,30}?)[\"']? would be (?:wrong|unfair|incorrect|a mistake|too (?:harsh|strict"
    r"|generous))",
    re.I,
)
_ANSWER = re.compile(
    r"(?:and |but )?(?:it|this|that|the \w+)(?: \w+ly)? (?:does|is|was|has|did)(?P<not> not|n't)?(?: so)?[.!]?$"
    r"|(?P<no>not (?:at all|really|quite)|certainly not|by no means|of course not|definitely not)[.!]?$",
    re.I,
)
_ABOUT = re.compile(r"me[et]t\b|satisf|fulfil|criteri|requirement|condition|compl[yi]|pass\b|meets", re.I)
_ADVERSE_QUESTION = re.compile(
    r"\b(?:not|no|unmet|fail\w*|miss\w*|lack\w*|violat\w*|wrong|error\w*|mistake\w*|problem\w*|issue\w*|omit\w*"
    r"|omission\w*"
    r"|absent|without|contradict\w*|incorrect|any)\b|n't\b",
    re.I,
)
_CONCLUSION = re.compile(
    r"\b(?:should(?: have)?|must|ought to|has to|needs to|is|was|it's|as|be|said|say|called?|verdict|so|hence"
    r"|thus|therefore|→)"
    r"(?: (?:be|been|is|it is|it's|said|say|called|as|it|therefore|thus|clearly|in fact|actually|indeed|also"
    r"|still|really))*"
    r"[ :]+(?P<word>(?:not |in fact )?[\w-]+)\W*$",
    re.I,
)
_COULD = re.compile(
    r"\b(?:could|might|may|would|some|stricter|lenient|half|partly|first|second(?! thought)|only|one|part"
    r"|rest)\b",
    re.I,
)


def _of_concept(concept: Concept | None, words: Vocabulary) -> str | Unreadable:
    if concept is None:
        return Unreadable.UNKNOWN
    return words.of_concept(concept) or (Unreadable.AMBIGUOUS if concept is Concept.PARTIAL else Unreadable.UNKNOWN)


def read_phrase(text: str, words: Vocabulary) -> str | Unreadable:
    """What follows a label: a verdict word with or without a remark, or a sentence."""
    value = words.read_text(text)
    if value is not Unreadable.UNKNOWN:
        return value
    first = next((sentence.text for sentence in sentences(text)), "")
    stripped = _LEADING.sub("", first)
    if stripped and stripped != first:
        value = words.read_text(stripped)
        if value is not Unreadable.UNKNOWN:
            return value
    return _of_concept(last_stance(first), words) if words.polar else Unreadable.UNKNOWN


def stated_marks(text: str, words: Vocabulary) -> Iterator[Mark[str]]:
    """Sentences that say whether the criterion is met."""
    for sentence in sentences(text) if words.polar else ():
        said = list(stances(sentence.text))
        if said and cues.OPTIONS.search(sentence.text) is None:
            for concept in said:
                yield Mark(_of_concept(concept, words), at=sentence.start)


def bare_marks(text: str, words: Vocabulary) -> Iterator[Mark[str]]:
    """Sentences and lines that are a verdict and nothing else, begin with one, or answer a question."""
    since = 0
    found = False
    before = ""
    everything = list(sentences(text))
    for index, sentence in enumerate(everything):
        value = _bare_value(sentence.text, before, words)
        before = sentence.text
        if value is Unreadable.UNKNOWN or value is Unreadable.PLACEHOLDER:
            continue
        following = everything[index + 1].text if index + 1 < len(everything) else ""
        # The sentence after a bare yes or no can make it unclear which question was answered.
        if isinstance(value, str) and words.is_answer(sentence.text) and words.disagrees(value, following):
            value = Unreadable.AMBIGUOUS
        correction = found and cues.CORRECTS.search(text, since, sentence.start) is not None
        yield Mark(value, Standing.PLAIN, correction, 0, sentence.start)
        since = sentence.start
        found = True


def _bare_value(sentence: str, before: str, words: Vocabulary) -> str | Unreadable:
    if sentence.endswith(("?", "？")):
        return Unreadable.UNKNOWN
    value = words.read_text(sentence)
    if value is Unreadable.UNKNOWN:
        stripped = _LEADING.sub("", sentence)
        value = words.read_text(stripped) if stripped != sentence else value
    if before.endswith("?") and words.polar:
        value = _answer(value, sentence, before, words)
    if value is Unreadable.UNKNOWN and words.polar:
        value = _concluded(sentence, words, trailing=True)
    if value is not Unreadable.UNKNOWN and (cues.OPTIONS.search(sentence) or cues.SUPPOSES.search(sentence)):
        return Unreadable.UNKNOWN
    return value


def _answer(value: str | Unreadable, sentence: str, question: str, words: Vocabulary) -> str | Unreadable:
    """What a sentence comes to after a question: yes and no are clear only where the question is put positively."""
    reply = _ANSWER.match(sentence) if _ABOUT.search(question) else None
    if value is Unreadable.UNKNOWN and reply is not None:
        value = _of_concept(Concept.UNMET if reply["not"] or reply["no"] else Concept.MET, words)
    elif not words.is_answer(sentence):
        return value
    return Unreadable.AMBIGUOUS if _ADVERSE_QUESTION.search(question) else value


def _concluded(sentence: str, words: Vocabulary, *, trailing: bool = False) -> str | Unreadable:
    """The verdict that a sentence ends with ("..., so this should be met").

    Args:
        sentence: one sentence.
        words: the verdicts.
        trailing: only "..., hence unmet", where the verdict follows the conclusion at once.
    """
    if not (
        cues.CONCLUDES.search(sentence)
        or cues.CORRECTS.search(sentence)
        or re.search(r"\b(?:should|must)\b", sentence)
    ):
        return Unreadable.UNKNOWN
    match = _CONCLUSION.search(sentence[-120:])
    if match is None or cues.SUPPOSES.search(sentence) or _COULD.search(sentence):
        return Unreadable.UNKNOWN
    if trailing and not re.match(r"(?:so|hence|thus|therefore|→)\b", match.group(), re.I):
        return Unreadable.UNKNOWN
    return Unreadable.UNKNOWN if words.is_answer(match["word"]) else words.exact(match["word"])


def last_word(text: str, verdict: str, words: Vocabulary) -> str | Unreadable:
    """What a reason says last of the criterion as a whole: a verdict, empty for nothing.

    AMBIGUOUS when it says that `verdict` would be wrong.
    """
    last = ""
    for sentence in sentences(text):
        said = sentence.text
        for match in _WRONG.finditer(said) if " be " in said else ():
            if words.exact(match["word"].split()[-1]) == verdict:
                return Unreadable.AMBIGUOUS
        for value in (_of_concept(last_stance(said, strict=True), words), _concluded(said, words)):
            last = value if isinstance(value, str) else last
    return last
