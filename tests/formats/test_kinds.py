"""Every format in every kind of file: nothing is lost on the way there and back, on made rubrics and real."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from format_samples import RECORDS, TEXTS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_rubrics import rubrics

from rubricate.data.io import read_rows
from rubricate.data.writing import json_text
from rubricate.errors import FormatError
from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.formats import (
    convert,
    dump_rubrics,
    formats,
    get_format,
    load_rubric,
    load_rubrics,
    parse_rubric,
    rubric_from_row,
    save_rubrics,
)

# A loaded machine is no fault of the code; each example writes its own file over the last one.
relaxed = settings(
    deadline=None,
    max_examples=5,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
KINDS = ["jsonl", "json", "yaml", "toml", "csv", "tsv", "parquet", "jsonl.gz", "csv.gz"]

columns = st.dictionaries(
    st.sampled_from(["x_note", "x_count", "response", "x y", "x,z"]),
    st.sampled_from(
        [5, "5", 2.5, "2.50", True, "true", "", "null", "[1]", [1, None], {"a": None, "b": "1"}, '"q"', "é"]
    ),
    max_size=3,
)


def exact(value: object) -> str:
    """JSON text that tells values apart, but not the orders of keys."""
    return json.dumps(value, sort_keys=True)


def said(criterion: Criterion) -> dict[str, object]:
    """What a criterion asks for; HealthBench adds a tag for the channel."""
    return criterion.model_dump(exclude={"metadata", "tags"})


def plain_text(record: Mapping[str, object]) -> dict[str, object]:
    """A record without what a column of texts cannot hold in CSV."""
    return {name: part for name, part in record.items() if name != "response" or isinstance(part, str | list)}


def held(record: Mapping[str, object], name: str, kind: str) -> dict[str, object]:
    """A record as a kind of file holds it: no null in TOML, and JSON text in CSV's columns of texts."""
    if kind == "toml":
        return {field: part for field, part in record.items() if part is not None}
    if not kind.startswith(("csv", "tsv")):
        return dict(record)
    texts = [field for field in get_format(name).texts if isinstance(record.get(field), dict | list)]
    return {**record, **{field: json_text(record[field]) for field in texts}}


def there_and_back(path: Path, found: Sequence[Rubric], name: str) -> None:
    save_rubrics(found, path, name)
    again = load_rubrics(path)
    kind = path.name.removeprefix("a.")
    wanted = [held(record, name, kind) for record in dump_rubrics(found, name)]
    assert again.format == name
    assert [rubric.fingerprint for rubric in again.rubrics] == [rubric.fingerprint for rubric in found]
    assert exact(dump_rubrics(again.rubrics, name)) == exact(wanted)
    if path.suffix in (".jsonl", ".json", ".yaml"):  # tables and TOML have an order of their own
        assert list(again.rubrics) == list(found)


@pytest.mark.parametrize("kind", ["jsonl", "toml", "csv", "parquet"])
@pytest.mark.parametrize("name", [name for name in RECORDS if name != "flat"])
@relaxed
@given(more=st.lists(columns, min_size=1, max_size=3), layout=st.integers(0, 9))
def test_records_with_more_columns(
    tmp_path: Path, name: str, kind: str, more: list[dict[str, object]], layout: int
) -> None:
    record = RECORDS[name][layout % len(RECORDS[name])]
    if name == "native":
        record = {"criteria": ["Is short."]}
    records = [record | plain_text(part) for part in more]
    found = [parse_rubric(part, format=name) for part in records]
    if name != "native":  # its own layout has these columns in the metadata
        assert exact(dump_rubrics(found, name)) == exact(records)
    try:
        there_and_back(tmp_path / f"a.{kind}", found, name)
    except FormatError as error:
        assert kind == "toml" and "TOML has no null" in str(error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RECORDS)
def test_samples(tmp_path: Path, name: str, kind: str) -> None:
    found = [parse_rubric(record) for record in RECORDS[name]]
    for rubrics_ in ([*found, *found] if name != "flat" else found, found[:1]):
        there_and_back(tmp_path / f"a.{kind}", rubrics_, name)


@pytest.mark.parametrize("name", formats())
@relaxed
@given(made=st.lists(rubrics(), min_size=1, max_size=3), kind=st.sampled_from(KINDS))
def test_made_rubrics_that_a_format_can_hold(tmp_path: Path, name: str, made: list[Rubric], kind: str) -> None:
    held: list[Rubric] = []
    for rubric in made:
        try:
            dump_rubrics(rubric, name)
        except FormatError:
            continue  # it says what would be lost
        held.append(rubric)
    if not held:
        return
    path = tmp_path / f"a.{kind}"
    try:
        save_rubrics(held, path, name)
    except FormatError as error:
        assert kind == "toml" and "TOML has no null" in str(error)
        return
    again = load_rubrics(path, format=name)
    assert [[said(c) for c in rubric.criteria] for rubric in again.rubrics] == [
        [said(c) for c in rubric.criteria] for rubric in held
    ]
    for one, other in zip(again.rubrics, held, strict=True):
        assert one.id == other.id
        for part, source in zip((one, *one.criteria), (other, *other.criteria), strict=True):
            columns = {key: value for key, value in source.metadata.items() if kind != "toml" or value is not None}
            assert part.metadata.items() >= columns.items()


@pytest.mark.parametrize("kind", ["csv", "tsv"])
@pytest.mark.parametrize("name", [name for name in RECORDS if name not in ("flat", "native")])
def test_rows_of_csv_that_are_scored(tmp_path: Path, name: str, kind: str) -> None:
    found = [parse_rubric(record) for record in RECORDS[name]]
    save_rubrics(found, tmp_path / f"a.{kind}", name)
    rows = list(read_rows(tmp_path / f"a.{kind}"))
    assert [rubric_from_row(row) is not None for row in rows] == [True] * len(found)
    for row, rubric in zip(rows, found, strict=True):
        read = rubric_from_row(row)
        assert read is not None and read.fingerprint == rubric.fingerprint


def test_csv_of_other_writers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "prompt_id,prompt,rubrics,score\n"
        '007,"[{""role"": ""user"", ""content"": ""p""}]",'
        '"[{""criterion"": ""c"", ""points"": -1e1, ""tags"": [""5""]}]",1.50\n'
    )
    (rubric,) = load_rubrics(tmp_path / "a.csv").rubrics
    assert (rubric.id, rubric.criteria[0].weight, rubric.criteria[0].tags) == ("007", 10, ("5",))
    assert rubric.metadata == {"prompt": [{"role": "user", "content": "p"}], "score": "1.50"}
    (tmp_path / "b.csv").write_text('question,rubric\n5,"[{""description"": ""d"", ""weight"": NaN}]"\n')
    with pytest.raises(FormatError, match="'c1' has NaN") as caught:
        load_rubrics(tmp_path / "b.csv")
    assert (caught.value.line, caught.value.field) == (2, "rubric[0].weight")
    assert parse_rubric({"question": "5", "rubric": [{"description": "d", "weight": 1}]}).metadata == {
        "question": "5"
    }


@pytest.mark.parametrize("name", TEXTS)
def test_texts(tmp_path: Path, name: str) -> None:
    source = tmp_path / "a.txt"
    source.write_text(TEXTS[name])
    for kind in KINDS:
        convert(source, tmp_path / f"b.{kind}", to_format=name)
        assert load_rubric(tmp_path / f"b.{kind}").fingerprint == load_rubric(source).fingerprint
    if name != "prometheus":  # whose records hold objects
        convert(tmp_path / "b.jsonl", tmp_path / "c.txt", to_format=name)
        assert (tmp_path / "c.txt").read_text() == TEXTS[name]


def test_what_a_text_file_cannot_hold(tmp_path: Path) -> None:
    rubric = parse_rubric(TEXTS["rlcf"])
    path = tmp_path / "a.txt"
    with pytest.raises(FormatError, match="one rubric, not 2"):
        save_rubrics([rubric, rubric], path, "rlcf")
    with pytest.raises(FormatError, match="no form in native that is a text") as caught:
        save_rubrics(rubric, path)
    assert "openrubrics" in caught.value.hint
    row = parse_rubric({"instruction": "Why?", "rubric": TEXTS["openrubrics"]})
    with pytest.raises(FormatError, match="without instruction"):
        save_rubrics(row, path, "openrubrics")
    assert not path.exists()
    notes = save_rubrics(row, path, "openrubrics", lossy=True)
    assert [note.kind for note in notes] == ["lossy"]
    assert path.read_text() == TEXTS["openrubrics"]


def test_a_number_among_prompts_is_lost_in_csv_only_when_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rubric = parse_rubric({"prompt": 5, "rubric": [{"description": "d", "weight": 1}]})
    with pytest.raises(FormatError, match="holds texts") as caught:
        save_rubrics(rubric, path, "rar")
    assert (caught.value.line, caught.value.field, path.exists()) == (1, "prompt", False)
    notes = save_rubrics(rubric, path, "rar", lossy=True)
    assert [(note.kind, note.field) for note in notes] == [("lossy", "prompt")]
    assert load_rubric(path).metadata == {}


def test_null_in_toml_is_named(tmp_path: Path) -> None:
    rubric = parse_rubric({"criteria": [{"text": "t", "provenance": {"model": "m"}}], "metadata": {"a": [None]}})
    with pytest.raises(FormatError, match="TOML has no null") as caught:
        save_rubrics(rubric, tmp_path / "a.toml")
    assert caught.value.field == "metadata.a[0]"
    plain = rubric.model_copy(update={"metadata": {}})
    save_rubrics([plain, plain], tmp_path / "a.toml")
    assert list(load_rubrics(tmp_path / "a.toml").rubrics) == [plain, plain]


# Real files


def test_real_score_rubrics(shared: Callable[[str], Path], tmp_path: Path) -> None:
    found = load_rubrics(shared("prometheus_biggen") / "biggen_instances.json", format="prometheus").rubrics[:60]
    for kind in ("jsonl", "yaml", "csv", "parquet"):
        there_and_back(tmp_path / f"a.{kind}", found, "prometheus")
    for kind in ("csv", "toml", "parquet"):
        save_rubrics(found, tmp_path / f"b.{kind}", "flat")
        assert load_rubrics(tmp_path / f"b.{kind}").rubrics == found


def test_real_trees(shared: Callable[[str], Path], tmp_path: Path) -> None:
    files = sorted(shared("paperbench").glob("rubric_*.json"))
    assert len(files) >= 15
    for file in files[:2]:
        tree = load_rubric(file)
        for kind in ("csv", "yaml", "parquet"):
            there_and_back(tmp_path / f"a.{kind}", [tree], "paperbench")
        for kind in ("csv", "json"):
            save_rubrics(tree, tmp_path / f"b.{kind}", "flat")
            assert load_rubric(tmp_path / f"b.{kind}") == tree


def test_real_propositions(shared: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shared("openai_rbr")
    definitions = load_rubrics(folder / "proposition_prompts.yaml").rubrics
    rows = load_rubrics(folder / "test.jsonl").rubrics[:50]
    for kind in ("yaml", "csv", "parquet"):
        there_and_back(tmp_path / f"a.{kind}", definitions, "rbr")
        there_and_back(tmp_path / f"b.{kind}", rows, "rbr")
    assert get_format("rbr").losses(definitions[0]) == []
