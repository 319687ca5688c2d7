"""Labels cannot be told from one text alone, and the measure that says so finds leaks where there are some."""

from __future__ import annotations

import math

import numpy as np

from rubricate.data.records import Rollout
from rubricate.judges.calibrated import Labelled
from rubricate.rubrics import Criterion
from rubricate.training.checks.leakage import rank_auc, shortcuts, words_auc

NATURAL = {"length", "lexical", "letter", "language"}


def item(criterion: str, response: str, met: bool) -> Labelled:
    return Labelled(Rollout("p", response), Criterion(id="c", text=criterion, tags=("f", "k", "plain")), met)


def noise(count: int) -> float:
    """Two standard errors of an AUC of 0.5 (Hanley and McNeil 1982), and a little for the choice of the side."""
    return 2.2 * math.sqrt((count + 1) / (3 * count**2))


def test_auc_counts_ties_half() -> None:
    assert rank_auc(np.array([0.1, 0.5, 0.5, 0.9]), np.array([False, False, True, True])) == 0.875
    assert math.isnan(rank_auc(np.array([0.1, 0.2]), np.array([True, True])))


def test_a_planted_leak_is_found() -> None:
    leaky = [item("It is good.", "yes", True), item("It is bad.", "no", False)] * 40
    assert words_auc(leaky, leaky, "criterion") == 1.0
    assert words_auc(leaky, leaky, "response") == 1.0
    crossed = [item(c, r, (c == "good") == (r == "yes")) for c in ("good", "bad") for r in ("yes", "no")] * 30
    assert abs(words_auc(crossed, crossed, "criterion") - 0.5) < 0.01
    assert abs(words_auc(crossed, crossed, "response") - 0.5) < 0.01


def test_shortcuts_are_reported_by_kind() -> None:
    found = shortcuts([item("names oak", "oak " * 9, True), item("names oak", "elm", False)] * 5)
    assert found["k", "plain"] == (10, 1.0, 1.0)


def test_the_words_of_one_text_do_not_give_the_labels_away(train: list[Labelled], held_out: list[Labelled]) -> None:
    assert words_auc(train, held_out, "criterion") <= 0.55
    assert words_auc(train, held_out, "response") <= 0.55


def test_no_kind_is_known_by_the_length_of_the_response(train: list[Labelled]) -> None:
    natural = {entry.criterion.tags[1] for entry in train if entry.criterion.tags[0] == "length"}
    for (kind, form), (count, length, _) in shortcuts(train).items():
        if kind not in natural and count >= 60:
            assert length <= 0.6 + noise(count), (kind, form, length)


def test_shared_words_tell_little_where_a_kind_is_not_about_words(train: list[Labelled]) -> None:
    lexical = {entry.criterion.tags[1] for entry in train if entry.criterion.tags[0] in NATURAL}
    for (kind, form), (count, _, shared) in shortcuts(train).items():
        if kind not in lexical and count >= 60:
            assert shared <= 0.72 + noise(count), (kind, form, shared)
