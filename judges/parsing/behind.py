"""What stands behind the verdicts of a reply, sentence by sentence, and whether it speaks against one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from rubricate.judges.parsing import cues
from rubricate.judges.parsing.labels import LabelFinder
from rubricate.judges.parsing.synonyms import Concept
from rubricate.judges.parsing.text import mask_quotes, sentences
from rubricate.judges.parsing.verdict import takes_back, text_marks
from rubricate.judges.parsing.vocabulary import Unreadable, Vocabulary

__all__ = ["relabelled", "said_of", "speaks_against", "stated"]

_PREFIX = r"(?i:criteri(?:on|a)|items?|numbers?|no\.|points?) ?#? ?"
_AND = r"(?: ?, ?(?:and )?| and | & )"
_NAMED = "the criterion"
_CLAUSE = re.compile(r"[,;]| [-\u2013\u2014] |\b(?:but|while|whereas|although|though|and|yet)\b")
_PARTIAL = re.compile(
    r"\b(?:not (?:all|every|each)|except|apart from|other than|all but|besides|only|some|most|several|few|half"
    r"|(?:one|two|three|four|five|\d+) (?:of|out of))\b",
    re.I,
)
_GENERAL = re.compile(r"criteri|verdict", re.I)
_STATED = re.compile(
    rf"\b{_NAMED}(?:'s)?(?: (?:verdict|level|score|rating))? (?:is|was|should be|should have been|must be"
    r"|ought to be|deserves|gets)(?: (?:now|therefore|thus|hence|really|actually|in fact))? (?:an? )?"
    r"(?P<not>not (?!only\b))?[\"'`]?(?P<value>[^\"'`\n]{1,40}?)[\"'`]?(?: after all| though| instead| overall"
    r"| here)?[.! ]*$",
    re.I,
)


def said_of(
    text: str, ids: Sequence[str], is_value: Callable[[str], bool], *, others: Sequence[str] = ()
) -> dict[str, str]:
    """What a text says of each identifier, which stands there as "the criterion"; nothing where it says nothing.

    A sentence that names several is read clause by clause. One that names none is said of all when it speaks of the
    criteria or the verdict as such, or when there is one identifier only; questions, and sentences on an unnamed
    part of the criteria, are left out. Numbers and single letters are names only behind a word such as "criterion".

    Args:
        text: plain text.
        ids: of the criteria.
        is_value: whether a word is a verdict, which counts in quotation marks, too.
        others: further names; a sentence on them is said of none of `ids`.
    """
    pattern, single = _mentions([*ids, *others]), len(ids) == 1
    known = {*ids, *others}
    masked = mask_quotes(text, lambda inner: len(inner) < 60 and (inner.strip() in known or is_value(inner)))
    said: dict[str, dict[str, None]] = {id: {} for id in ids}  # a judge that runs in a loop is read once
    for sentence in sentences(masked):
        if sentence.text.endswith("?"):
            continue
        for named, clause in _clauses(sentence.text, pattern):
            general = not named and (single or (_GENERAL.search(clause) and not _PARTIAL.search(clause)))
            for id in ids if general else named:
                if id in said:
                    said[id][clause] = None
    return {id: "\n".join(clauses) for id, clauses in said.items() if clauses}


def _mentions(ids: Sequence[str]) -> re.Pattern[str]:
    by_length = sorted(ids, key=len, reverse=True)
    every = "|".join(re.escape(id) for id in by_length)
    own = "|".join(re.escape(id) for id in by_length if len(id) > 1 and not id.isdigit()) or r"(?!)"
    return re.compile(
        rf"(?:\b{_PREFIX}[\"'`(]*(?P<led>(?:{every})(?!\w)(?:{_AND}(?:{every})(?!\w))*)"
        rf"|[\"'`(]*(?<!\w)(?P<bare>(?:{own})(?!\w)(?:{_AND}(?:{own})(?!\w))*))[\"'`)]*"
    )


def _clauses(sentence: str, pattern: re.Pattern[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The clauses of a sentence with the identifiers they name; the whole one where it names one set of them."""
    lists = [tuple(re.split(_AND, match["led"] or match["bare"])) for match in pattern.finditer(sentence)]
    marked = pattern.sub("\0", sentence)
    if len(set(lists)) <= 1:
        yield lists[0] if lists else (), marked.replace("\0", _NAMED)
        return
    left = iter(lists)
    for clause in _CLAUSE.split(marked):
        named = [next(left) for _ in range(clause.count("\0"))]
        if len(set(named)) == 1:
            yield named[0], clause.replace("\0", _NAMED).strip()


def relabelled(said: str, label: str) -> str:
    """The text of `said_of` with lines such as "the criterion: met" under a label that readers know."""
    return re.sub(rf"\b{_NAMED} ?(?=[:=])", label, said)


def stated(said: str) -> Iterator[tuple[str, bool]]:
    """What sentences such as "the criterion should be false" give as the value, and whether they deny it."""
    for line in said.split("\n"):
        match = _STATED.search(line)
        if match is not None and not cues.SUPPOSES.search(line) and not cues.is_quotation(line[: match.start()]):
            yield match["value"].strip(), match["not"] is not None


def speaks_against(said: str, verdict: str, words: Vocabulary, finder: LabelFinder) -> bool:
    """Whether a text of `said_of` gives another verdict than this one, or takes it back."""
    marks = text_marks(relabelled(said, "verdict"), words, finder, after=True)
    if any(mark.value not in (verdict, Unreadable.UNKNOWN) for mark in marks):
        return True
    if any(isinstance(value := words.exact(line), str) and value != verdict for line in said.split("\n")):
        return True
    opposite = {words.of_concept(Concept.MET): words.of_concept(Concept.UNMET)} if words.polar else {}
    opposite |= {unmet: met for met, unmet in opposite.items()}
    for text, denied in stated(said):
        value = words.exact(text)
        given = opposite.get(value) if denied and isinstance(value, str) else value
        if isinstance(given, str) and given != verdict:
            return True
    return takes_back(said, verdict, words, finder)
