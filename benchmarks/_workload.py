"""The job that the benchmarks do: responses with known verdicts on eight criteria, two of them penalties.

Whether a response meets a criterion is whether it contains that criterion's marker sentence, so a scripted judge
knows the right verdict from the prompt alone. Standard library only: the peers' own environments run this too.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

__all__ = [
    "CRITERIA",
    "SHAPES",
    "Case",
    "CriterionText",
    "cases",
    "exact_score",
    "load_cases",
    "save_cases",
    "say",
    "subject",
]


@dataclass(frozen=True, slots=True)
class CriterionText:
    """A criterion (`weight` is signed: penalties are negative) and the sentence of a response that meets it."""

    id: str
    text: str
    weight: float
    marker: str


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt, a response, and the ids of the criteria that the response meets."""

    prompt: str
    response: str
    met: tuple[str, ...]


CRITERIA = (
    CriterionText(
        "owner",
        "The response names the person or role that is responsible for the whole effort.",
        11.0,
        "Put one coordinator in charge, so that every question has an owner.",
    ),
    CriterionText(
        "date",
        "The response gives a concrete date or deadline by which first results are due.",
        8.0,
        "Have something to show by the twelfth of next month.",
    ),
    CriterionText(
        "cost",
        "The response estimates with a figure what the plan will cost.",
        6.0,
        "Expect to spend about four thousand euros in all.",
    ),
    CriterionText(
        "fallback",
        "The response describes what to do if the plan fails or is delayed.",
        5.0,
        "Should the schedule slip, turn to the smaller version that everybody agreed on at the start.",
    ),
    CriterionText(
        "measure",
        "The response explains how success will be measured once the work is finished.",
        4.0,
        "Count the open requests before and after, and compare the two numbers.",
    ),
    CriterionText(
        "summary",
        "The response sums up the next steps in one sentence.",
        2.0,
        "In short: decide, divide the work, and look again after two weeks.",
    ),
    CriterionText(
        "skips_checks",
        "The response advises to leave out tests or checks in order to save time.",
        -7.0,
        "There is no need to try anything out beforehand; it only costs hours.",
    ),
    CriterionText(
        "blames",
        "The response blames a named colleague for earlier problems.",
        -2.0,
        "Most of the earlier trouble was, frankly, the fault of Mr Albrecht.",
    ),
)

_TEAMS = (
    "a village library",
    "a bicycle workshop",
    "a small bakery",
    "a school orchestra",
    "a regional museum",
    "a community garden",
    "a repair café",
    "a chess club",
    "a veterinary practice",
    "a local newspaper",
)
_EVENTS = (
    "a move to a new building",
    "a change of its booking system",
    "a public open day",
    "the training of ten volunteers",
    "a reduction of its energy use",
)
_FILLER = (
    "Begin with a plain list of what exists today, because plans for {team} fail on things nobody wrote down.",
    "Talk to the people who do the daily work before anything is ordered or promised.",
    "A shared calendar helps more than a long document, as long as everyone looks at it each morning.",
    "Divide the work into pieces that two people can finish within a few days.",
    "It is worth visiting another place that has already been through {event} and asking what surprised them.",
    "Keep the usual services open wherever possible and announce the exceptions early.",
    "Letters, notices and the web page should say the same thing in the same words.",
    "Store keys, passwords and contracts in one place that at least two people can reach.",
    "A quiet week in the middle of the plan gives room for what was forgotten.",
    "Ask visitors what they would miss most, and protect that first.",
    "When suppliers are involved, ask for offers in writing and compare what is included.",
    "Take photographs of every room and every cable before something is taken apart.",
    "Small decisions may be taken by whoever is present; large ones belong in the weekly meeting.",
    "New helpers learn fastest when they accompany somebody for a day instead of reading instructions.",
    "Remember that {event} is tiring, so short shifts and a warm lunch are not a luxury.",
    "Old equipment can be offered to neighbours, which saves storage and makes friends.",
    "Check which permits are required, since offices answer slowly in summer.",
    "A single telephone number for questions prevents contradictory answers.",
    "After each stage, write down in five lines what went well and what did not.",
    "For {team}, goodwill is the scarcest resource, and it is spent by silence.",
    "Plan the noisy work for hours when nobody needs to concentrate.",
    "Insurance should be informed before valuable things are carried across the street.",
    "A drawing on the wall with coloured pins shows progress better than percentages.",
    "Nothing replaces a rehearsal of the first hour with the people who will be there.",
)
LENGTH = 2000  # characters of a response, about


def cases(count: int = 50, seed: int = 0) -> list[Case]:
    """The first `count` cases of `seed`. Texts and verdicts depend on nothing else."""
    return [_case(index, random.Random(f"{seed}:{index}")) for index in range(count)]


def _case(index: int, rng: random.Random) -> Case:
    team, event = _TEAMS[index % len(_TEAMS)], _EVENTS[index // len(_TEAMS) % len(_EVENTS)]
    met = [c for c in CRITERIA if rng.random() < (0.6 if c.weight > 0 else 0.3)]
    sentences = [c.marker for c in met]
    fillers = [line.format(team=team, event=event) for line in rng.sample(_FILLER, len(_FILLER))]
    while fillers and sum(len(line) + 1 for line in sentences) < LENGTH - 50:
        sentences.append(fillers.pop())
    rng.shuffle(sentences)
    paragraphs = [" ".join(sentences[start : start + 5]) for start in range(0, len(sentences), 5)]
    prompt = f"Request {index + 1}: how should {team} prepare for {event}? Answer in a few paragraphs."
    return Case(prompt, "\n\n".join(paragraphs), tuple(c.id for c in met))


def exact_score(met: Sequence[str]) -> float:
    """Sum of the met criteria's weights over all positive ones, clipped to [0, 1], as every contestant does."""
    total = sum(c.weight for c in CRITERIA if c.weight > 0)
    return max(0.0, min(1.0, sum(c.weight for c in CRITERIA if c.id in met) / total))


def save_cases(path: Path, items: Sequence[Case]) -> None:
    """Write cases as JSON for another process."""
    path.write_text(json.dumps([asdict(case) for case in items], ensure_ascii=False), encoding="utf-8")


def load_cases(path: Path) -> list[Case]:
    """Read what `save_cases` wrote."""
    items = cast("list[dict[str, list[str]]]", json.loads(path.read_text(encoding="utf-8")))
    return [Case(str(item["prompt"]), str(item["response"]), tuple(item["met"])) for item in items]


def _asked(prompt: str) -> list[tuple[CriterionText, bool]]:
    """The criteria that a prompt asks about, in order of appearance, each with its right verdict."""
    places = [(prompt.find(c.text), c) for c in CRITERIA]
    return [(c, c.marker in prompt) for at, c in sorted(places, key=lambda place: place[0]) if at >= 0]


def subject(prompt: str) -> str:
    """What a judge's prompt is about, whatever its wording: the case's number and the criteria asked for."""
    found = re.search(r"Request (\d+): ", prompt)
    ids = ",".join(sorted(criterion.id for criterion, _ in _asked(prompt)))
    return f"{found.group(1) if found else ''}:{ids}"


def _reason(met: bool, words: tuple[str, str]) -> str:
    """A reason that also contains the other verdict, as reasons do: who reads verdicts from it reads wrong ones."""
    right, other = words if met else words[::-1]
    has = "contains a passage that settles this point" if met else "has no passage on this point"
    return f'The response {has}. A hasty reader might answer "{other}", but on a second look it is {right}.'


def _ours(prompt: str) -> Mapping[str, object]:
    words = ("met", "unmet")
    rows = [(_label(prompt, c), words[0] if met else words[1], _reason(met, words)) for c, met in _asked(prompt)]
    verdicts = [{"id": label, "reason": reason, "verdict": verdict} for label, verdict, reason in rows]
    return {"verdicts": verdicts, "final": {label: verdict for label, verdict, _ in rows}}


def _label(prompt: str, criterion: CriterionText) -> str:
    """The label in front of a criterion: `C3` of "C3: The response ..."."""
    before = prompt[: prompt.find(criterion.text)][-40:].split()
    return before[-1].strip(":.") if before else "C1"


def _status(met: bool) -> dict[str, object]:
    words = ("MET", "UNMET")
    return {"criterion_status": words[0] if met else words[1], "explanation": _reason(met, words)}


def _one(prompt: str) -> Mapping[str, object]:
    (_, met), *_ = _asked(prompt)
    return _status(met)


def _numbered(prompt: str) -> Mapping[str, object]:
    rows = [{"criterion_number": n, **_status(met)} for n, (_, met) in enumerate(_asked(prompt), start=1)]
    return {"criteria_evaluations": rows}


def _judgments(prompt: str) -> Mapping[str, object]:
    rows = [{"criterion_id": f"c{n}", **_status(met)} for n, (_, met) in enumerate(_asked(prompt))]
    return {"judgments": rows}


SHAPES = {"rubricate": _ours, "one": _one, "numbered": _numbered, "judgments": _judgments}
"""Reply shapes: ours; one criterion (both peers); all in one call of `rubric` and of `autorubric`."""


def say(shape: str, prompt: str) -> Mapping[str, object]:
    """The right answer to a judge's prompt, in the shape that its asker expects."""
    return SHAPES[shape](prompt)
