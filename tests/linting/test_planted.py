"""Every planted fault is found by its rule, and what has no fault is left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.linting.planted import CLEAN, PLANTED, linted
from tests.linting.planting import Planted, Record

from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.rubrics.formats import parse_rubric
from rubricate.rubrics.linting import Severity, lint, rules

BY_MODELS = {"D107", "Q702", "Q704"}
"""Rules that need an embedder or a model; test_meaning.py and test_lint.py show what they find."""

RUBRICS = [parse_rubric(record, format=name) for name, record in CLEAN]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: f"{planted.code}-{planted.format}")
def test_every_planted_fault_is_found_at_its_place(planted: Planted) -> None:
    findings = linted(planted.record, planted.format)
    at = (planted.at,) if planted.at else ()
    found = [f for f in findings if f.code == planted.code and f.criterion_ids[:1] == at]
    assert found, [str(finding) for finding in findings]
    assert found[0].message and found[0].fix


def test_every_rule_has_three_faults_and_an_explanation() -> None:
    counts = Counter(planted.code for planted in PLANTED)
    for one in rules():
        assert one.code in BY_MODELS or counts[one.code] >= 3, one.code
        assert len(one.explanation.split("\n\n")) >= 2, f"{one.code} does not say why and how to mend it"
        assert "Fix: " in one.explanation or one.code == "D103", one.code
        assert one.code not in one.name


@pytest.mark.parametrize(("name", "record"), CLEAN, ids=[name for name, _ in CLEAN])
def test_rubrics_without_fault_have_no_finding(name: str, record: Record) -> None:
    assert linted(record, name) == []


# Faults made by machine out of rubrics without fault


def mutated(rubric: Rubric, at: int, **fields: object) -> Rubric:
    """The rubric with fields of one criterion changed."""
    criteria = list(rubric.criteria)
    criteria[at] = criteria[at].model_copy(update=fields)
    return rubric.model_copy(update={"criteria": tuple(criteria)})


def codes(rubric: Rubric, criterion: str | None = None) -> set[str]:
    """Codes of all findings, or of those about one criterion."""
    found = lint(rubric)
    return {f.code for f in found if criterion is None or criterion in f.criterion_ids[:1]}


@st.composite
def picked(draw: st.DrawFn) -> tuple[Rubric, int]:
    """A rubric without fault, and the place of one of its criteria."""
    rubric = draw(st.sampled_from(RUBRICS))
    return rubric, draw(st.integers(0, len(rubric) - 1))


def padded(text: str) -> str:
    """The text with other white space and another full stop."""
    return f"  {text.rstrip('.')} !"


@given(picked(), st.sampled_from([str.upper, str.swapcase, padded]))
def test_a_copy_in_another_spelling_is_a_duplicate(
    chosen: tuple[Rubric, int], respell: Callable[[str], str]
) -> None:
    rubric, at = chosen
    copy = rubric.criteria[at].model_copy(update={"id": "copy", "text": respell(rubric.criteria[at].text)})
    twice = rubric.model_copy(update={"criteria": (*rubric.criteria, copy)})
    assert "D101" in codes(twice, "copy")


@given(picked())
def test_the_same_text_with_the_other_sign_is_a_contradiction(chosen: tuple[Rubric, int]) -> None:
    rubric, at = chosen
    one = rubric.criteria[at]
    other = Polarity.REWARD if one.polarity is Polarity.PENALTY else Polarity.PENALTY
    copy = one.model_copy(update={"id": "copy", "polarity": other})
    assert "D104" in codes(rubric.model_copy(update={"criteria": (*rubric.criteria, copy)}), "copy")


@given(picked(), st.sampled_from(["TODO", "{{topic}}", "[insert fact]", "lorem ipsum"]), st.booleans())
def test_a_placeholder_anywhere_is_found(chosen: tuple[Rubric, int], placeholder: str, before: bool) -> None:
    rubric, at = chosen
    one = rubric.criteria[at]
    text = f"{placeholder} {one.text}" if before else f"{one.text} {placeholder}"
    assert "C506" in codes(mutated(rubric, at, text=text), one.id)


@given(st.sampled_from([rubric for rubric in RUBRICS if not rubric.groups]), st.data())
def test_weights_that_cannot_work_are_found(rubric: Rubric, data: st.DataObject) -> None:
    idle = [c.model_copy(update={"weight": 0.0}) for c in rubric.criteria]
    assert "W302" in codes(rubric.model_copy(update={"criteria": tuple(idle)}))
    bad = [c.model_copy(update={"polarity": Polarity.PENALTY, "weight": 1.0}) for c in rubric.criteria]
    assert "W301" in codes(rubric.model_copy(update={"criteria": tuple(bad)}))
    at = data.draw(st.integers(0, len(rubric) - 1))
    heavy = data.draw(st.floats(2000.0, 1e9))
    assert "W303" in codes(mutated(rubric, at, weight=heavy), rubric.criteria[at].id)


@given(st.integers(0, 500), st.integers(1, 500), st.sampled_from(["words", "sentences", "lines", "paragraphs"]))
def test_two_verifiers_conflict_where_their_ranges_do_not_meet(least: int, more: int, unit: str) -> None:
    low = Criterion.model_validate(
        {"id": "a", "text": "The text is not long.", "verifier": {"name": unit, "args": {"max": least}}}
    )
    high = low.model_copy(
        update={
            "id": "b",
            "verifier": low.verifier and low.verifier.model_copy(update={"args": {"min": least + more}}),
        }
    )
    assert "V603" in {f.code for f in lint(Rubric(criteria=(low, high)))}
    meets = high.model_copy(
        update={"verifier": low.verifier and low.verifier.model_copy(update={"args": {"min": least}})}
    )
    assert "V603" not in {f.code for f in lint(Rubric(criteria=(low, meets)))}


@given(st.integers(2, 400), st.integers(1, 400))
def test_a_verifier_must_check_the_number_that_the_text_states(stated: int, off: int) -> None:
    spec = {"name": "words", "args": {"max": stated}}
    fits = Criterion.model_validate({"id": "a", "text": f"It has at most {stated} words.", "verifier": spec})
    differs = fits.model_copy(update={"text": f"It has at most {stated + off + 1} words."})
    assert "V604" not in codes(Rubric(criteria=(fits,)))
    assert "V604" in codes(Rubric(criteria=(differs,)))


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_no_text_breaks_the_linter(first: str, second: str) -> None:
    pair = Rubric(
        criteria=(Criterion(id="a", text=first), Criterion(id="b", text=second)), metadata={"prompt": first}
    )
    for finding in lint(pair):
        assert finding.severity in Severity and finding.message and finding.fix
