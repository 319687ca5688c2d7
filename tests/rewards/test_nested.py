"""Nested groups: human-graded PaperBench trees, and the edges of a group's mean."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rubricate.errors import ConfigError
from rubricate.rewardmodels import Aggregation, aggregate, aggregate_many, node_scores, preset
from rubricate.rubrics import Criterion, Group, Polarity, Rubric
from rubricate.rubrics.formats import graded_scores, graded_verdicts, parse_rubric
from rubricate.types import Failure, FailureCause, FailureKind, Verdict

DOWN = Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "503")


def test_every_node_of_the_graded_paperbench_trees(shared: Callable[[str], Path]) -> None:
    count = 0
    for path in sorted(shared("paperbench").glob("graded_*.json")):
        tree: object = json.loads(path.read_text())
        rubric, verdicts, expected = parse_rubric(tree), graded_verdicts(tree), graded_scores(tree)
        scores = node_scores(rubric, list(verdicts.values()))
        for name, score in expected.items():
            assert scores[name].value == pytest.approx(score, abs=1e-12), (path.name, name)
            count += 1
        root = next(iter(expected.values()))
        assert scores[""].value == pytest.approx(root, abs=1e-12)
        assert aggregate("paperbench", rubric, list(verdicts.values())).value == pytest.approx(root, abs=1e-12)
        evidence = np.array([[verdicts[name].score for name in rubric.ids]] * 2, dtype=np.float64)
        assert aggregate_many("paperbench", rubric, evidence).value == pytest.approx([root] * 2, abs=1e-12)
    assert count > 100


def leaf(name: str, weight: float, *path: str) -> Criterion:
    return Criterion(id=name, text="It is so.", weight=weight, path=path)


TWO_LEVELS = Rubric(
    groups=(Group(id="g", weight=3), Group(id="h", weight=1, path=("g",))),
    criteria=(leaf("a", 1), leaf("b", 1, "g"), leaf("c", 1, "g", "h"), leaf("d", 3, "g", "h")),
)


def test_an_unknown_leaf_leaves_bounds_on_the_way_up_and_nothing_elsewhere() -> None:
    said = [Verdict("a", 1.0), Verdict("b", 0.0), Verdict("c", 1.0), Verdict.failed("d", DOWN)]
    scores = node_scores(TWO_LEVELS, said)
    assert (scores["h"].value, scores["h"].bounds) == (None, (0.25, 1.0))
    assert (scores["g"].value, scores["g"].bounds) == (None, (0.125, 0.5))
    assert scores[""].bounds == pytest.approx((1.375 / 4, 2.5 / 4))
    whole = aggregate("paperbench", TWO_LEVELS, said)
    assert whole.value is None and whole.bounds == scores[""].bounds
    sibling = [Verdict("a", 1.0), Verdict.failed("b", DOWN), Verdict("c", 1.0), Verdict("d", 0.0)]
    assert node_scores(TWO_LEVELS, sibling)["h"].value == 0.25


def test_skip_renormalises_within_the_group() -> None:
    o = preset("paperbench", missing="skip", min_coverage=0.5)
    said = [Verdict("a", 1.0), Verdict("b", 0.0), Verdict("c", 1.0), Verdict.failed("d", DOWN)]
    assert aggregate(o, TWO_LEVELS, said).value == pytest.approx((1 + 3 * 0.5) / 4)


def test_skipping_a_whole_group_does_not_leave_the_penalties_alone() -> None:
    penalty = Criterion(id="p", text="It is rude.", weight=9, polarity=Polarity.PENALTY)
    rubric = Rubric(groups=(Group(id="g", weight=1),), criteria=(leaf("a", 1, "g"), penalty))
    o = Aggregation(combine="nested", missing="skip", min_coverage=0.5)
    assert aggregate(o, rubric, [Verdict.failed("a", DOWN), Verdict("p", 0.0)]).value is None
    assert aggregate(o, rubric, [Verdict("a", 1.0), Verdict.failed("p", DOWN)]).value is None
    assert aggregate(o, rubric, [Verdict("a", 1.0), Verdict("p", 0.0)]).value == 1.0


@pytest.mark.parametrize("weight", [0.0, 5.0])
def test_groups_without_weight_inside_have_no_score_and_do_not_count(weight: float) -> None:
    rubric = Rubric(
        groups=(Group(id="g", weight=weight),),
        criteria=(leaf("a", 1), leaf("b", 0, "g"), leaf("c", 0, "g")),
    )
    said = [Verdict("a", 0.5), Verdict("b", 1.0), Verdict.failed("c", DOWN)]
    scores = node_scores(rubric, said)
    assert (scores["g"].value, scores["g"].bounds) == (None, None)
    assert scores[""].value == 0.5


def test_a_group_of_weight_zero_is_scored_and_does_not_count() -> None:
    rubric = Rubric(groups=(Group(id="g", weight=0),), criteria=(leaf("a", 1), leaf("b", 2, "g")))
    scores = node_scores(rubric, [Verdict("a", 0.5), Verdict("b", 1.0)])
    assert scores["g"].value == 1.0
    assert scores[""].value == 0.5
    unknown = node_scores(rubric, [Verdict("a", 0.5), Verdict.failed("b", DOWN)])
    assert unknown["g"].value is None
    assert unknown[""].value == 0.5


def test_what_does_not_apply_leaves_its_group() -> None:
    said = [Verdict("a", 1.0), Verdict("b", 0.0), Verdict.not_applicable("c"), Verdict.not_applicable("d")]
    scores = node_scores(TWO_LEVELS, said)
    assert scores["h"].bounds is None
    assert scores["g"].value == 0.0
    assert scores[""].value == 0.25
    kept = node_scores(TWO_LEVELS, said, preset("paperbench", not_applicable="no_credit"))
    assert kept["h"].value == 0.0


def test_flat_aggregations_have_no_node_scores() -> None:
    with pytest.raises(ConfigError, match="nested"):
        node_scores(TWO_LEVELS, [], Aggregation())


def test_weights_of_groups_that_overflow_are_an_error_not_a_number() -> None:
    groups = (Group(id="g", weight=1e308), Group(id="h", weight=1e308))
    huge = Rubric(groups=groups, criteria=(leaf("a", 1, "g"), leaf("b", 1, "h")))
    with pytest.raises(ConfigError, match="not finite"):
        aggregate("paperbench", huge, [Verdict("a", 1.0), Verdict("b", 0.0)])
