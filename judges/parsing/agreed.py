"""Replies whose reading hangs on a reasoning tag that may be quoted from the judge's material."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from rubricate.errors import ParseError
from rubricate.judges.parsing.reasoning import strip_reasoning

__all__ = ["agreed"]

T = TypeVar("T")
_TAG = re.compile(
    r"<\|?/?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|inner_?monologue|seed:think|begin_of_thought"
    r"|end_of_thought|start_thinking|end_thinking|channel)\b[^<>\n]{0,80}>|\[/?THINK\]|\u25c1/?think\u25b7",
    re.I,
)


def agreed(
    read: Callable[[str], T], reply: str, quoted: Sequence[str], said: Callable[[T], object] = lambda found: found
) -> T:
    """What is read from a reply, unless that hangs on a reasoning tag that may be quoted.

    Where a text that the judge was shown holds such a tag, one in the reply may be quoted from it, and hide what
    the judge said before or behind it. With its tags and without them, the reply must then say the same.

    Args:
        read: the reader.
        reply: a judge's reply.
        quoted: texts that the judge was shown.
        said: the part of what was read that must be the same.

    Raises ParseError (`ambiguous`) where it is not, and what the reader raises.
    """
    found = read(reply)
    if not _TAG.search(reply) or not any(_TAG.search(text) for text in quoted) or strip_reasoning(reply) == reply:
        return found
    if said(read(_TAG.sub(" ", reply))) != said(found):
        raise ParseError("the answer hangs on a tag that the response holds", kind="ambiguous", reply=reply)
    return found
