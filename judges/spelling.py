"""An answer's text against its tokens: whether they spell it, and whether it says one label and no more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rubricate.chat.base import TokenLogprob

__all__ = ["WRAPPING", "goes_on", "says_alone", "spells", "without_lead"]

WRAPPING = " \t\r\n\"'`*_.,:;!()[]{}<>\ufeff\u200b"
"""What may stand around a label."""

_BLANK = re.compile(r"[\s▁ĠĊĉ\ufeff\u200b]+")
_END_SIGN = re.compile(r"(?:<[^<>\s]+>|\[/?[A-Z_]+\]|token_id:\d+)?")
_BROKEN = re.compile(r"\ufffd|bytes:|\\x")
"""Tokens that hold a part of a character, in servers' notations."""

# Behind a label: letters, signs with letters or digits straight behind them, and signs of a ratio or a sum.
_JOINED = re.compile(r"(?:[^\s\w\"'<>\[\](){}]|_)+[^\W_]|[/%‰°^×&|~+]|[^\W_]")
_WORDS_BEHIND = re.compile(r"\s*[/|]|[\W_]*\bor\b|\s+and\b")
_SIGNS_BEHIND = re.compile(r"[ \t]+[^\W_]|\s*[-–—−]+\s*$|\s*[/%‰°^×&|~+]|[\W_]*\b(?:or|to|and)\b")


def spells(tokens: Sequence[TokenLogprob], text: str) -> bool:
    """Whether tokens are those of an answer: blanks aside, they spell it, and only end signs stand behind it.

    From a token on that holds a part of a character nothing is compared, if the text has no ASCII there.

    Args:
        tokens: of the answer, all of them.
        text: the answer's text.
    """
    wanted = _BLANK.sub("", text)
    for at, token in enumerate(tokens):
        piece = _BLANK.sub("", token.token)
        if not wanted:
            return all(_END_SIGN.fullmatch(_BLANK.sub("", rest.token)) for rest in tokens[at:])
        if wanted.startswith(piece):
            wanted = wanted[len(piece) :]
        else:
            return _BROKEN.search(piece) is not None and not wanted[0].isascii()
    return not wanted


def without_lead(text: str) -> str:
    """A text without what may stand before a label; the point of ".5" makes another number of it and stays."""
    body = text.lstrip(WRAPPING)
    lead = text[: len(text) - len(body)]
    return lead[-1] + body if body[:1].isdigit() and lead[-1:] in (".", ",") else body


def goes_on(behind: str) -> bool:
    """Whether what stands straight behind a label makes it a part of something else, as in "3.5" and "yes/no"."""
    return _JOINED.match(behind) is not None


def says_alone(text: str, label: str, others: Iterable[str] = ()) -> bool:
    """Whether an answer that begins with a label says that and no more (ours).

    What follows must not make another answer of it: "7.5", "7e1", "7-8", "7 or 3", "7 out of 20" and "7 000" do not
    say 7; "A good one" and "A, B" do not say A; "yes or no" and "yes, no" do not say yes. Behind a number or a
    letter a word must stand apart ("7. Because", "A: good"); behind a number no other number may stand anywhere.

    Args:
        text: the answer.
        label: what it begins with; letters are compared without case. A text that is cut within it will do.
        others: the other labels.
    """
    body, name = without_lead(text).casefold(), label.casefold()
    if not body.startswith(name):
        return bool(body) and name.startswith(body)
    behind = body[len(name) :]
    if goes_on(behind):
        return False
    if name.isdigit() and any(sign.isnumeric() for sign in behind):
        return False
    short = name.isdigit() or len(name) == 1
    if (_SIGNS_BEHIND if short else _WORDS_BEHIND).match(behind):
        return False
    names = "|".join(re.escape(other.casefold()) for other in others if other.casefold() != name)
    return not names or re.match(rf"[\W_]*(?:{names})(?!\w|[ \t]+[^\W_])", behind) is None
