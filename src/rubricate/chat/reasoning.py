"""Removal of reasoning blocks, closed or not, in the tags that real models use."""

from __future__ import annotations

import bisect
import json
import re

__all__ = ["strip_reasoning"]

_NAMES = r"think|thinking|thoughts?|reasoning|reflection|scratchpad|inner_?monologue|seed:think"
# Opening and closing tags. Those that are not plain words in angle brackets belong to single model families.
_TAGS = re.compile(
    rf"(?P<open><(?:{_NAMES})(?: [^<>\n]{{0,80}})?>"
    r"|\u25c1think\u25b7|\[THINK\]|<\|(?:begin_of_thought|thinking|START_THINKING)\|>|<\|channel>(?:thought"
    r"|analysis))"
    rf"|(?P<close></(?:{_NAMES})\s?>"
    r"|\u25c1/think\u25b7|\[/THINK\]|<\|(?:end_of_thought|/thinking|END_THINKING)\|>|<channel\|>)",
    re.I,
)
_SHELL = re.compile(
    r"<\|(?:begin_of_solution|end_of_solution|START_RESPONSE|END_RESPONSE|START_TEXT|END_TEXT|im_end|eot_id"
    r"|return)\|>"
)
_CHANNEL = re.compile(r"<\|channel\|>\s?([^<]{0,80})<\|message\|>|<\|(?:end|return|call|start)\|>")
_HEADER = re.compile(r"<\|channel\|>\s?(?:analysis|commentary|final)[^<]{0,80}<\|message\|>")
_BARE_CHANNELS = re.compile(r"analysis\b|analysis(?=[A-Z])")
_DECODE_ATTEMPTS = 2000


def strip_reasoning(text: str) -> str:
    """The visible part of a model's text: reasoning blocks removed.

    Known are `<think>`, `<thinking>`, `<thought>`, `<reasoning>`, `<reflection>`, `<scratchpad>` and the tags of
    single model families (`\u25c1think\u25b7`, `[THINK]`, `<|begin_of_thought|>`, `<|START_THINKING|>`, harmony
    channels, ...). A block that is never closed is removed to the end. A closing tag without an opening one means
    that the chat template swallowed the opening: everything before it is reasoning. A tag inside a string of a
    well-formed JSON object, or quoted by itself, is data.

    Text without such tags comes back as it is; otherwise the rest, without white space at its ends.
    """
    if "<|channel|>" in text and _HEADER.search(text):
        return _final_channel(text)
    if _BARE_CHANNELS.match(text) and "assistantfinal" in text:
        return text.rpartition("assistantfinal")[2].strip()
    tags = [match for match in _TAGS.finditer(text) if not _is_quoted(text, match)]
    if tags:
        spans = _json_spans(text)
        starts = [start for start, _ in spans]
        tags = [tag for tag in tags if not _is_within(tag.start(), starts, spans)]
    return _outside(text, tags) if tags else text


def _outside(text: str, tags: list[re.Match[str]]) -> str:
    kept: list[str] = []
    inside = False
    since = 0
    for tag in tags:
        if tag["open"]:
            if not inside:
                kept.append(text[since : tag.start()])
            inside = True
        else:
            if not inside:
                kept.clear()
            inside = False
            since = tag.end()
    if not inside:
        kept.append(text[since:])
    return _SHELL.sub("", "".join(kept)).strip()


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    before, after = text[tag.start() - 1 : tag.start()], text[tag.end() : tag.end() + 1]
    return (before, after) in {("`", "`"), ('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("\u2018", "\u2019")}


def _is_within(position: int, starts: list[int], spans: list[tuple[int, int]]) -> bool:
    index = bisect.bisect_right(starts, position) - 1
    return index >= 0 and position < spans[index][1]


def _json_spans(text: str) -> list[tuple[int, int]]:
    """Spans of the well-formed JSON objects, found with work bounded by a multiple of the text's length."""
    decode = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
    spans: list[tuple[int, int]] = []
    budget = 4 * len(text) + 10_000
    at = text.find("{")
    for _ in range(_DECODE_ATTEMPTS):
        if at < 0 or budget < 0:
            break
        try:
            _, end = decode(text, at)
        except json.JSONDecodeError as error:
            budget -= error.pos - at
            end = at + 1
        except RecursionError:
            budget -= 5_000
            end = at + 1
        else:
            spans.append((at, end))
        at = text.find("{", end)
    return spans


def _final_channel(text: str) -> str:
    """Text of the `final` channels of a harmony reply, empty when there is none."""
    kept: list[str] = []
    final = False
    since = 0
    for match in _CHANNEL.finditer(text):
        if final:
            kept.append(text[since : match.start()])
        name = match.group(1)
        final = name is not None and name.split()[:1] == ["final"]
        since = match.end()
    if final:
        kept.append(text[since:])
    return "".join(kept).strip()
