"""Reading of pairwise judges' replies, by format: our JSON, Rubric-RM's sections, RM-R1's and arena tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rubricate.errors import ParseError
from rubricate.judges.parsing import parse_preference, strip_reasoning
from rubricate.judges.parsing.agreed import agreed
from rubricate.judges.parsing.contest import TIE, contest_of
from rubricate.judges.parsing.objects import find_spans
from rubricate.judges.parsing.reading import read_reply
from rubricate.narrow import as_array, as_object

__all__ = [
    "FORMATS",
    "PairReply",
    "Reader",
    "Side",
    "Style",
    "check_rubric_rm",
    "pair_schema",
    "read_pair",
    "rm_r1_reward",
]

Side = Literal["A", "B", "tie"]
Style = Literal["rubricate", "rubric-rm", "rm-r1", "arena"]
LABELS = ("Response A", "Response B")
_LONE = ("A", "B")
_TAGS = ("type", "rubric", "solution", "eval")
_HEADER = r"^[-*# \t]*\b{name}\b[-*: ]*$"
_GATEKEEPER = re.compile(r"gatekeeper criterion\W*?[:=]\W*(?P<named>[^\n]*\S)", re.I)
_JUSTIFIED = re.compile(r"justification[^\w\n]{0,8}:[^\w\n]{0,8}", re.I)
_WINNER = re.compile(r"^[^\w\n]{0,8}winner\b[^\w\n]{0,8}:", re.I | re.M)
_SIDE_HEADER = re.compile(r"^[^\w\n]{0,8}Response ([AB])[^\w\n]{0,8}$", re.M)
_ITEM = re.compile(r"^[^\w\n]{0,8}Criterion (\d{1,4})\b[^:\n]*:[ \t]*(?:Justification:)?[ \t*]*(\w?)", re.M)
_ARENA = re.compile(r"\[\[\s*([AB])\s*(>>|>|=|<|<<)\s*([AB])\s*\]\]")
_ANSWER = re.compile(r"</?answer>", re.I)
_LAST = 80


@dataclass(frozen=True, slots=True)
class PairReply:
    """What a reply says, in the order shown.

    Attributes:
        side: `A` (shown first), `B` or `tie`.
        reason: the judge's reason.
        strength: 0 tie, 1 better, 2 much better, where the format says so.
        notes: further parts by name.
        ahead: who is ahead on a criterion, by its label.
    """

    side: Side
    reason: str = ""
    strength: int | None = None
    notes: Mapping[str, str] = field(default_factory=dict[str, str])
    ahead: Mapping[str, Side] = field(default_factory=dict[str, Side])


Reader = Callable[[str, Sequence[str], bool, Sequence[str]], PairReply]
"""A reader gets the reply, the labels of the criteria, whether ties are allowed, and the texts that were shown. It
raises ParseError, with its `kind`, for a reply without one plain winner."""


def read_ours(reply: str, criteria: Sequence[str], ties: bool, quoted: Sequence[str]) -> PairReply:
    """Our JSON: every criterion once with reason and who is ahead, then reason, winner, and the winner again."""
    reading = read_reply(reply, quoted)
    objects = [as_object(part.value) for part in reading.structures]
    records = [record for record in objects if record is not None and "winner" in record]
    # What a response holds is quoted from it, however short: it is no verdict, and hides none.
    held = [as_object(span.value) for text in quoted if records and "{" in text for span in find_spans(text)[1]]
    own = [record for record in records if record not in held]
    if records and not own:
        raise ParseError("the only verdict is one that a response holds", kind="ambiguous", reply=reply)
    records = own
    if not records:
        # Other shapes are read only where the judge was not asked to go through criteria.
        if criteria or objects:
            raise ParseError("the reply holds no JSON object with a winner", kind="incomplete", reply=reply)
        return PairReply(_side(parse_preference(reply, LABELS, ties=ties, quoted=quoted)), reply)
    if len(records) > 1:
        raise ParseError("the reply holds several winners", kind="ambiguous", reply=reply)
    record = records[0]
    contest = contest_of(LABELS, ties, None)
    winner, final = contest.read(record["winner"]), contest.read(record.get("final"))
    if not isinstance(winner, str):
        raise ParseError(f"the winner is {record['winner']!r}", kind="ambiguous", reply=reply)
    if "final" not in record:
        raise ParseError("the reply does not close with its winner, so it was cut", kind="incomplete", reply=reply)
    if final != winner:
        raise ParseError("the closing winner is another one", kind="ambiguous", reply=reply)
    ahead = _by_criterion(record.get("criteria"), criteria, reply)
    reason = record.get("reason")
    told = reason if isinstance(reason, str) else ""
    # A reason that plainly names the other response takes the winner back, and so does what follows.
    after = reading.parts[-1] if isinstance(reading.parts[-1], str) else ""
    parse_preference(f"{told}\nWinner: {winner}", LABELS, ties=True, quoted=quoted)
    _confirm(winner, after, LABELS, quoted, reply)
    return PairReply(_side(winner), told, 0 if winner == TIE else None, ahead=ahead)


def _confirm(winner: str, after: str, labels: Sequence[str], quoted: Sequence[str], reply: str) -> None:
    """Raises ParseError where what follows a winner names another one."""
    if after.strip() and parse_preference(f"Winner: {winner}\n{after}", labels, ties=True, quoted=quoted) != winner:
        raise ParseError("what follows the winner names another one", kind="ambiguous", reply=reply)


def _by_criterion(value: object, criteria: Sequence[str], reply: str) -> dict[str, Side]:
    """Who is ahead on each criterion. Every criterion must be there once, with a side."""
    contest = contest_of(LABELS, True, None)
    ahead = dict[str, Side]()
    for item in as_array(value) or ():
        entry = as_object(item) or {}
        label, side = str(entry.get("id", "")).strip(), contest.read(entry.get("ahead"))
        if label in ahead or label not in criteria:
            raise ParseError(f"the reply judges {label!r} twice, or unasked", kind="ambiguous", reply=reply)
        if not isinstance(side, str):
            raise ParseError(f"the reply does not say who is ahead on {label}", kind="incomplete", reply=reply)
        ahead[label] = _side(side)
    without = [label for label in criteria if label not in ahead]
    if without:
        raise ParseError(f"the reply leaves out {', '.join(without)}", kind="incomplete", reply=reply)
    return ahead


def read_rubric_rm(reply: str, criteria: Sequence[str], ties: bool, quoted: Sequence[str]) -> PairReply:
    """Rubric-RM's sections: the winner stands in the Final Judgment, the gatekeeper in the Compliance Check."""
    visible = strip_reasoning(reply)
    # From the first header on: a reply that judges twice must not be read as its last judgment alone.
    headers = list(re.finditer(_HEADER.format(name="Final Judgment"), visible, re.I | re.M))
    start = next((header for header in headers if not _is_held(visible, header, quoted)), None)
    judgment = visible[start.end() :] if start else reply
    sections = headers or _section(visible, "Compliance Check") or _section(visible, "Analysis")
    unfinished = start is None and sections
    if unfinished or not _WINNER.search(judgment):
        raise ParseError("the reply ends before its winner", kind="incomplete", reply=reply)
    side = _side(parse_preference(judgment, LABELS, ties=ties, quoted=quoted))
    told = _JUSTIFIED.split(judgment, maxsplit=1)[-1]
    winner = _WINNER.search(told)
    reason = (told[: winner.start()] if winner else told).strip(" *\n")
    named = _GATEKEEPER.search(_section(visible, "Compliance Check") or "")
    notes = {"gatekeeper": named["named"].strip(" *")} if named else {}
    return PairReply(side, reason, None, notes)


def _is_held(text: str, header: re.Match[str], quoted: Sequence[str]) -> bool:
    """Whether a final judgment, from its header to its winner, stands in one of the texts that were shown."""
    winner = _WINNER.search(text, header.end())
    block = text[header.start() : winner.end() if winner else len(text)].split()
    return any(" ".join(block) in " ".join(shown.split()) for shown in quoted)


def _section(text: str, name: str) -> str | None:
    """What follows the last header of that name, up to the next header; None without one."""
    headers = list(re.finditer(_HEADER.format(name=name), text, re.I | re.M))
    if not headers:
        return None
    rest = text[headers[-1].end() :]
    following = re.search(_HEADER.format(name="(?:Compliance Check|Analysis|Final Judgment)"), rest, re.I | re.M)
    return rest[: following.start()] if following else rest


def read_rm_r1(reply: str, criteria: Sequence[str], ties: bool, quoted: Sequence[str]) -> PairReply:
    """RM-R1's tags: the answer in `<answer>`, or brackets alone; type, rubric, solution and evaluation as notes."""
    visible = strip_reasoning(reply)
    notes = {name: found[-1].strip() for name in _TAGS if (found := _elements(visible, name)[0])}
    # Evaluations quote the responses, which may hold answer tags of their own.
    outside = visible
    for name in _TAGS:
        outside = _elements(outside, name)[1]
    answers = {text.strip() for text in _elements(outside, "answer")[0]}
    if len(answers) > 1:
        raise ParseError("the reply gives several answers", kind="ambiguous", reply=reply)
    # An answer within an element that never closes may be quoted there, and so may any where a response holds one.
    # The judge's own is then the last word of the reply.
    doubtful = any(f"<{name}>" in outside for name in _TAGS) or any("<answer>" in shown for shown in quoted)
    cut = answers and doubtful and not outside.rstrip().endswith("</answer>")
    if cut or (not answers and ("<answer>" in outside or "[[" not in outside)):
        raise ParseError("the reply ends before its answer", kind="incomplete", reply=reply)
    named = parse_preference(answers.pop() if answers else outside, _LONE, ties=ties, quoted=quoted)
    if "</answer>" in outside:
        _confirm(named, outside.rpartition("</answer>")[2], _LONE, quoted, reply)
    side = _side(named)
    return PairReply(side, notes.get("eval", ""), None, notes)


def _elements(text: str, name: str) -> tuple[list[str], str]:
    """The contents of the elements of that name, and the text without them. Unclosed ones stay in the text."""
    opening, closing = f"<{name}>", f"</{name}>"
    inside, outside, at = list[str](), list[str](), 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        inside.append(text[start + len(opening) : end])
        outside.append(text[at:start])
        at = end + len(closing)
    return inside, " ".join((*outside, text[at:]))


def read_arena(reply: str, criteria: Sequence[str], ties: bool, quoted: Sequence[str]) -> PairReply:
    """Arena tags, `[[A>>B]]` to `[[B>>A]]`, and the older `[[A]]`, `[[B]]`, `[[C]]` (tie)."""
    if "[[" not in reply:
        raise ParseError("the reply ends before its tag", kind="incomplete", reply=reply)
    # An answer element would count for more than the tags, and is none of this style's.
    plain = _ANSWER.sub(" ", reply)
    side = _side(parse_preference(plain, _LONE, ties=ties, tie_label="C", quoted=quoted))
    tags = _ARENA.findall(strip_reasoning(reply))
    strength = len(str(tags[-1][1])) if tags and side != TIE else (0 if side == TIE else None)
    return PairReply(side, reply.rpartition("[[")[0].strip() or reply, strength)


def _side(label: str) -> Side:
    if label == TIE:
        return "tie"
    return "A" if label in ("A", LABELS[0]) else "B"


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """A style of pairwise judging: its prompt, its reader, and whether it knows ties and needs a rubric."""

    prompt: str
    read: Reader
    ties: bool
    needs_rubric: bool = False
    complaint: str = ""


FORMATS: Mapping[Style, ReplyFormat] = {
    "rubricate": ReplyFormat(
        "pairwise_judge", read_ours, True, False, "it was not the complete JSON object that was asked for"
    ),
    "rubric-rm": ReplyFormat(
        "rubric_rm_judge",
        read_rubric_rm,
        False,
        True,
        'it did not close with one line "Winner: Response A" or "... B"',
    ),
    "rm-r1": ReplyFormat(
        "rm_r1_judge", read_rm_r1, False, False, "it did not close with <answer>[[A]]</answer> or the same with B"
    ),
    "arena": ReplyFormat(
        "pairwise_arena_judge", read_arena, True, False, "it did not close with one of the tags, such as [[A>B]]"
    ),
}


def read_pair(
    form: ReplyFormat, reply: str, criteria: Sequence[str], ties: bool, quoted: Sequence[str]
) -> PairReply:
    """A reply in that format.

    Where a response holds a tag of reasoning, one in the reply may be quoted from it and hide what the judge said
    before: with and without it, the reply must then say the same.

    Raises ParseError, with its `kind`, for a reply without one plain winner.
    """
    return agreed(lambda text: form.read(text, criteria, ties, quoted), reply, quoted, lambda found: found.side)


def pair_schema(criteria: Sequence[str], ties: bool) -> dict[str, object]:
    """JSON schema of our reply to a pair, for constrained decoding."""
    sides = {"type": "string", "enum": ["A", "B", "tie"] if ties else ["A", "B"]}
    text: dict[str, object] = {"type": "string"}
    entry = {"id": {"enum": list(criteria)}, "reason": text, "ahead": {"type": "string", "enum": ["A", "B", "tie"]}}
    listed: dict[str, object] = {
        "type": "array",
        "minItems": len(criteria),
        "maxItems": len(criteria),
        "items": _closed(entry),
    }
    first: dict[str, object] = {"criteria": listed} if criteria else {}
    return _closed(first | {"reason": text, "winner": sides, "final": sides})


def _closed(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def rm_r1_reward(reply: str, winner: Literal["A", "B"]) -> float:
    """RM-R1's training reward (2505.02387): +1 where the last 80 characters hold the right answer tag and not the
    other one, else -1. A reward on outcome and form at once; `read_rm_r1` reads replies more generously."""
    tail = reply[-_LAST:]
    right, wrong = (f"<answer>[[{side}]]</answer>" for side in (winner, "B" if winner == "A" else "A"))
    return 1.0 if right in tail and wrong not in tail else -1.0


def check_rubric_rm(reply: str, criteria: int) -> list[str]:
    """What the form of a Rubric-RM reply lacks; empty for a complete one. The checks of Rubric-ARM's format reward
    (2602.01511): every criterion addressed for both responses with an explanation, a justification, one decision.

    Args:
        criteria: number of criteria of the rubric.
    """
    visible = strip_reasoning(reply)
    lacks = [name for name in ("Compliance Check", "Analysis", "Final Judgment") if _section(visible, name) is None]
    problems = [f"no section {name!r}" for name in lacks]
    if not _GATEKEEPER.search(_section(visible, "Compliance Check") or ""):
        problems.append("no gatekeeper criterion")
    analysis = _section(visible, "Analysis") or ""
    parts = _SIDE_HEADER.split(analysis)
    told = dict(zip(parts[1::2], parts[2::2], strict=False))
    for side in _LONE:
        found = _ITEM.findall(told.get(side, ""))
        explained = {int(number) for number, word in found if word}
        problems += [f"criterion {n} of response {side}" for n in range(1, criteria + 1) if n not in explained]
    judgment = _section(visible, "Final Judgment") or ""
    if not re.match(r"\w", (*_JUSTIFIED.split(judgment, maxsplit=1), "")[1]):
        problems.append("no justification")
    if len(_WINNER.findall(visible)) != 1:
        problems.append("not exactly one winner line")
    return problems
