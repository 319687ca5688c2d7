"""The sides of a comparison: reading a label, a comparison sign, a tie, or a sentence that says who is better."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from rubricate.errors import ConfigError
from rubricate.judges.parsing import cues
from rubricate.judges.parsing.jsonlike import Conflict
from rubricate.judges.parsing.marks import Mark, Standing
from rubricate.judges.parsing.text import clean, compact, fold, sentences
from rubricate.judges.parsing.vocabulary import Unreadable
from rubricate.narrow import as_array, as_object

__all__ = ["TIE", "Contest", "contest_of"]

TIE = "tie"
NOUNS = (
    r"responses?|answers?|assistants?|options?|candidates?|models?|chatbots?|outputs?|repl(?:y|ies)|texts?"
    r"|summar(?:y|ies)"
    r"|completions?|essays?|stor(?:y|ies)|solutions?|versions?|systems?|agents?|ai|choices?|translations?"
    r"|passages?|submissions?"
    r"|antwort|respuesta|réponse|risposta|resposta|ответ|回答|答案|回复|助手|响应|选项|応答|답변|응답"
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_PLACES: dict[str, int] = {word: place for place, word in enumerate(_ORDINALS)} | {"former": 0, "latter": 1}
_TIE_WORDS = set(
    "tie|tied|draw|equal|equals|equally good|equally bad|both|both equal|both equally good|neither|same|no "
    "preference|even"
    "|no difference|no winner|it is a tie|it's a tie|a tie|a draw|the same|both bad|bothbad|tie (bothbad|tie "
    "(both bad|comparable"
    "|平局|平手|平|相同|一样|同等|不分伯仲|引き分け|同点|同等|互角|무승부|동점|unentschieden|gleichstand|empate"
    "|égalité|pareggio|ничья".split("|")
)
_TIE_START = re.compile(
    r"(?:an? |the |it is an? |it's an? )?(?:tied?|draw|平局|引き分け|무승부|unentschieden|empate"
    r"|égalité)(?![\w'-])",
    re.I,
)
_TIE_SENTENCE = re.compile(
    r"\b(?:it is|it's|this is|call (?:it|this)|declare (?:it )?|ends? in|result is|verdict is|as) (?:an? "
    r")?(?:tie|draw)\b"
    r"|\b(?:both|they|the two|the (?:responses|answers|outputs|assistants))\b[^.,;]{0,30}\bare (?:\w+ )?(?:tied"
    r"|equal|equivalent|equally (?:good|strong|matched|helpful|bad))\b"
    r"|\bno (?:clear )?winner\b|\bneither (?:\w+ )?is (?:\w+ )?(?:better|superior|stronger)\b",
    re.I,
)
_HINT = re.compile(
    r"better|worse|strong|superior|inferior|weak|prefer|best|worst|win|lose|beats|outperf|surpass|edges|choose"
    r"|pick|select|favou?r"
    r"|go with|vote|tie|draw|equal|neither|both|they|the two|besser|mejor|meilleur|更|胜|好|良|优|優|不如|劣|逊"
    r"|强|いい|よい|더",
    re.I,
)
_PREFERS = re.compile(
    r"^(?:(?:strongly|slightly|clearly|much|i) )*(?:prefers?|preferred|choose|pick|select|favou?rs?)(?: is)?[ :]+",
    re.I,
)
_SIGNS = r"(?:>{1,3}|<{1,3}|={1,3}|≫|≪|≻|≺|≈)"
_REST = re.compile(
    r"[\]\[)}\"'*»”」】 ]*(?:$|[.,;:!?(\n–—|。，]|-(?= )|(?:because|since|as|due|overall|wins?|(?:is|was) (?:\w+ "
    r"){0,3}?(?:better|winner|best"
    r"|superior|stronger|preferred|preferable)|(?:slightly |much |clearly )?better)\b(?! than)"
    r"|(?:is|was) (?:\w+ ){0,2}?better than\b)",
    re.I,
)
_ALTERNATIVE = re.compile(r"[\]\[)}\"' ]*(?:/|,|\||\bor\b|\band\b|\boder\b|或|&)[\[({\"' ]*", re.I)
_SECOND_THOUGHT = re.compile(r"\b(?:no|wait|actually|rather|correction|i mean|scratch)\b", re.I)
_NEGATION = re.compile(r"\b(?:not|never|neither|nor|no|hardly|nicht|pas|without)\b|n't\b|[不没未]", re.I)
_NOT_ONLY = re.compile(r"\bnot only\b|\bno doubt\b|不如|\bwithout (?:a )?doubt\b", re.I)
_UNSURE = re.compile(
    r"\b(?:probably|possibly|perhaps|maybe|arguably|likely|not sure|unsure|hard to say|presumably|lean(?:ing)?)\b",
    re.I,
)
_ADVERB = (
    r"(?:(?:slightly|much|clearly|far|marginally|significantly|considerably|somewhat|overall|definitely|still"
    r"|simply|therefore|thus"
    r"|hence|also|ultimately|the|a|bit|little|by|objectively|generally|obviously|strongly|then|now|not|clear"
    r"|obvious) )*"
)
_GOOD = r"better|stronger|superior|preferable|preferred|best|winner|winning"
_BAD = r"worse|weaker|inferior|worst|loser"
_END = re.compile(
    r"[\"')\]]*(?: (?:one|of the two|of both|overall|here|by far|in total|in my view|in my opinion|in the end"
    r"|today))*"
    r"(?:$|[.!,;:)\n。，；！]| (?:because|since|as it|as the|overall|for (?:these|this|that) reasons?|due to"
    r"|given|while|whereas|and|but|so)\b)",
    re.I,
)
_CLAUSE = re.compile(r"[,;:–—]|\b(?:but|so|while|whereas|although|though|and|yet|because|since)\b", re.I)
_DECORATION = " \t\n\"'`*[](){}<=:~_|“”„«»「」【】#"


class Contest:
    """The labels of a comparison. Build it with `contest_of`, which keeps it.

    Args:
        labels: as they are to be reported, in the order shown.
        ties: whether a tie was offered.
        tie_label: the label that stands for a tie, where the protocol has one.
    """

    def __init__(self, labels: tuple[str, ...], ties: bool, tie_label: str | None) -> None:
        self.labels = labels
        self.ties = ties
        self.tie_label = tie_label
        self._cores = {self._core(label): label for label in labels}
        if len(self._cores) < len(labels):
            self._cores = {label.casefold(): label for label in labels}
        named = dict(self._cores) | {label.casefold(): label for label in labels}
        if tie_label is not None:
            named[tie_label.casefold()] = TIE
        self._named = named
        core = "|".join(re.escape(name) for name in sorted(named, key=len, reverse=True))
        noun = rf"(?:the )?(?:(?:{NOUNS})[ _-]?[\"'(\[]*)"
        self._label = re.compile(rf"{noun}?(?P<core>{core})(?![\w'’]|-\w)", re.I)
        self._chain = re.compile(rf"{noun}?(?:{core})(?: ?{_SIGNS} ?{noun}?(?:{core}))+(?![\w'’])", re.I)
        self._part = re.compile(rf"(?P<sign>{_SIGNS})|(?<![^\W_])(?P<core>{core})(?![^\W_])", re.I)
        self._statements = _statement_patterns(labels, [name for name in named if named[name] != TIE])

    @staticmethod
    def _core(label: str) -> str:
        """The label without its noun and brackets: A for "Response A", a for "Output (a)"."""
        match = re.match(rf"(?:{NOUNS})[ _-]*(?:(?<=[ _-])|(?=[(\[]))(\S.*)$", label, re.I)
        core = match.group(1) if match else label
        wrapped = re.fullmatch(r"\((\w+)\)|\[(\w+)\]", core)
        return (wrapped.group(1) or wrapped.group(2) if wrapped else core).casefold()

    @property
    def tie(self) -> str | Unreadable:
        """What a tie is read as: AMBIGUOUS where none was offered, since picking a side would be a coin flip."""
        return TIE if self.ties else Unreadable.AMBIGUOUS

    def _side(self, name: str) -> str | Unreadable:
        found = self._named.get(name.casefold(), "")
        return self.tie if found == TIE else found or Unreadable.UNKNOWN

    def read(self, value: object) -> str | Unreadable:
        """A value out of a JSON reply. A bare number names a side only where the labels are numbers."""
        if isinstance(value, Conflict):
            readings = {self.read(one) for one in value.values}
            return readings.pop() if len(readings) == 1 else Unreadable.AMBIGUOUS
        if isinstance(value, bool) or value is None:
            return Unreadable.UNKNOWN
        if isinstance(value, int | float):
            whole = str(int(value)) if float(value).is_integer() else str(value)
            return self._side(whole) if whole in self._named else Unreadable.AMBIGUOUS
        if isinstance(value, str):
            if re.fullmatch(r"\W{0,20}\d+\W{0,20}", value) and fold(value) not in self._named:
                return Unreadable.AMBIGUOUS
            return self.read_text(value)
        items = as_array(value)
        if items is not None:
            return self.read(items[0]) if len(items) == 1 else Unreadable.UNKNOWN
        record = as_object(value) or {}
        return next(
            (self.read(record[key]) for key in ("label", "value", "winner") if key in record), Unreadable.UNKNOWN
        )

    def exact(self, text: str) -> str | Unreadable:
        """A text that is nothing but a label, a comparison or a tie."""
        bare = compact(clean(text)).strip(_DECORATION + ".!,;。，、")
        word = fold(text)
        if bare.casefold() not in self._named and word in _TIE_WORDS:
            return self.tie
        for pattern, read in ((self._chain, self._compare), (self._label, self._of_label)):
            match = pattern.fullmatch(bare)
            if match:
                return read(match)
        match = re.fullmatch(rf"(?:the )?({'|'.join(_PLACES)})(?: (?:one|{NOUNS}))?", bare, re.I)
        return self._ordinal(match.group(1)) if match else Unreadable.UNKNOWN

    def _of_label(self, match: re.Match[str]) -> str | Unreadable:
        return self._side(match["core"])

    def _ordinal(self, word: str) -> str | Unreadable:
        place = _PLACES[word.lower()]
        return self.labels[place] if place < len(self.labels) else Unreadable.UNKNOWN

    def _compare(self, match: re.Match[str]) -> str | Unreadable:
        names: list[str | Unreadable] = []
        signs: set[str] = set()
        for part in self._part.finditer(match.group()):
            if part["sign"]:
                signs.add(part["sign"][0])
            else:
                names.append(self._side(part["core"]))
        if set(names) != set(self.labels) or len(names) != len(self.labels):
            return Unreadable.AMBIGUOUS
        if signs <= {"=", "≈"}:
            return self.tie
        if signs <= {">", "≫", "≻"}:
            return names[0]
        return names[-1] if signs <= {"<", "≪", "≺"} else Unreadable.AMBIGUOUS

    def read_text(self, text: str) -> str | Unreadable:
        """A text that begins with a side or a tie, or a sentence that names the winner."""
        whole = self.exact(text)
        if whole is not Unreadable.UNKNOWN:
            return whole
        bare = _PREFERS.sub("", compact(clean(text)).lstrip(_DECORATION))
        if _TIE_START.match(bare):
            return self.tie
        match = self._chain.match(bare)
        if match:
            return self._compare(match)
        match = self._label.match(bare)
        if match:
            found = self._with_rest(match, bare[match.end() :])
            if found is not Unreadable.UNKNOWN:
                return found
        said = [mark.value for mark in self.statements(text.partition("\n")[0])]
        if said:
            return said[0] if len(set(said)) == 1 else Unreadable.AMBIGUOUS
        if re.match(r"(?:<[^<>]*>|\.\.\.|\{)", text.strip()):
            return Unreadable.PLACEHOLDER
        return Unreadable.AMBIGUOUS if _UNSURE.match(bare) or _NEGATION.match(bare) else Unreadable.UNKNOWN

    def _with_rest(self, match: re.Match[str], rest: str) -> str | Unreadable:
        other = _ALTERNATIVE.match(rest)
        if other:
            second = self._label.match(rest, other.end())
            if second and second["core"].casefold() != match["core"].casefold():
                return (
                    Unreadable.AMBIGUOUS if re.search(r"\band\b|&", other.group(), re.I) else Unreadable.PLACEHOLDER
                )
        if not _REST.match(rest):
            return Unreadable.UNKNOWN
        line = rest.partition("\n")[0]
        thought = _SECOND_THOUGHT.search(line[:40])
        if (thought and self._label.search(line, thought.end())) or _UNSURE.search(line[:30]):
            return Unreadable.AMBIGUOUS
        return self._side(match["core"])

    def mentions(self, text: str) -> bool:
        """Whether a side is named in a text, with its noun or as a capital letter of its own."""
        return any(
            match.group() != match["core"] or match["core"].isupper() for match in self._label.finditer(text)
        )

    def statements(self, text: str) -> Iterator[Mark[str]]:
        """What sentences say about who is better. Praise of one aspect, questions and suppositions say nothing."""
        for sentence in sentences(text):
            said = sentence.text
            if said.endswith("?") or not _HINT.search(said):
                continue
            values = self._values(said)
            if values and not cues.OPTIONS.search(said):
                standing = Standing.FINAL if cues.CONCLUDES.search(said) else Standing.PLAIN
                yield from (Mark(value, standing, at=sentence.start) for value in values)

    def _values(self, said: str) -> list[str | Unreadable]:
        tie = _TIE_SENTENCE.search(said)
        if tie and not cues.is_hypothetical(said[: tie.end()]) and not _NEGATION.search(_clause(said, tie.start())):
            return [self.tie]
        found = [self._judge(said, match) for pattern in self._statements for match in pattern.finditer(said)]
        return [value for value in found if value is not None]

    def _judge(self, said: str, match: re.Match[str]) -> str | Unreadable | None:
        groups = match.groupdict()
        if not _END.match(said, match.end()):
            return None
        before = _clause(said, match.start())
        if cues.SUPPOSES.search(said[: match.start()]) or cues.is_hypothetical(before + match.group()):
            return None
        if cues.is_quotation(before):
            return None
        if _NEGATION.search(_NOT_ONLY.sub("", before + match.group())) or _UNSURE.search(before + match.group()):
            return Unreadable.AMBIGUOUS
        name = groups.get("noun_core") or groups.get("core")
        side = self._side(name) if name else self._ordinal(groups["place"] or "")
        if isinstance(side, Unreadable) or not groups.get("bad"):
            return side
        others = [label for label in self.labels if label != side]
        return others[0] if len(others) == 1 else Unreadable.AMBIGUOUS


def _clause(said: str, end: int) -> str:
    """The words of the clause before `end`."""
    start = 0
    for boundary in _CLAUSE.finditer(said, 0, end):
        start = boundary.end()
    return said[start:end]


def _statement_patterns(labels: Sequence[str], names: Sequence[str]) -> list[re.Pattern[str]]:
    loose = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    # A bare one-letter label counts in its own case only, since "a" is an article.
    own = {label for label in labels} | {name.upper() if len(name) == 1 else name for name in names}
    strict = "|".join(re.escape(name) for name in sorted(own, key=len, reverse=True))
    places = _PLACES if len(labels) == 2 else _ORDINALS[: len(labels)]
    side = (
        rf"(?:(?i:(?:the )?(?:{NOUNS})[ _-]?[\"'(\[]*(?P<noun_core>{loose}))|(?<![\w'-])(?P<core>{strict})"
        rf"|(?i:the (?P<place>{'|'.join(places)})(?: (?:one|{NOUNS}))?))[\"')\]]*(?!['’\w-])"
    )
    other = (
        rf"(?i:(?:the )?(?:(?:{NOUNS})[ _-]?[\"'(\[]*)?(?:{loose}|other(?: one)?|{'|'.join(_ORDINALS)})(?: "
        rf"one)?[\"')\]]*)"
    )
    is_ = r"(?i:is|was|remains|comes out(?: as)?|emerges as|ist|es|est)"
    forms = [
        rf"{side} {is_} (?i:{_ADVERB}(?:(?P<bad>{_BAD})|{_GOOD}|besser|bessere|mejor|meilleure?)(?: (?:one"
        rf"|choice|{NOUNS}))?)"
        rf"(?:(?i: (?:than|to|over|compared to|als|que)) {other})?",
        rf"{side} (?i:{_ADVERB}(?:wins?(?: out)?|beats|outperforms|surpasses|edges out|(?P<bad>loses)))"
        rf"(?:(?i:(?: to| over| against)?) {other})?",
        rf"(?<!\w)(?i:i|we)(?i:(?: would| will|'d|'ll)?(?: \w+ly)? (?:prefer|choose|pick|select|favou?r|go with"
        rf"|vote for)) {side}"
        rf"(?:(?i: (?:over|to)) {other})?",
        rf"(?i:(?:the )?(?:(?:better|best|stronger|preferred|winning|superior)(?: (?:one|of the two|{NOUNS}))?"
        rf"|winner(?: of (?:this|the) \w+)?) (?:is|was|remains)"
        rf"(?: \w+ly)?(?: therefore| thus| then)?) {side}",
        rf"(?:(?i:{NOUNS}) ?)?(?<![^\W\u3040-\u9fff\uac00-\ud7af])(?P<noun_core>(?i:{loose})) ?"
        rf"(?:优于|胜过|好于|强于|優於|(?P<bad>不如|劣于|逊于)) ?(?:(?i:{NOUNS}) ?)?(?i:{loose})",
        rf"(?:(?i:{NOUNS}) ?)?(?<![^\W\u3040-\u9fff\uac00-\ud7af])(?P<noun_core>(?i:{loose})) ?"
        r"(?:更好|更优|更佳|更胜一筹|胜出|获胜|较好|較好|の(?:方|ほう)が(?:良い|よい|優れている|優れています"
        r"|いい)|が優れている|이 더 (?:좋|낫|우수)\w*)",
    ]
    return [re.compile(form) for form in forms]


@lru_cache(maxsize=128)
def _cached(labels: tuple[str, ...], ties: bool, tie_label: str | None) -> Contest:
    return Contest(labels, ties, tie_label)


def contest_of(labels: Sequence[str], ties: bool, tie_label: str | None) -> Contest:
    """The contest between these labels.

    Raises ConfigError for fewer than two labels, equal ones, or one that stands for the tie as well.
    """
    names = tuple(labels)
    folded = {name.strip().casefold() for name in names}
    if len(names) < 2 or len(folded) != len(names) or "" in folded:
        raise ConfigError(f"a comparison needs two or more distinct labels, got {list(names)}")
    if TIE in folded or (tie_label is not None and tie_label.strip().casefold() in folded):
        raise ConfigError(f"a label is the tie's as well: {list(names)}", hint="call the sides something else")
    return _cached(names, ties, tie_label)
