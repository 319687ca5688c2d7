"""Checks against hacking that look at form: repetition, and truncation (AdvancedIF/RIFL, arXiv 2511.10507)."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby

from pydantic import Field

from rubricate.judges.verifiers.markdown import blocks, fences, items, lines_of, prose
from rubricate.judges.verifiers.registry import Check, Input, VerifierArgs, verifier
from rubricate.judges.verifiers.text import fold, sentences, snippet, words

__all__ = ["RepetitionArgs", "TruncationArgs", "repeated_share"]


class RepetitionArgs(VerifierArgs):
    """How much repetition is allowed. The defaults let songs with a refrain pass.

    Attributes:
        n: length in words of the sequences that are compared; Chinese and Japanese characters count as words, so
            these languages need about 10.
        max_share: largest share of the sequences that occurred before in the response.
        max_local: the same within any hundred words, which catches a loop at the end of a good response.
        max_sentences: largest share of the sentences of four words or more that occurred before.
        max_run: how often in a row the same word may stand; a letter, four times as often.
    """

    n: int = Field(default=5, ge=1, le=50)
    max_share: float = Field(default=0.4, ge=0.0, le=1.0)
    max_local: float = Field(default=0.6, ge=0.0, le=1.0)
    max_sentences: float = Field(default=0.4, ge=0.0, le=1.0)
    max_run: int = Field(default=10, ge=1)


def repeated_share(parts: Sequence[object]) -> float:
    """Share of the parts that occurred before, in [0, 1): 1 − distinct/all (ours); 0 for none."""
    return 1 - len(set(parts)) / len(parts) if parts else 0.0


_WINDOW = 100


def _ngrams(parts: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(parts[start : start + n]) for start in range(len(parts) - n + 1)]


def _local_share(grams: Sequence[tuple[str, ...]]) -> float:
    """Largest share of repeats within a window, windows half overlapping; 0 when there is not one full window."""
    starts = range(0, max(0, len(grams) - _WINDOW) + 1, _WINDOW // 2) if len(grams) >= _WINDOW else ()
    tail = [repeated_share(grams[-_WINDOW:])] if len(grams) >= _WINDOW else []
    return max([*(repeated_share(grams[start : start + _WINDOW]) for start in starts), *tail], default=0.0)


def _longest_run(parts: Iterable[str]) -> tuple[int, str]:
    """The part that stands most often in a row, and how often; parts without a letter do not count."""
    runs = ((sum(1 for _ in group), part) for part, group in groupby(parts) if any(map(str.isalpha, part)))
    return max(runs, default=(0, ""))


@verifier("no_repetition", RepetitionArgs)
def no_repetition(given: Input, args: RepetitionArgs) -> Check:
    """The response does not repeat itself: sequences of words, sentences, words in a row.

    Headings, code and tables are left out. `value` is the share of repeated sequences.
    """
    text = "\n\n".join(blocks(given.response))
    found = [word.casefold() for word in words(text) if any(map(str.isalpha, word))]
    run, word = _longest_run(found)
    if run > args.max_run:
        return Check(False, f"{snippet(word)} {run} times in a row", value=run)
    run, letter = _longest_run(text)
    if run > 4 * args.max_run:
        return Check(False, f"the letter {snippet(letter)} {run} times in a row", value=run)
    grams = _ngrams(found, args.n)
    share, local = repeated_share(grams), _local_share(grams)
    whole = [fold(sentence) for sentence in sentences(text) if len(words(sentence)) > 3]
    again = repeated_share(whole)
    met = share <= args.max_share and local <= args.max_local and again <= args.max_sentences
    reason = f"repeated: {share:.0%} of {args.n}-word sequences ({local:.0%} locally), {again:.0%} of sentences"
    return Check(met, reason, value=share)


class TruncationArgs(VerifierArgs):
    """Whether the end of the last sentence is looked at, besides the finish reason and open code fences."""

    sentence: bool = True


_TERMINAL = frozenset(".!?…。！？｡।॥؟۔։።♪〜～")
_MARKUP = "*_~` \t\u3000"
_CLOSERS = frozenset("\"'”’»«“)]}）］】〉》」』>$|")
# What announces more, in any language: a comma, a colon, an opening bracket, a dash, a sign.
_ANNOUNCES = frozenset(",:([{（「『【《、，；：–—-&+=/\\")
_EMOTICON = re.compile(r"[:;=8xX]['’]?-?[)(DPpoO/|\\]+$|[:;]3$|\^_?\^$")
# A link, an address, the name after a quotation, the result of a calculation, a hash tag.
_COMPLETE = re.compile(
    r"(?:(?:https?://|www\.)\S+|\S+@\S+\.\w+|[\"'”’»*.!?]\s?[-–—~]\s?\w[\w .'’-]{0,40}"
    r"|=[^=]{0,40}\d\S{0,10}|[#@]\w+)$"
)
# Words of English and German that need another one after them, none of which is a word to end on in the other.
_DANGLING = frozenset(
    "the an and or but nor of my your their our its into because although und oder aber sondern dem der "
    "einen einem einer eines weil dass obwohl vom zum zur für".split()
)
_DANGLING_JA = re.compile("[をがは]$")
_GREETING_JA = re.compile("(?:こんにち|こんばん|で|と)は$")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
# Thai, Lao, Khmer and Burmese sentences end without a mark.
_UNMARKED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_HEADING = re.compile(r"#{1,6}\s.{1,200}|#{1,6}")
_RULE = "-=*_–— "
_JSON_START = re.compile(r"\{\s*\"|\[\s*[\[{\"\d]")
# How much of a long line the patterns look at, and how long a sentence is; a line of verse has 0.7 of that.
_TAIL = 200
_SENTENCE_WORDS = 7
_SENTENCE_CHARACTERS = 24
_VERSE = 0.7


@verifier("not_truncated", TruncationArgs)
def not_truncated(given: Input, args: TruncationArgs) -> Check:
    """The response is complete: generation did not stop for length, no code fence is open, the last sentence ends.

    The last line is taken for unfinished when it ends in a comma, a colon, an opening bracket, a dash, a word that
    needs another one (English and German articles, conjunctions and the like; Japanese を, が, は) or is a heading,
    and when it is as long as a sentence (seven words, 24 Chinese or Japanese characters) without a final mark,
    unless most other lines of its kind (list items, other lines) have none either, as in verse. Short lines such as
    signatures, links, closing brackets, code and emoji may end a response, and so may Thai, which has no final
    mark. An empty response is not complete.
    """
    if given.finish == "length":
        return Check(False, "generation stopped at the token limit")
    if not given.response.strip():
        return Check(False, "the response is empty")
    found = fences(given.response)
    # A closing fence at the end of a code line is wrong Markdown, but an end.
    if found and not found[-1].closed and not given.response.rstrip().endswith(("```", "~~~")):
        return Check(False, "a code fence is still open")
    if not args.sentence:
        return Check(True, "no sign of truncation")
    fault = _open_end(given.response)
    return Check(fault is None, fault or "no sign of truncation")


def _open_end(response: str) -> str | None:
    """What looks unfinished in the last line, or None."""
    lines = [line.strip() for line in lines_of(response) if line.strip()]
    last, *before = reversed(lines)
    if _is_open_json(response.strip()):
        return "the JSON document is not closed"
    in_code = not prose(response.rstrip())[-1].strip()
    if before and not in_code and _HEADING.fullmatch(last):
        return "it ends in a heading"
    core = last.rstrip(_MARKUP)
    if last != core and last[-1] in "*_`":
        return None
    if _is_closed(core) or core.startswith(("```", "~~~")):
        return None
    if _EMOTICON.search(core[-_TAIL:]) or _COMPLETE.search(core[-_TAIL:]):
        return None
    if core[-1] in _ANNOUNCES and core.strip(_RULE):
        return f"it ends with {snippet(core[-20:])}"
    if _dangles(core):
        return f"it ends with {snippet(core[-20:])}, which needs more"
    if _UNMARKED.search(core[-1]) or not _is_sentence(core):
        return None
    return None if _has_kin(last, before) else f"the last sentence is not finished: {snippet(core[-20:])}"


def _has_kin(last: str, before: Sequence[str]) -> bool:
    """Whether lines like the last one end without a mark as well: in verse, and in lists without full stops."""
    kin = [line for line in before if _is_item(line) == _is_item(last) and _is_sentence(line, _VERSE)]
    if _is_item(last) and not kin:
        return True
    bare = sum(1 for line in kin if not _is_closed(line.rstrip(_MARKUP)))
    return 2 * bare > len(kin) and (len(kin) > 1 or _is_item(last))


def _is_closed(line: str) -> bool:
    """Whether a line ends in a final mark, a closing bracket or quotation mark, or an emoji; or is empty."""
    if not line or line[-1] in _TERMINAL | _CLOSERS:
        return True
    return unicodedata.category(line[-1]) in ("So", "Mn", "Sk", "Cf")


def _is_open_json(text: str) -> bool:
    """Whether a text is the beginning of a JSON document."""
    if not _JSON_START.match(text):
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text) or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return False


def _dangles(line: str) -> bool:
    if _UNSPACED.match(line[-1]):
        return _DANGLING_JA.search(line) is not None and _GREETING_JA.search(line) is None
    return line.split()[-1] in _DANGLING


def _is_item(line: str) -> bool:
    return bool(items(line)) or line.startswith("|")


def _is_sentence(line: str, share: float = 1.0) -> bool:
    """Whether a line has (a share of) the length of a sentence, rather than of a title, a label or a signature."""
    if _UNSPACED.match(line[-1]):
        return len(line) >= share * _SENTENCE_CHARACTERS
    found = [word for word in line.split() if any(map(str.isalpha, word))]
    if not line.isupper() and all(word[0].isupper() for word in found if len(word) > 3 and word.isalpha()):
        return False
    return len(found) >= share * _SENTENCE_WORDS
