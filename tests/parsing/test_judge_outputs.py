"""The shared set of small traps for graders: every case whose schema has a runner must not come out wrong.

A runner is a function from a case's `input` to an outcome in the form of its `expected`; an error of this package
is the outcome `failure` (and its attribute `bad`, where it has one, the ids it refuses). Any file
`tests/**/judge_outputs_*.py` adds runners with a module-level `RUNNERS`, a dict from schema to runner.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from rubricate.errors import RubricateError

Runner = Callable[[Mapping[str, Any]], Mapping[str, object]]
UNORDERED = ("missing", "ambiguous", "extra", "bad")
TESTS = Path(__file__).parents[1]


def load_runners() -> dict[str, Runner]:
    """The runners of all test folders."""
    runners: dict[str, Runner] = {}
    for path in sorted(TESTS.rglob("judge_outputs_*.py")):
        spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found = cast("dict[str, Runner]", module.RUNNERS)
        assert not set(found) & set(runners), f"{path} defines a schema that has a runner already"
        runners |= found
    return runners


def same(found: object, wanted: object) -> bool:
    """Equal, numbers within 1e-6."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return found is wanted
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return abs(found - wanted) <= 1e-6
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        one, two = cast("Mapping[str, object]", found), cast("Mapping[str, object]", wanted)
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in two)
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple):
        many, asked = cast("Sequence[object]", found), cast("Sequence[object]", wanted)
        return len(many) == len(asked) and all(same(a, b) for a, b in zip(many, asked, strict=True))
    return found == wanted


def has_value(outcome: Mapping[str, object]) -> bool:
    """Whether an outcome reports anything but failure."""
    return "failure" not in outcome and outcome.get("verdicts") != {}


def agrees(outcome: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    """Whether an outcome is this expectation. The kind of a failure is a matter of naming."""
    if not has_value(wanted) or not has_value(outcome):
        both = has_value(wanted) == has_value(outcome)
        return both and (
            "bad" not in wanted
            or set(cast("list[str]", outcome.get("bad"))) == set(cast("list[str]", wanted["bad"]))
        )
    for key, value in wanted.items():
        if key == "or":
            continue
        if key in UNORDERED:
            if set(cast("list[str]", outcome.get(key, ()))) != set(cast("list[str]", value)):
                return False
        elif not same(outcome.get(key), value):
            return False
    return True


def rate(outcome: Mapping[str, object], expected: Mapping[str, Any], also: Mapping[str, object] | None) -> str:
    """right, safe miss or wrong, as the set's README defines them."""
    wanted = [one for one in (expected, expected.get("or"), also) if one is not None]
    if any(agrees(outcome, one) for one in wanted):
        return "right"
    if not has_value(outcome):
        return "safe miss"
    verdicts, asked = outcome.get("verdicts"), expected.get("verdicts")
    if isinstance(verdicts, Mapping) and isinstance(asked, Mapping):
        given = cast("Mapping[str, object]", verdicts)
        if all(cast("Mapping[str, object]", asked).get(id) == label for id, label in given.items()):
            return "safe miss"
    return "wrong"


def cases(folder: Path) -> Iterator[Mapping[str, Any]]:
    """The cases of the set."""
    for line in (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def test_no_case_comes_out_wrong(shared: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared("judge_outputs")
    runners = load_runners()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    noted: list[str] = []
    for case in cases(folder):
        schema = case["input"]["schema"]
        if schema not in runners:
            table[schema]["skipped"] += 1
            continue
        started = time.process_time()
        try:
            outcome = runners[schema](case["input"])
        except RubricateError as error:
            outcome = {"failure": getattr(error, "kind", type(error).__name__), "bad": getattr(error, "bad", ())}
        seconds = time.process_time() - started
        rating = rate(outcome, case["expected"], case.get("or"))
        table[schema][rating] += 1
        if rating != "right" or seconds > 1:
            noted.append(f"{case['id']} {rating} in {seconds:.2f} s: {dict(outcome)}, expected {case['expected']}")
        assert seconds <= 1, noted[-1]
    total: Counter[str] = Counter()
    for counts in table.values():
        total += counts
    with capsys.disabled():
        print(f"\njudge outputs: {total['right']} right, {total['safe miss']} safe misses, {total['wrong']} wrong")
        for schema, counts in sorted(table.items()):
            print(f"  {schema:20} " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
        print(*(f"  {line}" for line in noted), sep="\n")
    assert total["wrong"] == 0, noted
    assert total["safe miss"] <= 3, noted


RATINGS: list[tuple[dict[str, object], dict[str, object], str]] = [
    ({"score": 3.0000001}, {"score": 3}, "right"),
    ({"score": 0.0}, {"score": 0}, "right"),
    ({"score": 4}, {"score": 3}, "wrong"),
    ({"score": 0}, {"failure": "unparsable"}, "wrong"),
    ({"failure": "empty"}, {"failure": "unparsable"}, "right"),
    ({"failure": "empty"}, {"score": 3}, "safe miss"),
    ({"failure": "empty"}, {"score": 3, "or": {"failure": "unparsable"}}, "right"),
    ({"verdicts": {"a": "met"}, "missing": ["b"]}, {"verdicts": {"a": "met", "b": "met"}}, "safe miss"),
    ({"verdicts": {"a": "unmet"}}, {"verdicts": {"a": "met", "b": "met"}}, "wrong"),
    ({"verdicts": {}}, {"failure": "empty"}, "right"),
    ({"flag": True}, {"flag": False}, "wrong"),
]


@pytest.mark.parametrize(("outcome", "expected", "rating"), RATINGS)
def test_the_rating(outcome: dict[str, object], expected: dict[str, object], rating: str) -> None:
    assert rate(outcome, expected, None) == rating
