"""The bundled data: complete, in three languages, and right where code can tell."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from rubricate.data.bundled import SAMPLES, Sample, load_demo, sample_file
from rubricate.data.io import read_rollouts, read_rows
from rubricate.errors import ConfigError
from rubricate.judges.verifiers import Input, run_verifier
from rubricate.rubrics import CriterionKind, Polarity, Rubric
from rubricate.rubrics.formats import load_rubric, parse_rubric

DEMO = load_demo()


def rubric_of(sample: Sample) -> Rubric:
    return parse_rubric(sample.rubric)


RUBRICS = {rubric.id: rubric for rubric in map(rubric_of, DEMO)}


def test_there_are_enough_prompts_responses_and_languages() -> None:
    assert len(RUBRICS) >= 24
    assert len(DEMO) >= 72
    prompts = Counter(language for _, language in {(rubric_of(s).id, s.language) for s in DEMO})
    assert prompts["en"] >= 14 and prompts["de"] >= 5 and prompts["ja"] >= 5
    responses = Counter(rubric_of(sample).id for sample in DEMO)
    assert min(responses.values()) >= 3


def test_ids_and_responses_are_unique() -> None:
    assert len({sample.rollout.id for sample in DEMO}) == len(DEMO)
    assert len({sample.rollout.response for sample in DEMO}) == len(DEMO)


@pytest.mark.parametrize("sample", DEMO, ids=lambda sample: sample.rollout.id)
def test_every_criterion_has_a_gold_label(sample: Sample) -> None:
    assert set(sample.gold) == set(rubric_of(sample).ids)


def test_rubrics_mix_what_code_and_what_a_model_decides() -> None:
    for rubric in RUBRICS.values():
        kinds = {criterion.kind for criterion in rubric.criteria}
        assert kinds == {CriterionKind.HARD_RULE, CriterionKind.PRINCIPLE}, rubric.id
        for criterion in rubric.criteria:
            assert (criterion.verifier is not None) == (criterion.kind is CriterionKind.HARD_RULE), criterion.id
            assert criterion.channel in ("format", "content", "style", "safety")
        assert any(criterion.weight != 1 for criterion in rubric.criteria)


def test_there_are_two_vetoes_decided_by_code_and_each_fires() -> None:
    vetoes = [(rubric.id, c) for rubric in RUBRICS.values() for c in rubric.criteria if c.veto]
    assert len(vetoes) == 2
    assert all(criterion.verifier is not None for _, criterion in vetoes)
    for name, criterion in vetoes:
        adverse = criterion.polarity is Polarity.PENALTY
        labels = [sample.gold[criterion.id] for sample in DEMO if rubric_of(sample).id == name]
        assert adverse in labels and (not adverse) in labels


def test_gold_labels_of_principles_are_balanced() -> None:
    labels = Counter(
        sample.gold[criterion.id]
        for sample in DEMO
        for criterion in rubric_of(sample).criteria
        if criterion.verifier is None
    )
    assert 0.4 <= labels[True] / labels.total() <= 0.6
    assert labels.total() >= 200


@pytest.mark.parametrize("sample", DEMO, ids=lambda sample: sample.rollout.id)
def test_gold_labels_of_hard_rules_are_what_the_verifiers_find(sample: Sample) -> None:
    rollout = sample.rollout
    assert isinstance(rollout.response, str) and isinstance(rollout.prompt, str)
    given = Input(rollout.response, rollout.prompt, rollout.reference)
    for criterion in rubric_of(sample).criteria:
        if criterion.verifier is not None:
            check = run_verifier(criterion.verifier.name, criterion.verifier.args, given)
            assert check.met is sample.gold[criterion.id], f"{criterion.id}: {check.reason}"


def test_responses_are_of_plainly_different_quality() -> None:
    """Within each prompt the share of gold labels on the good side differs by a half or more."""
    shares: dict[str, list[float]] = {}
    for sample in DEMO:
        rubric = rubric_of(sample)
        good = [sample.gold[c.id] == (c.polarity is Polarity.REWARD) for c in rubric.criteria]
        shares.setdefault(rubric.id, []).append(sum(good) / len(good))
    for name, values in shares.items():
        assert max(values) == 1.0 and max(values) - min(values) >= 0.4, (name, values)


def test_texts_are_of_the_length_of_real_ones() -> None:
    for sample in DEMO:
        response = str(sample.rollout.response)
        size = len(response) / 2 if sample.language == "ja" else len(re.findall(r"\S+", response))
        assert 8 <= size <= 150, sample.rollout.id


def test_the_quickstart_files_go_together() -> None:
    with sample_file("quickstart.jsonl") as data, sample_file("quickstart-rubric.json") as rubric:
        assert 6 <= sum(len(rollouts) for _, rollouts in read_rollouts(data)) <= 10
        assert len(load_rubric(rubric)) >= 3


@pytest.mark.parametrize("name", [name for name in SAMPLES if name.endswith(".jsonl")])
def test_every_line_is_an_object(name: str) -> None:
    with sample_file(name) as path:
        assert all(row.record for row in read_rows(path))


def test_an_unknown_file_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught, sample_file("other.jsonl"):
        pass
    assert "demo.jsonl" in caught.value.hint
