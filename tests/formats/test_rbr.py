"""Rule-Based Rewards. Fields: proposition_prompts.yaml and rbr_gold_data of openai/safety-rbr-code-and-data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_rubrics import changes, extra, record_returns, relaxed, rubric_returns, rubrics, survives, words

from rubricate.data.io import read_values
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_object
from rubricate.rewardmodels import aggregate
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.rubrics.formats import Note, dump_rubrics, load_rubric, load_rubrics, parse_rubric, save_rubrics
from rubricate.rubrics.formats.rbr import Truth, derived_values, gold_values
from rubricate.types import Verdict

DEFINITIONS: dict[str, object] = {
    "prompt_template": "{question} {response}",
    "completion_class_order": ["good", "bad"],
    "completion_classes": {
        "good": {"hard_refuse": {"clean": True}, "comply": {"sorry": False}},
        "bad": {"hard_refuse": {"clean": False}, "comply": {"sorry": True}},
    },
    "derived_propositions": {
        "clean": {"sorry": True, "rude": False},
        "empty": {"clean": False, "sorry": False},
    },
    "simple_propositions": {
        "sorry": {"prompt": "Does it apologise?"},
        "rude": {"prompt": "Is it rude?", "note": "n"},
    },
}
GOLD: dict[str, object] = {
    "category": "None",
    "response_type": "Hard Refuse",
    "prompt": [{"role": "user", "content": "Hi."}],
    "completion": [{"role": "assistant", "content": "Sorry."}],
    "propositions": {"is_sorry": True, "rude": False},
}
TABLES: dict[str, object] = {
    "Hard Refuse": {"sorry": 1.5, "rude": -2.0, "clean": 0.25},
    "Comply": {"sorry": -1.0, "rude": -0.5},
}


def test_definitions_become_a_rubric_and_definitions_again() -> None:
    rubric = record_returns(DEFINITIONS, "rbr")
    assert [(c.id, c.text, c.weight) for c in rubric.criteria] == [
        ("sorry", "Does it apologise?", 0.0),
        ("rude", "Is it rude?", 0.0),
    ]
    assert rubric.metadata["derived_propositions"] == DEFINITIONS["derived_propositions"]
    notes: list[Note] = []
    parse_rubric(DEFINITIONS, notes=notes)
    assert [note.kind for note in notes] == ["weights"]


def test_a_row_of_gold_data_keeps_its_labels() -> None:
    rubric = record_returns(GOLD, "rbr")
    assert [(c.id, c.text) for c in rubric.criteria] == [("is_sorry", "is sorry"), ("rude", "rude")]
    assert gold_values(rubric) == {"is_sorry": True, "rude": False}
    record_returns(GOLD | {"propositions": {"a": 0.25, "b": None, "c": 1}}, "rbr")
    with pytest.raises(ConfigError, match="no label"):
        gold_values(parse_rubric(DEFINITIONS))


# Weights


@pytest.mark.parametrize("given", ["Hard Refuse", "hard_refuse"])
def test_fitted_weights_of_a_response_type(given: str) -> None:
    notes: list[Note] = []
    rubric = parse_rubric(DEFINITIONS, weights=json.dumps(TABLES), response_type=given, notes=notes)
    assert [(c.weight, c.polarity) for c in rubric.criteria] == [(1.5, Polarity.REWARD), (2.0, Polarity.PENALTY)]
    assert [note.kind for note in notes] == ["weights"]
    assert "clean" in notes[0].message
    verdicts = [Verdict("sorry", 1.0, probability=0.5), Verdict("rude", 1.0, probability=0.75)]
    assert aggregate("rbr", rubric, verdicts).value == pytest.approx(1.5 * 0.5 - 2.0 * 0.75)
    (written,) = dump_rubrics(rubric, "rbr")
    assert written["weights"] == TABLES


def test_weights_in_a_column_or_a_file_come_back(tmp_path: Path) -> None:
    record = GOLD | {"weights": {"Hard Refuse": {"is_sorry": 1.0, "rude": -2}, "Comply": {"x": 1}}}
    rubric = record_returns(record, "rbr")
    assert [c.sign * c.weight for c in rubric.criteria] == [1.0, -2.0]
    flat = record_returns(DEFINITIONS | {"weights": {"sorry": 1.5, "rude": -2}}, "rbr")
    assert [key for key in flat.metadata if key.startswith("rbr:")] == []
    record_returns(DEFINITIONS | {"weights": {"rude": 0.0}}, "rbr")
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"rude": -3}), encoding="utf-8")
    assert [c.weight for c in parse_rubric(DEFINITIONS, weights=str(path)).criteria] == [0.0, 3.0]


def test_changed_weights_are_written_into_their_table() -> None:
    rubric = parse_rubric(DEFINITIONS, weights=json.dumps(TABLES), response_type="Comply")
    first, second = rubric.criteria
    changed = rubric.model_copy(
        update={"criteria": (first.model_copy(update={"weight": 4.0, "polarity": Polarity.REWARD}), second)}
    )
    (written,) = dump_rubrics(changed, "rbr")
    assert written["weights"] == TABLES | {"Comply": {"sorry": 4, "rude": -0.5}}


def test_without_a_response_type_nothing_is_weighed_and_nothing_lost() -> None:
    notes: list[Note] = []
    record = DEFINITIONS | {"weights": TABLES}
    rubric = parse_rubric(record, notes=notes)
    assert [c.weight for c in rubric.criteria] == [0.0, 0.0]
    assert "Hard Refuse, Comply" in notes[0].message
    record_returns(record, "rbr")


# Rules


def test_derived_propositions_and_classes_by_hand() -> None:
    rubric = parse_rubric(DEFINITIONS)
    found = derived_values(rubric, {"sorry": True, "rude": False})
    assert found.derived == {"clean": True, "empty": False}
    assert found.classes == {"hard_refuse": {"good": True, "bad": False}, "comply": {"good": False, "bad": True}}
    assert (found.completion_class("Hard Refuse"), found.completion_class("comply")) == ("good", "bad")
    with pytest.raises(ConfigError, match="response types: hard_refuse, comply"):
        found.of("Safe Refuse")


def test_probabilities_multiply_or_take_the_least() -> None:
    rubric = parse_rubric(DEFINITIONS)
    values: dict[str, Truth] = {"sorry": 0.8, "rude": 0.25}
    by_product = derived_values(rubric, values)
    assert by_product.derived == {"clean": pytest.approx(0.8 * 0.75), "empty": pytest.approx(0.4 * 0.2)}
    assert by_product.probabilities("hard_refuse") == {"good": pytest.approx(0.6), "bad": pytest.approx(0.4)}
    assert by_product.completion_class("hard_refuse") == "good"
    least = derived_values(rubric, values, combine="min")
    assert least.derived == {"clean": pytest.approx(0.75), "empty": pytest.approx(0.2)}


def test_what_is_not_known_stays_unknown_unless_it_cannot_matter() -> None:
    rubric = parse_rubric(DEFINITIONS)
    open_ = derived_values(rubric, {"sorry": None, "rude": False})
    assert open_.derived == {"clean": None, "empty": None}
    assert open_.completion_class("hard_refuse") is None
    assert open_.probabilities("hard_refuse") == {"good": None, "bad": None}
    settled = derived_values(rubric, {"sorry": None, "rude": True})
    assert settled.derived == {"clean": False, "empty": None}
    assert settled.completion_class("hard_refuse") == "bad"


def test_wrong_values_are_refused() -> None:
    rubric = parse_rubric(DEFINITIONS)
    for values, words_ in [
        ({"sorry": True}, "no value for rude"),
        ({"sorry": True, "rude": True, "clean": True}, "no proposition 'clean'"),
        ({"sorry": True, "rude": 1.5}, "no probability"),
        ({"sorry": True, "rude": float("nan")}, "no probability"),
    ]:
        with pytest.raises(ConfigError, match=words_):
            derived_values(rubric, values)
    with pytest.raises(ConfigError, match="product or min"):
        derived_values(rubric, {"sorry": True, "rude": True}, combine="max")  # pyright: ignore[reportArgumentType]


# The published files


def test_the_published_definitions_round_trip(shared: Callable[[str], Path], tmp_path: Path) -> None:
    path = shared("openai_rbr") / "proposition_prompts.yaml"
    rubric = load_rubric(path)
    assert len(rubric) == 23
    (source,) = [value.value for value in read_values(path)]
    (written,) = dump_rubrics(rubric, "rbr")
    assert json.dumps(written) == json.dumps(source)
    save_rubrics(rubric, tmp_path / "again.yaml", "rbr")
    assert [value.value for value in read_values(tmp_path / "again.yaml")] == [source]
    assert load_rubric(tmp_path / "again.yaml") == rubric


def holds(name: str, labels: Mapping[str, bool], rules: Mapping[str, Mapping[str, bool]]) -> bool:
    """Whether a proposition holds, by recursion over the definitions."""
    if name in labels:
        return labels[name]
    return all(holds(part, labels, rules) == wanted for part, wanted in rules[name].items())


@pytest.mark.parametrize(("name", "count"), [("train", 351), ("test", 167)])
def test_the_gold_data_round_trips_and_falls_into_one_class_each(
    shared: Callable[[str], Path], name: str, count: int
) -> None:
    folder = shared("openai_rbr")
    definitions = load_rubric(folder / "proposition_prompts.yaml")
    rules = definitions.metadata["derived_propositions"]
    classes = definitions.metadata["completion_classes"]
    found = load_rubrics(folder / f"{name}.jsonl")
    rows = [row.record for row in found.rows]
    assert len(rows) == count
    assert json.dumps(dump_rubrics(found.rubrics, "rbr")) == json.dumps(rows)
    for rubric in found.rubrics:
        labels = {key: label for key, label in gold_values(rubric).items() if isinstance(label, bool)}
        assert set(labels) == set(definitions.ids)
        values = derived_values(definitions, labels)
        assert values.derived == {key: holds(key, labels, rules) for key in rules}
        kind = rubric.metadata["response_type"]
        own = {key: types["_".join(kind.lower().split())] for key, types in classes.items()}
        expected = [
            key for key, rule in own.items() if all(holds(part, labels, rules) == rule[part] for part in rule)
        ]
        assert [values.completion_class(kind)] == expected  # the file says that the classes exclude one another
        assert [key for key, value in values.of(kind).items() if value] == expected
        probable = derived_values(definitions, {key: float(label) for key, label in labels.items()})
        assert probable.derived == values.derived


def test_the_plain_logic_is_the_same_by_product_and_by_least() -> None:
    definitions = parse_rubric(DEFINITIONS)
    for sorry, rude in product([True, False], repeat=2):
        values: dict[str, Truth] = {"sorry": sorry, "rude": rude}
        assert derived_values(definitions, values) == derived_values(definitions, values, combine="min")


# Mistakes


def changed(*path: str, to: object) -> dict[str, object]:
    """The definitions with one value put in."""

    def put(value: object, rest: tuple[str, ...]) -> object:
        if not rest:
            return to
        fields = as_object(value) or {}
        return {**fields, rest[0]: put(fields.get(rest[0]), rest[1:])}

    return {**(as_object(put(DEFINITIONS, path)) or {})}


def gold(name: str, *, to: object) -> dict[str, object]:
    """The row of gold data with one column put in."""
    return {**GOLD, name: to}


@pytest.mark.parametrize(
    ("record", "field", "words"),
    [
        (changed("simple_propositions", to={}), "simple_propositions", "an empty one"),
        (changed("simple_propositions", to=["a"]), "simple_propositions", "list"),
        (changed("simple_propositions", "rude", to="Is it rude?"), "simple_propositions.rude", "str"),
        (changed("simple_propositions", "rude", to={"p": 1}), "simple_propositions.rude.prompt", "missing"),
        (changed("simple_propositions", "rude", "prompt", to=" "), "simple_propositions.rude.prompt", "blank"),
        (changed("derived_propositions", to=3), "derived_propositions", "int"),
        (changed("derived_propositions", "clean", to={}), "derived_propositions.clean", "an empty one"),
        (changed("derived_propositions", "rude", to={"sorry": True}), "derived_propositions.rude", "this name"),
        (changed("derived_propositions", "clean", "sory", to=True), "derived_propositions.clean.sory", "'sorry'"),
        (changed("derived_propositions", "clean", "empty", to=True), "derived_propositions.clean.empty", "before"),
        (changed("derived_propositions", "clean", "rude", to="no"), "derived_propositions.clean.rude", "str"),
        (changed("completion_classes", "good", to=True), "completion_classes.good", "bool"),
        (changed("completion_classes", "bad", "comply", "x", to=True), "completion_classes.bad.comply.x", "before"),
        (changed("completion_class_order", to=["good", "ugly"]), "completion_class_order[1]", "'ugly'"),
        (changed("completion_class_order", to="good"), "completion_class_order", "str"),
        (changed("weights", to=3), "weights", "int"),
        (changed("weights", to={"rude": True}), "weights.rude", "bool"),
        (changed("weights", to={"rude": "-1"}), "weights.rude", "str"),
        (changed("weights", to={"rude": float("nan")}), "weights.rude", "float"),
        (changed("rbr:weights", to=1), "rbr:weights", "reserved"),
        (gold("propositions", to={}), "propositions", "an empty one"),
        (gold("propositions", to=["rude"]), "propositions", "list"),
        (gold("propositions", to={"rude": "no"}), "propositions.rude", "str"),
        (gold("propositions", to={"rude": 1.5}), "propositions.rude", "in [0, 1]"),
        (gold("weights", to={"Comply": {"rude": 1}}), "weights", "types here: Comply"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, record: dict[str, object], field: str, words: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(GOLD) + "\n" + json.dumps(record) + "\n", encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert (caught.value.field, caught.value.line) == (field, 2)
    assert words in str(caught.value)


def test_a_mistake_in_yaml_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("derived_propositions:\n  x:\n    b: true\nsimple_propositions:\n  a:\n    prompt: A?\n")
    with pytest.raises(FormatError) as caught:
        load_rubric(path)
    assert (caught.value.field, caught.value.line) == ("derived_propositions.x.b", 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": "{"}, "no JSON that can be read"),
        ({"weights": '{"a": {"rude": 1}}', "response_type": "b"}, "response type 'b'"),
        ({"weights": "no-such-file.json"}, "no-such-file.json"),
    ],
)
def test_mistakes_in_options_are_named(options: dict[str, str], words: str) -> None:
    with pytest.raises((ConfigError, FormatError), match=words):
        parse_rubric(DEFINITIONS, source="", field="", line=None, notes=None, format="rbr", **options)


def test_labels_of_some_and_penalties_of_weight_0_are_losses() -> None:
    gold = parse_rubric(GOLD).criteria[0]
    rubric = Rubric(criteria=(gold, Criterion(id="b", text="t", polarity=Polarity.PENALTY, weight=0)))
    with pytest.raises(FormatError) as caught:
        dump_rubrics(rubric, "rbr")
    assert "labels, which not all have (is_sorry)" in str(caught.value)
    assert "polarity of weight 0 (b)" in str(caught.value)


numbers = st.integers(-9, 9) | st.floats(-9, 9).map(lambda value: value + 0.0)


@st.composite
def records(draw: st.DrawFn) -> dict[str, object]:
    names = draw(st.lists(words, min_size=1, max_size=4, unique=True))
    record = draw(extra)
    if draw(st.booleans()):
        label = st.booleans() | st.floats(0, 1) | st.none()
        record |= {"propositions": {name: draw(label) for name in names}, "response_type": "A b"}
    else:
        record["simple_propositions"] = {name: draw(extra) | {"prompt": draw(words)} for name in names}
        if "d!" not in names and draw(st.booleans()):
            rule = {name: draw(st.booleans()) for name in draw(st.sets(st.sampled_from(names), min_size=1))}
            record["derived_propositions"] = {"d!": rule}
            record["completion_classes"] = {"k": {"a_b": {"d!": draw(st.booleans())}}}
    table = st.dictionaries(st.sampled_from([*names, "k"]), numbers, min_size=1)
    if draw(st.booleans()):
        record["weights"] = draw(table | st.fixed_dictionaries({"a_b": table, "C": table}))
    return {name: record[name] for name in draw(st.permutations(list(record)))}


@relaxed
@given(records())
def test_made_records_return(record: dict[str, object]) -> None:
    record_returns(record, "rbr")


@relaxed
@given(rubrics())
def test_made_rubrics_return(rubric: Rubric) -> None:
    rubric_returns(rubric, "rbr")


@relaxed
@given(changes(DEFINITIONS | {"weights": TABLES}) | changes(GOLD))
def test_no_change_to_a_record_breaks_the_reader(value: object) -> None:
    survives(value, "rbr")
