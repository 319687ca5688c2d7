"""Rules about criteria that say the same thing twice, or the opposite (family D)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rubricate.rubrics.criterion import Criterion, Polarity
from rubricate.rubrics.linting.base import Found, Severity, Subject, rule
from rubricate.rubrics.linting.constraints import find_constraints
from rubricate.rubrics.linting.words import STOP, Text

__all__ = ["close_pairs"]

MAX_POSTING = 300
"""A word that so many criteria of one group begin with proposes no further pairs: it tells nothing apart."""

_ANTONYMS = (
    "formal informal; increase decrease; increases decreases; more less; more fewer; before after; "
    "include exclude; "
    "includes excludes; always never; true false; correct incorrect; minimum maximum; includes "
    "omits; mentions omits; "
    "least most; first last; higher lower; short long; brief lengthy; brief detailed; concise detailed; "
    "uses avoids; allow forbid; allows forbids; recommends discourages; begins ends; starts ends; "
    "possible impossible; safe unsafe; legal illegal; ascending descending; uppercase lowercase; "
    "past present; singular plural; open closed; encourages discourages; supports opposes; accepts rejects"
)
_OPPOSITE = frozenset(frozenset(pair.split()) for pair in _ANTONYMS.split(";"))


def _same_case(first: Criterion, second: Criterion) -> bool:
    return first.condition == second.condition


def _quote(criterion: Criterion) -> str:
    text = criterion.text.strip()
    return f"{criterion.id!r} ({text[:80]}{'…' if len(text) > 80 else ''})"


def _merge(kept: Criterion, dropped: Criterion) -> str:
    if kept.polarity is dropped.polarity and kept.weight != dropped.weight:
        return (
            f"keep {kept.id!r} and remove {dropped.id!r}; choose one weight ({kept.weight:g} or {dropped.weight:g})"
        )
    return f"keep {kept.id!r} and remove {dropped.id!r}"


@rule("D101", "duplicate")
def duplicate(subject: Subject) -> Iterator[Found]:
    """Two criteria of one group have the same text, letter case, white space and punctuation apart.

    What they ask for counts twice, and is judged and paid for twice. In a nested rubric only criteria of the same
    group are compared: the same leaf may stand below two groups.

    Fix: remove one of them.
    """
    for indices in subject.siblings:
        first: dict[tuple[object, ...], Criterion] = {}
        for index in indices:
            criterion = subject.criteria[index]
            key = (subject.texts[index].words, criterion.condition, criterion.polarity)
            if not subject.texts[index].words:
                key = (criterion.text, *key)
            kept = first.setdefault(key, criterion)
            if kept is not criterion:
                message = f"it says the same as {_quote(kept)}"
                yield Found((criterion.id, kept.id), message, _merge(kept, criterion))


@rule("D102", "near-duplicate")
def near_duplicate(subject: Subject) -> Iterator[Found]:
    """Two criteria of one group differ in nothing but inflection, order, and words such as `mentions`.

    As with duplicates, the same thing counts twice. Texts that differ in a number, a name, a negation or any other
    word that carries meaning are not reported here.

    Fix: remove one of them, or say what makes them differ.
    """
    for first, second, alike in close_pairs(subject, 1.0):
        if alike == 1.0:
            a, b = subject.criteria[first], subject.criteria[second]
            yield Found((b.id, a.id), f"it asks for the same as {_quote(a)} in other words", _merge(a, b))


@rule("D103", "similar", Severity.INFO, parameters=("similar_share",))
def similar(subject: Subject) -> Iterator[Found]:
    """Two criteria of one group share most of their content words, and differ in no number or name.

    They may overlap, so that part of a response counts twice.

    Fix: merge them, or make each say what the other does not.
    """
    for first, second, alike in close_pairs(subject, subject.limits.similar_share):
        if alike < 1.0:
            a, b = subject.criteria[first], subject.criteria[second]
            message = f"it shares {100 * alike:.0f}% of its content words with {_quote(a)}"
            yield Found((b.id, a.id), message, f"merge it with {a.id!r}, or say what makes them differ")


@rule("D104", "contradiction", Severity.ERROR)
def contradiction(subject: Subject) -> Iterator[Found]:
    """Two criteria of one group cannot both be good: one is the negation or the opposite of the other.

    The same text as a reward and as a penalty; `mentions X` and `does not mention X`, both rewarded; `at most 50
    words` and `at least 100 words`. Every response loses one of them.

    Fix: remove one, or give each a condition that says when it applies.
    """
    for indices in subject.siblings:
        yield from _opposites(subject, indices)
        yield from _ranges(subject, indices)


def _opposites(subject: Subject, indices: Sequence[int]) -> Iterator[Found]:
    by_core: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index in indices:
        for core in _cores(subject.texts[index]):
            by_core[core].append(index)
    seen: set[tuple[int, int]] = set()
    for places in by_core.values():
        for at, second in enumerate(places[:MAX_POSTING]):
            for first in places[:at]:
                a, b = subject.criteria[first], subject.criteria[second]
                if (first, second) not in seen and _same_case(a, b) and _against(subject, first, second):
                    seen.add((first, second))
                    same = a.polarity is b.polarity
                    what = "is the opposite of" if same else "says the same, with the other sign, as"
                    fix = f"remove {a.id!r} or {b.id!r}, or give each a condition"
                    yield Found((b.id, a.id), f"it {what} {_quote(a)}", fix)


_OPPOSED = {word: pair for pair in _OPPOSITE for word in pair}


def _cores(text: Text) -> Iterator[tuple[str, ...]]:
    """What texts must share to be opposites: all content words, or all but one of a pair of antonyms."""
    yield text.core
    words = tuple(word for word in text.words if word not in STOP)
    for at, word in enumerate(words):
        if word in _OPPOSED and len(words) > 2:
            yield ("*", *words[:at], *words[at + 1 :])


def _against(subject: Subject, first: int, second: int) -> bool:
    one, two = subject.texts[first], subject.texts[second]
    same_sign = subject.criteria[first].polarity is subject.criteria[second].polarity
    if one.core == two.core and one.core:
        shared = one.negative == two.negative
        if one.words == two.words:
            return not same_sign
        return (not shared) and same_sign and _only_negated(one, two)
    different = (set(one.words) ^ set(two.words)) - STOP
    return same_sign and frozenset(different) in _OPPOSITE


def _only_negated(one: Text, two: Text) -> bool:
    """Whether two texts with the same content words differ by the negation alone, numbers included."""
    return one.names == two.names and not (one.relational and one.core != two.core)


def _ranges(subject: Subject, indices: Sequence[int]) -> Iterator[Found]:
    bounds: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    for index in indices:
        criterion = subject.criteria[index]
        if criterion.polarity is Polarity.PENALTY or criterion.condition is not None:
            continue
        for found in find_constraints(criterion.text):
            if found.exact and found.whole:
                low = -math.inf if found.low is None else found.low
                bounds[found.unit].append((index, low, math.inf if found.high is None else found.high))
    for unit, ranges in bounds.items():
        lowest = min(ranges, key=lambda entry: entry[2])
        highest = max(ranges, key=lambda entry: entry[1])
        if highest[1] > lowest[2] and highest[0] != lowest[0]:
            a, b = sorted((lowest[0], highest[0]))
            first, second = subject.criteria[a], subject.criteria[b]
            span = f"at least {highest[1]:g} and at most {lowest[2]:g} {unit}"
            message = f"no response meets it and {_quote(first)}: {span}"
            yield Found((second.id, first.id), message, "make the two ranges overlap, or remove one criterion")


@rule("D105", "duplicate-id")
def duplicate_id(subject: Subject) -> Iterator[Found]:
    """An id occurred more than once in the source, and one of the two had to be renamed on import.

    Grades, comments and journals that refer to the id cannot say which of the two they mean.

    Fix: give one of them another id in the source.
    """
    for note in subject.notes:
        if note.kind == "duplicate_id":
            yield Found((note.criterion_id,) if note.criterion_id else (), note.message, "rename one in the source")


@rule("D106", "counted-twice", Severity.INFO)
def counted_twice(subject: Subject) -> Iterator[Found]:
    """A penalty says the opposite of a reward: `mentions X` is rewarded, and `does not mention X` is penalised.

    The one thing is judged twice and counts with the sum of both weights, which may not be meant; two verdicts
    about it can contradict each other.

    Fix: keep one of them, with the weight that is meant.
    """
    for indices in subject.siblings:
        seen: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for index in indices:
            text, criterion = subject.texts[index], subject.criteria[index]
            for other in seen[text.core][:20]:
                before, first = subject.texts[other], subject.criteria[other]
                mirrored = before.negative != text.negative and criterion.polarity is not first.polarity
                if mirrored and _same_case(first, criterion) and _only_negated(before, text):
                    message = f"it is the reverse of {_quote(first)}, with the other sign: one thing counts twice"
                    yield Found((criterion.id, first.id), message, _merge(first, criterion))
            seen[text.core].append(index)


@rule("D107", "same-meaning", Severity.INFO, parameters=("similar_cosine", "same_cosine"))
def same_meaning(subject: Subject) -> Iterator[Found]:
    """An embedder finds two criteria of one group alike (needs one: `embedder=`, `--embedder`).

    They may ask for the same thing in other words: read them. It is a warning where the cosine is high, information
    below and in nested rubrics. Embeddings put the opposite as close as the same. They hardly tell apart texts that
    differ in a number, a name or a negation, or that share half of their words (`the price of the hotel`, `the
    location of the hotel`), so that such pairs are left out here; other rules compare those words.

    Fix: remove one of them, or say what makes them differ.
    """
    for pair in subject.meant_alike:
        a, b = subject.criteria[pair.first], subject.criteria[pair.second]
        one, two = subject.texts[pair.first], subject.texts[pair.second]
        apart = one.names != two.names or one.negative != two.negative or a.polarity is not b.polarity
        if not apart and one.core_set != two.core_set and _same_case(a, b) and _other_words(one, two):
            sure = pair.cosine >= subject.limits.same_cosine and not a.path
            said = "probably says" if sure else "may say"
            message = f"it {said} the same as {_quote(a)}, or the opposite (cosine {pair.cosine:.2f})"
            fix = f"read both: where they ask for the same thing, {_merge(a, b)}"
            yield Found((b.id, a.id), message, fix, Severity.WARNING if sure else None)


def _other_words(one: Text, two: Text) -> bool:
    """Whether two texts share less than half of their words: what shares more is mostly one sentence with a word
    exchanged, whose cosine is that of the sentence."""
    return 2 * len(one.stems & two.stems) < len(one.stems | two.stems)


# Pairs of similar texts


def close_pairs(subject: Subject, share: float) -> Iterator[tuple[int, int, float]]:
    """Pairs within a group whose content words overlap by `share` or more (Jaccard), each with the overlap.

    1.0 stands for texts that differ in inflection, order and words without meaning alone. Texts that are equal,
    that differ in a number, a name or a negation, or that have another condition or sign, are left out.
    """
    for indices in subject.siblings:
        if len(indices) < 2:
            continue
        cores = {index: subject.texts[index].core_set for index in indices}
        for first, second in _equal(cores) if share >= 1.0 else _candidates(cores, share):
            alike = _alike(subject, first, second, share)
            if alike:
                yield first, second, alike


def _equal(cores: Mapping[int, frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Pairs of texts with the same content words."""
    known: dict[frozenset[str], list[int]] = defaultdict(list)
    for second, core in cores.items():
        yield from ((first, second) for first in known[core][:MAX_POSTING])
        known[core].append(second)


def _candidates(cores: Mapping[int, frozenset[str]], share: float) -> Iterator[tuple[int, int]]:
    """Pairs that may overlap so much, out of an inverted index of each text's rarest words.

    Prefix filtering (Chaudhuri et al. 2006; Wang et al. 2012): in one order of all words, two sets that overlap by
    `share` have two of their first n - ceil(share·n) + 2 words in common, so that only those are looked up.
    """
    frequency = Counter(word for core in cores.values() for word in core)
    index_of: dict[str, list[int]] = defaultdict(list)
    for second, core in cores.items():
        if len(core) < 2:
            continue
        rarest = sorted(core, key=lambda word: (frequency[word], word))
        prefix = rarest[: len(core) - math.ceil(share * len(core)) + 2]
        shared = Counter[int]()
        for word in prefix:
            shared.update(index_of[word][:MAX_POSTING])
            index_of[word].append(second)
        low, high = share * len(core), len(core) / share
        yield from ((first, second) for first, n in shared.items() if n > 1 and low <= len(cores[first]) <= high)


def _alike(subject: Subject, first: int, second: int, share: float) -> float:
    """How much two texts overlap, 0.0 where they are not to be compared."""
    one, two = subject.texts[first], subject.texts[second]
    if not two.core_set or (len(two.core_set) < 2 and one.core != two.core):
        return 0.0
    overlap = len(one.core_set & two.core_set) / len(one.core_set | two.core_set)
    if overlap < share or one.words == two.words:
        return 0.0
    a, b = subject.criteria[first], subject.criteria[second]
    if a.polarity is not b.polarity or not _same_case(a, b):
        return 0.0
    if one.names != two.names or one.negative != two.negative or _opposed(one, two):
        return 0.0
    if a.channel != b.channel or (a.path and overlap < 1.0 and not _one_in_other(one, two)):
        return 0.0
    if overlap == 1.0 and one.core != two.core and (one.relational or two.relational or _reordered_names(one, two)):
        return 0.0
    return overlap


def _opposed(one: Text, two: Text) -> bool:
    left, right = set(one.words) - set(two.words), set(two.words) - set(one.words)
    return any(frozenset((word, other)) in _OPPOSITE for word in left for other in right)


def _one_in_other(one: Text, two: Text) -> bool:
    """Whether one text only adds a word or two: leaves of a tree that replace one are variants on purpose."""
    more, fewer = sorted((one.core_set, two.core_set), key=len, reverse=True)
    return fewer <= more and len(more) - len(fewer) <= 2


def _reordered_names(one: Text, two: Text) -> bool:
    """Whether numbers or names come in another order, so that they may change roles (`3 cats and 2 dogs`)."""
    names = [[word for word in text.core if word in text.names] for text in (one, two)]
    return names[0] != names[1]
