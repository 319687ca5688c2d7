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
_TAKEN_BACK = re.compile(
    r"\W{0,3}(?:would|could|might|is what|was what|were\b|if\b|unless|is the (?:candidate|response|author)|or\b "
    r"*\{|/ *\{|\| *\{)",
    re.I,
)
_QUOTE_SIGNS = "\"'`\u201c\u00ab\u300c"
_BLOCK = 24
_LONG_COPY = 40


@dataclass(frozen=True, slots=True)
class Structure:
    """A JSON value in the reply. `complete` is false for one that was cut."""

    value: object
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """A reply, ready for reading.

    Attributes:
        reply: as it came.
        parts: in order; a text is plain, without block quotes.
        whole: the reply is one JSON value and nothing else.
    """

    reply: str
    parts: tuple[Structure | str, ...]
    whole: bool = False

    @property
    def structures(self) -> list[Structure]:
        """The JSON values."""
        return [part for part in self.parts if isinstance(part, Structure)]

    @property
    def text(self) -> str:
        """All passages of text, with a sign where a JSON value stood."""
        return f" {MASK} ".join(part for part in self.parts if isinstance(part, str))


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
            if as_object(whole.value) is None and as_array(whole.value) is None:
                return Reading(reply, (plain(text),), whole=True)
            return Reading(reply, () if _is_copy(text, quoted) else (Structure(whole.value),), whole=True)
        text = whole.value
    visible = strip_reasoning(text)
    if not clean(visible).strip():
        raise ParseError("the reply holds nothing but reasoning", kind="empty", reply=reply)
    visible, spans = find_spans(visible)
    return Reading(reply, tuple(_parts(visible, spans, _copies(visible, quoted))))


def _parts(text: str, spans: list[JsonSpan], copies: list[tuple[int, int]]) -> Iterator[Structure | str]:
    at = 0
    for span in spans:
        yield _passage(text, at, span.start, copies)
        foreign = any(start <= span.start and span.end <= end for start, end in copies)
        if not foreign and not _is_foreign(
            text[max(at, span.start - 600) : span.start], text[span.end : span.end + 200]
        ):
            yield Structure(span.value, span.complete)
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


def _is_foreign(before: str, after: str) -> bool:
    """Whether an object between these texts is a quotation, an example or a supposition rather than an answer."""
    if _TAKEN_BACK.match(after.partition("\n")[0]):
        return True
    wrapped = _WRAPPING.search(before)
    lead = before[: wrapped.start()] if wrapped else before
    inline = "\n" not in before[len(lead) :]
    line = plain(lead.rpartition("\n")[2]).strip()
    if line.endswith(":") and cues.introduces_quote(line):
        return True
    if not inline:
        return False
    pieces = _LAST_SENTENCE.split(line)
    sentence = pieces[-1].strip()
    if line.startswith(">") or (lead[-1:] in _QUOTE_SIGNS and lead[-1:] != ""):
        return True
    if cues.is_quotation(sentence) or cues.is_hypothetical(sentence) or cues.OPTIONS.search(sentence):
        return True
    if _NEGATED.search(sentence):
        return True
    return False


def _is_copy(text: str, quoted: Sequence[str]) -> bool:
    bare = text.strip()
    return len(bare) >= _LONG_COPY and any(bare in one for one in quoted)


def _copies(text: str, quoted: Sequence[str]) -> list[tuple[int, int]]:
    """Passages of `text`, at least 40 characters long, that occur in one of the quoted texts."""
    found: list[tuple[int, int]] = []
    for source in quoted:
        blocks = {source[at : at + _BLOCK]: at for at in range(0, len(source) - _BLOCK + 1, _BLOCK // 2)}
        at = 0
        while blocks and at <= len(text) - _BLOCK:
            origin = blocks.get(text[at : at + _BLOCK])
            if origin is None:
                at += 1
                continue
            start, end = _extend(text, at, source, origin)
            if end - start >= _LONG_COPY:
                found.append((start, end))
            at = max(end, at + 1)
    return sorted(found)


def _extend(text: str, at: int, source: str, origin: int) -> tuple[int, int]:
    start, end = at, at + _BLOCK
    back = origin
    while start > 0 and back > 0 and text[start - 1] == source[back - 1]:
        start, back = start - 1, back - 1
    ahead = origin + _BLOCK
    while end < len(text) and ahead < len(source) and text[end] == source[ahead]:
        end, ahead = end + 1, ahead + 1
    return start, end
