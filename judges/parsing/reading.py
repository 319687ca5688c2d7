"""A reply split into what can be read: JSON objects and plain text, without reasoning and quotations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rubricate.errors import ParseError
from rubricate.judges.parsing import cues
from rubricate.judges.parsing.objects import JsonSpan, find_spans, whole_value
from rubricate.judges.parsing.reasoning import strip_reasoning
from rubricate.judges.parsing.text import MASK, clean, drop_quoted_blocks, plain
from rubricate.narrow import as_array, as_object

__all__ = ["Reading", "Structure", "read_reply"]

_WRAPPING = re.compile(r"(?:\s|```\w*|~~~\w*|<\w{1,30}>)*\Z")
_LAST_SENTENCE = re.compile(r"[.!?;](?: |$)|[\u3002]")
_NEGATED = re.compile(r"\b(?:not|never|instead of|rather than|nor|or|oder|either)\W{0,3}\Z", re.I)
_EXAMPLE = re.compile(
    r"(?:\be\.g\.|\bi\.e\.|\bsuch as|\blike|^\W{0,4}(?:an? |for "
    r")?example\b[^.]{0,30}:)\W*\Z",
    re.I,
)
_WITHHELD = re.compile(
    r"(?:\b(?:not|never|refuse to|decline to)\b|n't\b)[^.\n]{0,40}\b(?:output|print|return|give|write|reply"
    r"|answer|report|say)\b",
    re.I,
)
_TAKEN_BACK = re.compile(
    r"\W{0,3}(?:would|could|might|is what|was what|were\b|if\b|unless|is the (?:candidate|response|author)|or\b "
    r"*\{|/ *\{|\| *\{)",
    re.I,
)
_MATERIAL = re.compile(
    r"<((?:response|submission|candidate|student|quote|quoted|essay|document|prompt|task|instructions?|material"
    r"|conversation"
    r"|reference|question|example|rubric|criteri(?:on|a))(?:[_-]\w{1,30})?)>",
    re.I,
)
_QUOTE_SIGNS = "\"'`\u201c\u00ab\u300c"
_BLOCK = 24
_LONG_COPY = 40


@dataclass(frozen=True, slots=True)
class Structure:
    """A JSON value in the reply.

    Attributes:
        value: what was read.
        complete: false for one that was cut.
        lead: the line in front of it, where that ends with a colon.
    """

    value: object
    complete: bool = True
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A reply, ready for reading.

    Attributes:
        reply: as it came.
        parts: in order; a text is plain, without block quotes.
        whole: the reply is one JSON value and nothing else.
        quoted: texts that the judge was shown.
    """

    reply: str
    parts: tuple[Structure | str, ...]
    whole: bool = False
    quoted: tuple[str, ...] = ()

    @property
    def structures(self) -> list[Structure]:
        """The JSON values."""
        return [part for part in self.parts if isinstance(part, Structure)]

    @property
    def text(self) -> str:
        """All passages of text, with a sign where a JSON value stood."""
        return f" {MASK} ".join(part for part in self.parts if isinstance(part, str))

    @property
    def behind(self) -> str:
        """The text behind the last JSON value, all of it where there is none."""
        places = [at for at, part in enumerate(self.parts) if isinstance(part, Structure)]
        return "\n".join(part for part in self.parts[max(places, default=-1) + 1 :] if isinstance(part, str))

    def own_words(self, text: str) -> str:
        """The text, such as a reason in a JSON value, with a sign for each longer passage copied from `quoted`."""
        pieces: list[str] = []
        at = 0
        for start, end in _copies(text, self.quoted):  # sorted; copies of two texts may overlap
            if end > at:
                pieces += [text[at : max(start, at)], MASK]
                at = end
        return "".join([*pieces, text[at:]])


def read_reply(reply: str, quoted: Sequence[str] = ()) -> Reading:
    """Split a reply. Raises ParseError when it is empty or holds nothing but reasoning.

    Args:
        reply: a judge's reply.
        quoted: texts that the judge was shown. Longer passages copied from them do not count.
    """
    if not clean(reply[:4000]).strip() and not clean(reply).strip():
        raise ParseError("the reply is empty", kind="empty", reply=reply)
    text = reply
    for _ in range(3):
        whole = whole_value(text)
        if whole is None:
            break
        if not isinstance(whole.value, str):
            if as_object(whole.value) is None and not _is_list_reply(whole.value):
                return Reading(reply, (plain(text),), whole=True, quoted=tuple(quoted))
            parts = () if _is_copy(text, quoted) else (Structure(whole.value),)
            return Reading(reply, parts, whole=True, quoted=tuple(quoted))
        text = whole.value
    visible = strip_reasoning(text)
    if not clean(visible).strip():
        raise ParseError("the reply holds nothing but reasoning", kind="empty", reply=reply)
    visible, spans = find_spans(_without_material(visible))
    return Reading(reply, tuple(_parts(visible, spans, _copies(visible, quoted))), quoted=tuple(quoted))


def _is_list_reply(value: object) -> bool:
    """Whether a JSON value is a list of answers, not a closing tag (`[[2]]`) that happens to be JSON."""
    items = as_array(value)
    return items is not None and not (len(items) == 1 and as_array(items[0]) is not None)


def _without_material(text: str) -> str:
    """The text without elements that repeat the judge's material (`<response>...</response>`).

    Where nothing else is left, the judge has put its own answer into such an element, and all of it stays.
    """
    kept: list[str] = []
    at = 0
    for match in _MATERIAL.finditer(text):
        if match.start() < at:
            continue
        closing = f"</{match.group(1)}>"
        end = text.find(closing, match.end())
        if end < 0:
            break
        kept.append(text[at : match.start()])
        at = end + len(closing)
    rest = "".join(kept) + text[at:]
    return rest if re.search(r"\w", rest) else text


def _parts(text: str, spans: list[JsonSpan], copies: list[tuple[int, int]]) -> Iterator[Structure | str]:
    at = 0
    for span in spans:
        yield _passage(text, at, span.start, copies)
        foreign = any(start <= span.start and span.end <= end for start, end in copies)
        lead, inline = _lead(text[max(at, span.start - 600) : span.start])
        if not foreign and not _is_foreign(lead, inline, text[span.end : span.end + 200].partition("\n")[0]):
            line = plain(lead.rpartition("\n")[2]).strip()
            yield Structure(span.value, span.complete, line if line.endswith(":") else "")
        at = span.end
    yield _passage(text, at, len(text), copies)


def _passage(text: str, start: int, end: int, copies: list[tuple[int, int]]) -> str:
    pieces: list[str] = []
    at = start
    for copy_start, copy_end in copies:
        if copy_end <= at or copy_start >= end:
            continue
        pieces += [text[at : max(copy_start, at)], MASK]
        at = min(copy_end, end)
    pieces.append(text[at:end])
    return drop_quoted_blocks(plain("".join(pieces)), cues.introduces_quote)


def _lead(before: str) -> tuple[str, bool]:
    """The text in front of an object without what wraps it, and whether it stands on the same line."""
    wrapped = _WRAPPING.search(before)
    lead = before[: wrapped.start()] if wrapped else before
    return lead, "\n" not in before[len(lead) :]


def _is_foreign(lead: str, inline: bool, after: str) -> bool:
    """Whether an object between these texts is a quotation, an example or a supposition rather than an answer."""
    if _TAKEN_BACK.match(after):
        return True
    line = plain(lead.rpartition("\n")[2]).strip()
    if (line.endswith(":") and cues.introduces_quote(line)) or _EXAMPLE.search(line):
        return True
    if not inline:
        return False
    sentence = _LAST_SENTENCE.split(line)[-1].strip()
    quoted = lead[-1:] in tuple(_QUOTE_SIGNS) and line.strip(_QUOTE_SIGNS) != ""
    if line.startswith(">") or quoted or _WITHHELD.search(sentence):
        return True
    if cues.is_quotation(sentence) or cues.is_hypothetical(sentence) or cues.OPTIONS.search(sentence):
        return True
    return _NEGATED.search(sentence) is not None


def _is_copy(text: str, quoted: Sequence[str]) -> bool:
    bare = text.strip()
    return len(bare) >= _LONG_COPY and any(bare in one for one in quoted)


def _copies(text: str, quoted: Sequence[str]) -> list[tuple[int, int]]:
    """Passages of `text`, at least 40 characters long, that occur in one of the quoted texts."""
    found: list[tuple[int, int]] = []
    for source in quoted:
        blocks: dict[str, int] = {}
        for at in range(0, len(source) - _BLOCK + 1, _BLOCK // 2):
            blocks.setdefault(source[at : at + _BLOCK], at)  # the first one leaves most room ahead
        at = floor = 0
        while blocks and at <= len(text) - _BLOCK:
            origin = blocks.get(text[at : at + _BLOCK])
            if origin is None:
                at += 1
                continue
            start, end = _extend(text, at, source, origin, floor)
            if end - start >= _LONG_COPY:
                found.append((start, end))
            at = max(end, at + 1)
            floor = max(end - _LONG_COPY, 0)  # what was gone through is not gone through again
    return sorted(found)


def _extend(text: str, at: int, source: str, origin: int, floor: int) -> tuple[int, int]:
    start, end = at, at + _BLOCK
    back = origin
    while start > floor and back > 0 and text[start - 1] == source[back - 1]:
        start, back = start - 1, back - 1
    ahead = origin + _BLOCK
    while end < len(text) and ahead < len(source) and text[end] == source[ahead]:
        end, ahead = end + 1, ahead + 1
    return start, end
