"""The computations among the public judge outputs: every one right, none wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rubricate.errors import ConfigError
from rubricate.narrow import as_array, as_number, as_object
from rubricate.rewardmodels import Aggregation, aggregate, group_advantages, value_range
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.types import Judgement, Verdict

Fields = Mapping[str, object]
COUNTS = {"weighted_score": 8, "level_score": 1, "normalise": 2, "rubric_range": 1, "group_advantages": 3}


def fields(value: object) -> Fields:
    found = as_object(value)
    assert found is not None
    return found


def number(value: object) -> float:
    found = as_number(value)
    assert found is not None
    return found


def items(value: object) -> list[object]:
    found = as_array(value)
    assert found is not None
    return list(found)


def criterion(name: str, signed: float) -> Criterion:
    polarity = Polarity.REWARD if signed >= 0 else Polarity.PENALTY
    return Criterion(id=name, text=f"It is {name}.", weight=abs(signed), polarity=polarity)


def rubric(given: Fields) -> Rubric:
    listed = [fields(item) for item in items(given["criteria"])]
    return Rubric(criteria=tuple(criterion(str(item["id"]), number(item["weight"])) for item in listed))


def weighted_score(given: Fields) -> Fields:
    policy = fields(given["policy"])
    clip = policy.get("clip")
    options = Aggregation(only_negative="undefined").changed(
        not_applicable="no_credit" if policy.get("cannot_assess") == "no_credit" else "exclude",
        clip=None if clip is None else tuple(number(end) for end in items(clip)),
    )
    verdicts: list[Verdict] = []
    for name, label in fields(given["verdicts"]).items():
        if label in ("not_applicable", "cannot_assess"):
            verdicts.append(Verdict.not_applicable(name))
        else:
            verdicts.append(Verdict(name, {"met": 1.0, "unmet": 0.0}[str(label)]))
    whole = rubric(given)
    score = aggregate(options, whole, verdicts)
    if score.value is not None:
        return {"score": score.value}
    if score.bounds is None:
        return {"failure": "undefined"}
    said = {verdict.criterion_id for verdict in verdicts}
    return {
        "low": score.bounds[0],
        "high": score.bounds[1],
        "missing": [name for name in whole.ids if name not in said],
    }


def level_score(given: Fields) -> Fields:
    """Points from 0 to a best level are a reward criterion of that weight, points below 0 a penalty."""
    criteria: list[Criterion] = []
    verdicts: list[Verdict] = []
    chosen = fields(given["chosen"])
    for row in map(fields, items(given["rows"])):
        name, levels = str(row["id"]), [number(level) for level in items(row["levels"])]
        span = max(levels) if max(levels) > 0 else min(levels)
        criteria.append(criterion(name, span))
        if chosen[name] == "not_applicable":
            verdicts.append(Verdict.not_applicable(name))
        else:
            verdicts.append(Verdict(name, number(chosen[name]) / span))
    return {"score": aggregate(Aggregation(), Rubric(criteria=tuple(criteria)), verdicts).value}


def normalise(given: Fields) -> Fields:
    low, high = (number(end) for end in items(given["scale"]))
    options = Aggregation(mode="implicit", normaliser="min_max", rating_scale=(low, high))
    overall = Verdict("overall", 0.0, raw=number(given["value"]))
    return {"value": aggregate(options, Rubric(criteria=(criterion("a", 1),)), Judgement(overall=overall)).value}


def rubric_range(given: Fields) -> Fields:
    low, high = value_range(Aggregation(denominator="none"), rubric(given))
    return {"min": low, "max": high}


def advantages(given: Fields) -> Fields:
    rewards = [None if reward is None else number(reward) for reward in items(given["rewards"])]
    found = group_advantages(rewards)
    if found.flag == "degenerate":
        return {"failure": "degenerate_group"}
    flag = {"flag": found.flag} if found.flag else {}
    return {"advantages": list(found.advantages), **flag}


ANSWERS: Mapping[str, Callable[[Fields], Fields]] = {
    "weighted_score": weighted_score,
    "level_score": level_score,
    "normalise": normalise,
    "rubric_range": rubric_range,
    "group_advantages": advantages,
}


def same(found: object, expected: object) -> bool:
    wanted = as_array(expected)
    if wanted is not None:
        listed = as_array(found)
        return listed is not None and len(listed) == len(wanted) and all(map(same, listed, wanted))
    wanted_number = as_number(expected)
    if wanted_number is not None:
        value = as_number(found)
        return value is not None and abs(value - wanted_number) <= 1e-6
    return found == expected


def test_every_computation_is_right(shared: Callable[[str], Path]) -> None:
    counts = dict.fromkeys(COUNTS, 0)
    for line in (shared("judge_outputs") / "cases.jsonl").read_text().splitlines():
        case = fields(json.loads(line))
        given, expected = fields(case["input"]), fields(case["expected"])
        schema = str(given["schema"])
        if schema not in ANSWERS:
            continue
        counts[schema] += 1
        found = ANSWERS[schema](given)
        wanted = {key: value for key, value in expected.items() if key != "or"}
        assert found.keys() == wanted.keys(), (case["id"], found)
        assert all(same(found[key], value) for key, value in wanted.items()), (case["id"], found)
    assert counts == COUNTS


def test_a_full_mark_is_one_exactly() -> None:
    tenths = Rubric(criteria=tuple(criterion(f"t{index}", 0.1) for index in range(10)))
    assert aggregate(Aggregation(), tenths, [Verdict(name, 1.0) for name in tenths.ids]).value == 1.0


def test_group_advantages() -> None:
    noise = group_advantages([0.1 + 0.2, 0.3, 0.3])
    assert (noise.flag, noise.advantages, noise.std) == ("zero_variance", (0.0, 0.0, 0.0), 0.0)
    masked = group_advantages([None, 1.0])
    assert (masked.flag, masked.advantages) == ("degenerate", (None, None))
    assert group_advantages([]).flag == "degenerate"
    spread = group_advantages([1.0, None, 3.0])
    assert (spread.mean, spread.std, spread.advantages) == (2.0, 1.0, (-1.0, None, 1.0))
    assert group_advantages([1e-10, 3e-10]).flag == ""
    assert group_advantages([0.0, 0.0]).flag == "zero_variance"
    with pytest.raises(ConfigError, match="finite"):
        group_advantages([float("inf"), 1.0])
