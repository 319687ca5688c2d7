"""Finding several requirements in one text: sentences, verbs joined by `and`, numbered parts. English."""

from __future__ import annotations

import re

from rubricate.rubrics.linting.words import Text

__all__ = ["requirements"]

_VERBS = (
    "mention state explain describe include provide identify discuss address avoid recommend suggest "
    "advise compare "
    "define cite contain ensure acknowledge demonstrate emphasize emphasise highlight offer propose "
    "summarize summarise "
    "conclude specify warn clarify justify maintain adhere refrain respond outline encourage "
    "calculate compute derive "
    "incorporate use give follow present analyze analyse evaluate assess consider reflect illustrate support refer "
    "decline refuse ask apply interpret distinguish remain predict generate prove translate begin "
    "end start finish keep perform "
    "conduct determine convert list name detail design implement create develop plan write solve "
    "select match cover "
    "establish examine explore differentiate integrate mitigate modify optimize resolve retrieve "
    "search simulate track "
    "update validate construct formulate celebrate comply execute articulate trace detect arrange "
    "verify visualize note recognize recognise infer deduce reason compile report state capture"
).split()


def _third(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "ss")) else "s")


# Bare forms that are as often nouns are left to the third person: "and use", "and support".
_NOUNS = frozenset(
    (
        "use address present offer support end start result state ask refuse finish respond reflect "
        "list name detail design "
        "plan match cover note report reason search track capture update"
    ).split()
)
_BASE = "|".join(verb for verb in _VERBS if verb not in _NOUNS)
_FINITE = "|".join(_third(verb) for verb in _VERBS)
_ADVERB = (
    r"(?:(?:also|then|further|finally|either|\w+ly(?:\s+and(?=\s+\w+ly\b))?|"
    r"does not|do not|should|must|not)\s+){0,3}"
)
_JOIN = r"(?:,?\s+(?:and|but|while|as well as|plus)(?:\s+also)?,?\s+|\s*;\s+(?:and\s+)?|,\s+)"
_STATES = "written|presented|formatted|organi[sz]ed|structured|limited|signed|free"
_OTHER = rf"(?:is|are|has)\s+(?=(?:\w+ly\s+)?(?:{_STATES})\b)"
_FINITE_JOIN = re.compile(rf"{_JOIN}(?:it\s+|the response\s+)?{_ADVERB}(?:(?:{_FINITE})\b|{_OTHER})", re.I)
_SUBORDINATE = re.compile(r"\b(?:how|whether|to|that|which|who|what|why|if)\b")
_JOINER = re.compile(r"(?:,?\s*;?\s*(?:and|but|while|as well as|plus|then)(?:\s+also)?,?\s+|\s*;\s+|,\s+)", re.I)
_BASE_JOIN = re.compile(
    rf"(?:,?\s+(?:and|but|while|as well as)(?:\s+also)?,?\s+|\s*;\s+(?:and\s+)?|,\s+){_ADVERB}(?:{_BASE})\b", re.I
)
_RELATIVE = re.compile(r"(\w+),?\s+(?:that|which|who)\s+(?:\w+ly\s+)?(\w+)", re.I)
_KNOWN_VERB = re.compile(rf"(?:{_FINITE}|{_BASE}|support|use|offer)", re.I)
_FINITE_VERB = re.compile(rf"\b(?:{_FINITE}|is|are|has|have)\b", re.I)
_ASKING = re.compile(r"\W*(?:does|do|did|can|should|will)\b|.{0,60}\b(?:should|must|shall)\b", re.I)
_BASE_VERB = re.compile(rf"\b(?:{_BASE}|use|be|have|give|answer|present|state|support|address|offer)\b", re.I)
_DONE_JOIN = re.compile(
    r",?\s+(?:and|then)\s+(?:(?:then|also|\w+ly)\s+)*(?:(?:the|a|an|its|"
    r"their)\s+[\w\s\-]{2,60}?\s)?(?:is|are|has been|have been|was|were)\s+\w+ed\b",
    re.I,
)
_DONE = re.compile(r"\b(?:is|are|has been|have been|was|were)\b", re.I)
_ASIDE = re.compile(r"\([^()]{0,300}\)")
_SENTENCE = re.compile(r"(?<=[.;!?])\s+(?=[A-Z\"“(\[])")
_NO_REQUIREMENT = re.compile(
    r"\W*(?:for (?:example|instance)|e\.?g|i\.?e|examples?|note|that is|such|this (?:is|means|"
    r"includes|refers|can|may|"
    r"should include|could|would|criterion|counts?)|these|it is|if|otherwise|in other words|or\b|"
    r"see\b|namely|(?:full|partial|no) "
    r"(?:credit|points?)|accept|award|any|where|here|as\b|because|since)",
    re.I,
)
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|al|fig|sec|eq|no|approx|dr|mr|ms|st|resp)\.$", re.I)
_NUMBERED = re.compile(
    r"(?:^|[\s,;:])(?:\((?:[a-e]|[1-6]|i{1,3}|iv)\)|(?<!\w)[1-6]\)|(?<!\w)[1-6]\.(?=\s[A-Za-z]))\s*"
)
_SUBJECT = re.compile(
    r"\W*((?:the|this)\s+(?:response|answer|model|assistant|output|text|reply|summary|essay|email|letter))\s+", re.I
)

_QUESTION = re.compile(
    r"\W*((?:does|do|did|should|will|can)\s+(?:the|this)\s+(?:given\s+|provided\s+)?\w+)\s+", re.I
)
_BARE = re.compile(rf"{_ADVERB}(?:{_FINITE}|is|are|has)\b", re.I)
_BARE_BASE = re.compile(rf"{_ADVERB}(?:{_BASE}|use|apply|present|state|list)\b", re.I)


def requirements(text: Text) -> list[str]:
    """The requirements of a text, each as a text of its own; one where it is not compound.

    Deliberately blind to what it cannot tell from lists: nouns joined by `and`, verbs that share their object
    (`identifies and corrects the error`), relative clauses.
    """
    raw = text.raw.strip()
    blanked = _blanked(text)
    plain = _ASIDE.sub(lambda found: " " * len(found[0]), blanked)
    numbered = list(_NUMBERED.finditer(blanked))
    if len(numbered) >= 2:
        return _cut(raw, [match.start() for match in numbered[1:]], [match.end() for match in numbered[1:]])
    parts: list[str] = []
    for start, end in _sentences(plain):
        cuts = _joins(plain[start:end])
        pieces = _cut(raw[start:end], [at for at, _ in cuts], [to for _, to in cuts])
        parts += [piece for piece in pieces if piece]
    return _with_subject(parts)


def _blanked(text: Text) -> str:
    """The stripped text with quotations replaced by as many letters, so that places stay."""
    raw = text.raw.strip()
    for quoted in text.quotations:
        raw = raw.replace(quoted, "x" * len(quoted), 1)
    return raw


def _sentences(plain: str) -> list[tuple[int, int]]:
    """Where the sentences that ask for something begin and end."""
    starts = [0]
    for match in _SENTENCE.finditer(plain):
        if not _ABBREVIATION.search(plain[: match.start()]):
            starts.append(match.end())
    spans = list(zip(starts, [*starts[1:], len(plain)], strict=True))
    return [spans[0], *((a, b) for a, b in spans[1:] if _asks(plain[a:b]))]


def _asks(sentence: str) -> bool:
    if len(sentence.split()) <= 3 or _NO_REQUIREMENT.match(sentence):
        return False
    return bool(_FINITE_VERB.search(sentence) or _ASKING.match(sentence))


def _joins(sentence: str) -> list[tuple[int, int]]:
    """Where one requirement ends and the next begins, in one sentence."""
    asking = bool(_ASKING.match(sentence))
    verb = _BASE_VERB if asking else _FINITE_VERB
    found = [*(_BASE_JOIN if asking else _FINITE_JOIN).finditer(sentence), *_DONE_JOIN.finditer(sentence)]
    found.sort(key=lambda match: match.start())
    last_joined = max((match.start() for match in found if not _is_comma(match)), default=-1)
    cuts: list[tuple[int, int]] = []
    begin = 0
    for match in found:
        first = (_DONE if match.re is _DONE_JOIN else verb).search(sentence, begin, match.start())
        first = first or (_QUESTION.match(sentence) if asking and not begin else None)
        if first is None or (_is_comma(match) and match.start() > last_joined):
            continue
        between = sentence[first.end() : match.start()]
        enough = 1 if first[0].lower() in ("is", "are") else 2
        if (
            len(between.split()) >= enough
            and not _relative(between, match[0])
            and not _SUBORDINATE.search(match[0])
        ):
            joiner = _JOINER.match(match[0])
            cuts.append((match.start(), match.start() + (joiner.end() if joiner else 0)))
            begin = cuts[-1][1]
    return cuts


def _is_comma(match: re.Match[str]) -> bool:
    """Whether a comma alone joins: in `states A, explains B, and cites C` it does, where an `and` follows."""
    return re.match(r",\s+(?!and\b|but\b|while\b)", match[0], re.I) is not None


def _relative(between: str, joined: str) -> bool:
    """Whether the verb after `and` goes on with a relative clause: `a plan that saves money and provides time`."""
    for clause in _RELATIVE.finditer(between):
        before, verb = clause[1], clause[2]
        if joined.rstrip().endswith("s"):
            # After a verb of saying, `that` begins what is said: `explains that doctors agree and mentions ...`.
            relative = verb.endswith("s") and not _KNOWN_VERB.fullmatch(before)
        else:
            relative = not verb.endswith("s") and _KNOWN_VERB.fullmatch(verb) is not None
        if relative:
            return True
    return False


def _cut(raw: str, ends: list[int], starts: list[int]) -> list[str]:
    pieces = [raw[a:b] for a, b in zip([0, *starts], [*ends, len(raw)], strict=True)]
    return [piece.strip(" ,;:.?\n") for piece in pieces]


def _with_subject(parts: list[str]) -> list[str]:
    """The parts as sentences, the first one's subject given to those without."""
    if len(parts) < 2:
        return parts
    asked = _QUESTION.match(parts[0])
    subject, end = (asked, "?") if asked else (_SUBJECT.match(parts[0]), ".")
    done: list[str] = [parts[0] + end]
    for part in parts[1:]:
        bare = (_BARE_BASE if asked else _BARE).match(part)
        done.append((f"{subject[1]} {part}" if subject and bare else part[:1].upper() + part[1:]) + end)
    return done
