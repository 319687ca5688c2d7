"""The verdicts a judge may give, and the reading of a word or short phrase as one of them."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from rubricate.errors import ConfigError
from rubricate.judges.parsing import cues
from rubricate.judges.parsing.jsonlike import Conflict
from rubricate.judges.parsing.synonyms import NEGATIONS, SYNONYMS, Concept, concept_of, is_whole
from rubricate.judges.parsing.text import clean, compact, fold
from rubricate.narrow import as_array, as_object

__all__ = ["Unreadable", "Vocabulary", "as_known", "vocabulary_of"]


T = TypeVar("T")


class Unreadable(enum.Enum):
    """Why a text or value is no verdict or score."""

    UNKNOWN = "unparsable"
    AMBIGUOUS = "ambiguous"
    OUT_OF_RANGE = "out_of_range"
    PLACEHOLDER = "placeholder"


def as_known(value: T | Unreadable) -> T | Unreadable | None:
    """None for a text that says nothing, otherwise what it says."""
    return None if value is Unreadable.UNKNOWN else value


_AROUND = " \t\n\"'`*[](){}<>\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f\u3010\u3011:=~_|"
_CLOSERS = "\"'`*_)]}>\u201d\u2019\u00bb\u300d\u3011"
_YES_NO = set(
    "yes y no n true false ja nein oui non sí si sim não nee はい いいえ 是 否 不是 да нет 예 아니오".split()
)
_REST = re.compile(
    r" ?(?:$|[.,;:!?)\]}\"'(\u2013\u2014|>\u3002\u3001\u201d\u300d\u3011]|-(?!\w)|\n"
    r"|(?:because|since|as|due|given|yet|at all|in full|overall|weil|da|porque|ya que|parce que|car|perché)\b)"
)
_STRESS = re.compile(
    r"^(?:(?:clearly|definitely|certainly|absolutely|completely|fully|plainly|obviously|entirely|totally"
    r"|undoubtedly|simply"
    r"|still|therefore|thus|hence|indeed|very much|easily)[ ,]+)+",
    re.I,
)
_JOINT = re.compile(r" ?(?:[:=?,;/\u2013\u2014]|-+>? |\u2192) ?")
_AS_VERB = re.compile(
    r" (?:the|all|its|their|his|her|this|that|these|with|an?|every|each|most|only|some|both|two|three|no|by)\b",
    re.I,
)
_REASON = re.compile(r"\b(?:because|since|as|for|due|given|weil|da|porque|car)\b|[\u2013\u2014:;]| - ", re.I)
_SECOND_THOUGHT = re.compile(
    r"\b(?:no|wait|actually|rather|make (?:it|that)|correction|i mean|on second thoughts?|scratch|or maybe|or "
    r"perhaps|should be)\b",
    re.I,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[\u3002\n]")
_PARENTHESIS = re.compile(r"\([^()]{0,400}\)")
_ALTERNATIVE = re.compile(r"^ ?(?:[/|,\u3001]|or\b|oder\b|ou\b|o\b|and\b|vs\b|或|または)", re.I)
_EXCEPT = re.compile(
    r"\b(?:except|apart from|other than|save for|with the exception|but only|but not|but barely|only just|just "
    r"about"
    r"|in (?:spirit|part)|at best|with reservations?|bis auf|salvo|excepto|sauf)\b",
    re.I,
)
_BUT = re.compile(r"\b(?:but|though|although|yet|however|aber|jedoch|pero|mais)\b", re.I)
_ADVERSE = re.compile(
    r"\b(?:not|no|never|none|nothing|neither|nor|fail\w*|lack\w*|miss(?:es|ing|ed)|absent|absence|without"
    r"|omit\w*|wrong"
    r"|incorrect\w*|violat\w*|cannot|insufficient\w*|unmet|forg[eo]t\w*|leaves? out|left out|ignor\w*|invalid"
    r"|contradict\w*"
    r"|nicht|kein\w*|fehl\w*|ohne|falta\w*|sin|manque\w*|sans|pas)\b|n't\b|不|未|没|ない|せん",
    re.I,
)
_SHORTFALL = re.compile(
    r"\b(?:only|instead|too|over|under|exceed\w*|error\w*|just|less|fewer|short|nur|sólo|solo)\b", re.I
)
_TEMPLATE = re.compile(r"^[\s.\u2026]*$|^<[^<>]*>$|^\{\{?[^{}]*\}\}?$|^\.\.\.")
_PREFIXES = ("un", "in", "non", "not", "im", "ir", "dis", "no", "nicht", "不", "未", "非")


class Vocabulary:
    """Reads verdict words. Build it with `vocabulary_of`, which keeps it.

    Args:
        choices: the allowed verdicts, as they are to be reported.
    """

    def __init__(self, choices: Sequence[str]) -> None:
        self.choices = tuple(choices)
        folded = [fold(choice) or choice for choice in self.choices]
        self._exact = {
            word: choice for word, choice in zip(folded, self.choices, strict=True) if folded.count(word) == 1
        }
        concepts = [concept_of(word) for word in folded]
        if any(word.isdigit() and word not in ("0", "1") for word in folded):
            # The levels of a scale: 1 and 0 are numbers there, not yes and no.
            concepts = [None if word.isdigit() else concept for word, concept in zip(folded, concepts, strict=True)]
        if Concept.PARTIAL in concepts:
            # Beside a partly met, "fully met" is more than met: it goes by its own name only.
            concepts = [None if is_whole(word) else concept for word, concept in zip(folded, concepts, strict=True)]
        self._of_concept: dict[Concept, str] = {
            concept: choice
            for concept, choice in zip(concepts, self.choices, strict=True)
            if concept is not None and concepts.count(concept) == 1
        }
        self._longest = max(60, *(2 * len(choice) + 20 for choice in self.choices))
        self._pair_up(folded)
        words = sorted({*self._exact, *SYNONYMS}, key=len, reverse=True)
        negations = "|".join(re.escape(word) for word in sorted(NEGATIONS, key=len, reverse=True))
        self._start = re.compile(
            rf"(?P<word>{_surface(words)})(?![\w%\u00b0]|[.,/]\d)|(?P<not>(?:{negations})[ "
            rf"_-](?P<inner>{_surface(words)}))(?!\w)",
            re.I,
        )
        self._named = re.compile(rf"(?<!\w)(?:{_surface(sorted(self._exact, key=len, reverse=True))})(?!\w)", re.I)

    def _pair_up(self, folded: list[str]) -> None:
        """Two choices of which one is the other with a negating prefix (valid, invalid) are met and unmet."""
        self.opposites: dict[str, str] = {}
        for word, choice in zip(folded, self.choices, strict=True):
            for prefix in _PREFIXES:
                for joint in ("", " "):
                    other = self._exact.get(prefix + joint + word)
                    if other is not None:
                        self.opposites |= {choice: other}
        met, unmet = self._of_concept.get(Concept.MET), self._of_concept.get(Concept.UNMET)
        if met is not None and unmet is not None:
            self.opposites |= {met: unmet}

    def of_concept(self, concept: Concept) -> str | None:
        """The choice that means this, where exactly one does."""
        return self._of_concept.get(concept)

    @property
    def polar(self) -> bool:
        """Whether met and unmet are both among the choices."""
        return Concept.MET in self._of_concept and Concept.UNMET in self._of_concept

    def exact(self, text: str) -> str | Unreadable:
        """A text that is nothing but one verdict word."""
        bare = text.strip()
        if bare in self.choices:
            return bare
        if len(bare) > self._longest:
            return Unreadable.UNKNOWN
        word = fold(text)
        if word in self._exact:
            choice = self._exact[word]
            # Grades such as A and A-: the sign is part of the name, not punctuation.
            signed = choice[-1] in "+-" and not bare.strip(_AROUND).endswith(choice[-1])
            return Unreadable.UNKNOWN if signed else choice
        concept = concept_of(word) if word else SYNONYMS.get(bare)
        if concept is None:
            return self._negated(word)
        found = self._of_concept.get(concept)
        if found is None and concept is Concept.PARTIAL and self.polar:
            return Unreadable.AMBIGUOUS
        return Unreadable.UNKNOWN if found is None else found

    def _negated(self, word: str) -> str | Unreadable:
        if " " not in word:
            return Unreadable.UNKNOWN
        for negation in NEGATIONS:
            if word.startswith(negation + " "):
                inner = self._exact.get(word[len(negation) + 1 :])
                if inner is None or is_whole(fold(inner)):
                    continue
                return self.opposites.get(inner, Unreadable.AMBIGUOUS)
        return Unreadable.UNKNOWN

    def read(self, value: object) -> str | Unreadable:
        """A value out of a JSON reply."""
        if isinstance(value, Conflict):
            readings = {self.read(one) for one in value.values}
            return readings.pop() if len(readings) == 1 else Unreadable.AMBIGUOUS
        if isinstance(value, bool):
            return self.exact("true" if value else "false")
        if isinstance(value, int | float):
            return self._number(value)
        if isinstance(value, str):
            return self.read_text(value)
        items = as_array(value)
        if items is not None:
            return self.read(items[0]) if len(items) == 1 else Unreadable.UNKNOWN
        return self._inside(as_object(value) or {})

    def _number(self, value: float) -> str | Unreadable:
        # 1 and 0 stand for met and unmet only where the choices are such a pair, or are written so.
        whole = int(value) if value in (0, 1) or float(value).is_integer() else value
        return self.exact(str(whole))

    def _inside(self, value: Mapping[str, object]) -> str | Unreadable:
        for key in ("value", "label", "verdict"):
            if key in value and not isinstance(value[key], Mapping):
                return self.read(value[key])
        return Unreadable.UNKNOWN

    def read_text(self, text: str) -> str | Unreadable:
        """A text that begins with a verdict word, with or without a remark after it.

        Hedged, contradicted or several verdicts are AMBIGUOUS; a list of the options is a PLACEHOLDER.
        """
        whole = self.exact(text)
        if whole is not Unreadable.UNKNOWN:
            return whole
        bare = _STRESS.sub("", compact(clean(text)).lstrip(_AROUND + "-.\u2013\u2014#"))
        match = self._start.match(bare)
        if match is None:
            return self._without_start(text, bare)
        label = self.exact(match.group())
        rest = bare[match.end() :]
        options = self._after_options(label, rest)
        if options is not None:
            chosen = self.exact(options.lstrip(_AROUND + "-") or "?")
            return chosen if isinstance(chosen, str) else Unreadable.PLACEHOLDER
        rest = rest.lstrip(_CLOSERS)
        if isinstance(label, str):
            return self._with_rest(label, match.group(), rest)
        return label if _REST.match(rest) else Unreadable.UNKNOWN

    def _with_rest(self, label: str, word: str, rest: str) -> str | Unreadable:
        """The verdict in front of `rest`: a remark, a sign that repeats it, or the answer to "Met: ..."."""
        beside = self._start.match(rest.lstrip(" "))
        if beside and not (word[-1].isalnum() and beside.group()[0].isalnum()):
            if self.exact(beside.group()) != label:
                return Unreadable.AMBIGUOUS
            rest = rest.lstrip(" ")[beside.end() :].lstrip(_CLOSERS)
        if not _REST.match(rest):
            return Unreadable.AMBIGUOUS if cues.HEDGES.match(rest.lstrip(" ")) else Unreadable.UNKNOWN
        joint = _JOINT.match(rest)
        second = self._start.match(rest[joint.end() :].lstrip(_AROUND)) if joint else None
        if joint and second:
            found = self._answered(label, second, question=joint.group().strip()[:1] in (":", "=", "?"))
            if found is not None:
                return found
        return Unreadable.AMBIGUOUS if self._contradicted(label, fold(word), rest) else label

    def _answered(self, label: str, second: re.Match[str], *, question: bool) -> str | Unreadable | None:
        """What "Met: no" or "met, unmet" come to, None when the second word is only the start of a remark."""
        value = self.exact(second.group())
        following = second.string[second.end() :]
        if fold(second.group()) in _YES_NO:
            if not question or not _REST.match(following):
                return None
            if label == self.of_concept(Concept.MET):
                return value
            return label if value == self.of_concept(Concept.MET) else Unreadable.AMBIGUOUS
        if value == label or value is Unreadable.UNKNOWN or _AS_VERB.match(following):
            return None
        return Unreadable.AMBIGUOUS

    def _without_start(self, text: str, bare: str) -> Unreadable:
        if _TEMPLATE.match(text.strip()):
            return Unreadable.PLACEHOLDER
        hedge = cues.HEDGES.match(bare)
        if hedge and self._start.match(bare[hedge.end() :].lstrip(" -,:()")):
            return Unreadable.AMBIGUOUS
        return Unreadable.UNKNOWN

    def _after_options(self, label: str | Unreadable, rest: str) -> str | None:
        """What follows when a verdict word is the first of a list of options ("met/unmet"), None when it is not."""
        rest = rest.lstrip("\"'`*[]<>")
        joint = _ALTERNATIVE.match(rest)
        if joint is None:
            return None
        after = rest[joint.end() :].lstrip(_AROUND)
        other = self._start.match(after)
        if other is None or fold(other.group()) in _YES_NO:
            return None
        second = self.exact(other.group())
        return None if isinstance(second, Unreadable) or second == label else after[other.end() :]

    def _contradicted(self, label: str, word: str, rest: str) -> bool:
        end = _SENTENCE_END.search(rest)
        remark = rest[: end.start()] if end else rest
        if rest.lstrip().startswith("?"):
            return True
        if cues.HEDGES.search(remark[:40]) or _EXCEPT.search(remark):
            return True
        aside = _PARENTHESIS.sub("", remark)
        cut = _REASON.search(aside)
        near = aside[: min(cut.start() if cut else 60, 60)]
        thought = _SECOND_THOUGHT.search(aside)
        for start, stop in ((0, len(near)), (thought.end() if thought else len(aside), len(aside))):
            for found in self._named.finditer(aside, start, stop):
                if self.exact(found.group()) != label and not _AS_VERB.match(aside, found.end()):
                    return True
        but = _BUT.search(aside) if label != self.of_concept(Concept.UNMET) else None
        if but and _ADVERSE.search(aside, but.end()):
            return True
        return word in _YES_NO and self.polar and self._answers_otherwise(label, remark)

    def _answers_otherwise(self, label: str, remark: str) -> bool:
        """Whether a clause joined to a yes or no speaks for the other side, as far as its words tell."""
        clause = remark.strip(" ,;:.-\u2013\u2014()!")
        if not clause:
            return False
        adverse = _ADVERSE.search(clause) is not None
        if label == self.of_concept(Concept.MET):
            return adverse
        return not adverse and _SHORTFALL.search(clause) is None

    def is_other(self, word: str, label: str) -> bool:
        """Whether a text is another verdict word than `label`, yes and no left out."""
        return fold(word) not in _YES_NO and self.exact(word) not in (label, Unreadable.UNKNOWN)

    def is_answer(self, sentence: str) -> bool:
        """Whether the sentence begins with a yes or no, in any language."""
        match = self._start.match(sentence.lstrip(_AROUND))
        return match is not None and fold(match.group()) in _YES_NO

    def disagrees(self, label: str, clause: str) -> bool:
        """Whether a clause after a yes or no speaks for the other side, as far as its words tell."""
        return self.polar and label == self.of_concept(Concept.MET) and _ADVERSE.search(clause) is not None

    def named(self, text: str) -> set[str]:
        """The choices whose own names occur in a text."""
        found = (self.exact(match.group()) for match in self._named.finditer(text))
        return {choice for choice in found if isinstance(choice, str)}


def _surface(words: list[str]) -> str:
    return "|".join(re.escape(word).replace(r"\ ", "[ _-]") for word in words)


@lru_cache(maxsize=256)
def _cached(choices: tuple[str, ...]) -> Vocabulary:
    return Vocabulary(choices)


def vocabulary_of(choices: Sequence[str]) -> Vocabulary:
    """The vocabulary of these choices. Raises ConfigError when there are none, or two alike."""
    words = tuple(choices)
    if not words or any(not word.strip() for word in words) or len(set(words)) != len(words):
        raise ConfigError(f"verdict choices must be distinct and not blank, got {list(words)}")
    return _cached(words)
