"""Readers: every kind of file gives the same rows, and every bad line is named."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubricate.data.io import find_line, read_rows, read_values, write_jsonl, write_parquet, write_yaml
from rubricate.data.jsontext import JsonLines, split_json
from rubricate.data.values import field_name
from rubricate.errors import FormatError, MissingExtraError

# A loaded machine is no fault of the code.
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

RECORDS: list[dict[str, object]] = [
    {"id": "a", "prompt": "Was ist 2+2?", "response": "vier", "n": 1, "x": 0.5, "ok": True, "none": None},
    {
        "id": "b",
        "prompt": "日本の首都は?",
        "response": "東京\u2028です",
        "n": 2,
        "x": 1.5,
        "ok": False,
        "none": None,
    },
]

Write = Callable[[Path], object]


def _bom(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + "".join(json.dumps(record) + "\r\n" for record in RECORDS).encode())


def _gz(path: Path) -> None:
    path.write_bytes(gzip.compress(b"\n".join(json.dumps(record).encode() for record in RECORDS)))


WRITERS: dict[str, Write] = {
    "rows.jsonl": lambda path: write_jsonl(path, RECORDS),
    "rows.ndjson": _bom,
    "rows.jsonl.gz": _gz,
    "rows.json": lambda path: path.write_text(json.dumps(RECORDS, indent=1), encoding="utf-8"),
    "rows.yaml": lambda path: write_yaml(path, RECORDS),
    "rows.parquet": lambda path: write_parquet(path, RECORDS),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_gives_the_same_records(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    rows = list(read_rows(tmp_path / name))
    assert [row.record for row in rows] == RECORDS
    assert all(row.source == str(tmp_path / name) for row in rows)


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n\n  \n{"a": 2}')
    (tmp_path / "a.json").write_text('[\n {"a": 1},\n {"a":\n  2}, {"a": 3}\n]')
    (tmp_path / "a.yaml").write_text("# first\n- a: 1\n- a:\n    2\n---\na: 3\n")
    (tmp_path / "a.csv").write_text('a,b\n1,"two\nlines"\n3,4\n')
    assert [row.line for row in read_rows(tmp_path / "a.jsonl")] == [1, 4]
    assert [row.line for row in read_rows(tmp_path / "a.json")] == [2, 3, 4]
    assert [row.line for row in read_rows(tmp_path / "a.yaml")] == [2, 3, 6]
    rows = list(read_rows(tmp_path / "a.csv"))
    assert [(row.line, row.record) for row in rows] == [
        (3, {"a": "1", "b": "two\nlines"}),
        (4, {"a": "3", "b": "4"}),
    ]


def test_json_lines_are_read_one_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": 2}\nbroken\n')
    rows = read_rows(tmp_path / "a.jsonl")
    assert [next(rows).record, next(rows).record] == [{"a": 1}, {"a": 2}]
    with pytest.raises(FormatError, match=":3: not valid JSON"):
        next(rows)


@pytest.mark.parametrize(
    ("name", "content", "line", "field", "words"),
    [
        ("a.jsonl", b'{"a": 1}\n{"a": }\n', 2, "", "not valid JSON"),
        ("a.jsonl", b'{"a": 1}\n{"a": "cut o', 2, "", "cut off while being written"),
        ("a.jsonl", b'{"a": 1}\n[1, 2]\n', 2, "", "expected an object"),
        ("a.jsonl", b'{"a": 1}\n{"b": [0, NaN]}\n', 2, "b[1]", "NaN"),
        ("a.jsonl", b'{"b": {"c": -Infinity}}\n', 1, "b.c", "-Infinity"),
        ("a.jsonl", b'{"a": 1}\n{"a": 1e999}\n', 2, "a", "Infinity"),
        ("a.jsonl", b'{"a": 1}\n{"b": 1, "b": 2}\n', 2, "b", "occurs twice"),
        ("a.jsonl", b'{"a": 1}\n{"a": "\xff"}\n', 2, "", "not UTF-8"),
        ("a.jsonl", '{"a": 1}\n'.encode("utf-16"), 1, "", "UTF-16"),
        ("a.jsonl", gzip.compress(b'{"a": 1}\n'), 1, "", "ending .gz"),
        ("a.jsonl", b'{\n "a": 1\n}\n', 1, "", "belongs in a .json file"),
        ("a.jsonl", b"[" * 100_000 + b"\n", 1, "", "nested too deeply"),
        ("a.jsonl", b'{"a": ' + b"9" * 5000 + b"}\n", 1, "", "digits"),
        ("a.jsonl", b"", None, "", "no rows"),
        ("a.jsonl", b"\n\n", None, "", "no rows"),
        ("a.json", b"[]", None, "", "no rows"),
        ("a.json", b'{"a": 1}\n{"a": 2}\n', 2, "", "name the file .jsonl"),
        ("a.json", b'[{"a": 1},\n {"a": 2}\n {"a": 3}]', 3, "", "not valid JSON"),
        ("a.json", b'[{"a": 1},\n]', 1, "", "trailing comma"),
        ("a.json", b"[{'a': 1}]", 1, "", "double quotes"),
        ("a.json", b'[{"a": 1},\n {"a": {"b": NaN}}]', 2, "a.b", "NaN"),
        ("a.json", b'[{"a": 1},\n {"a": 1, "a": 2}]', 2, "a", "occurs twice"),
        ("a.json", b'[{"a": 1},\n "text"]', 2, "", "expected an object"),
        ("a.json", b'[{"a": 1}', 1, "", "not valid JSON"),
        ("a.yaml", b"- a: 1\n- b: 2\n  b: 3\n", 3, "[1].b", "occurs twice"),
        ("a.yaml", b"- a: 1\n- a:\n  - .nan\n", 3, "[1].a[0]", "NaN"),
        ("a.yaml", b"a: 1\nyes: 2\n", 2, "", "a key must be text"),
        ("a.yaml", b"a: 1\nb: !!python/name:os.system x\n", 2, "b", "not allowed"),
        ("a.yaml", b"a: 1\nb: &b [*b]\n", 2, "b[0]", "contains itself"),
        ("a.yaml", b"a: &a\n  <<: *a\n", 1, "a", "contains itself"),
        ("a.yaml", b"a: 1\n\tb: 2\n", 2, "", "not valid YAML"),
        ("a.yaml", b"a: one: two\n", 1, "", "in quotes"),
        ("a.yaml", b"a: !!int x\n", 1, "a", "cannot be read as int"),
        ("a.yaml", b"[" * 5000, 1, "", "not valid YAML"),
        ("a.csv", b"a,b\n1\n", 2, "", "1 cells"),
        ("a.csv", b"a,a\n1,2\n", 1, "a", "two columns"),
        ("a.csv", b"a,\n1,2\n", 1, "", "no name"),
        ("a.csv", b'a\n"1" x\n', 2, "", "not valid CSV"),
        ("a.parquet", b"PAR1 not really", None, "", "not readable as Parquet"),
        ("a.jsonl.gz", b"plain", 1, "", "cannot be read further"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_field(
    tmp_path: Path, name: str, content: bytes, line: int | None, field: str, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError) as caught:
        list(read_rows(tmp_path / name))
    assert (caught.value.source, caught.value.line, caught.value.field) == (str(tmp_path / name), line, field)
    assert words in str(caught.value)


def test_a_compressed_file_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n' * 999)[:-9])
    with pytest.raises(FormatError, match="cannot be read further"):
        list(read_rows(tmp_path / "a.jsonl.gz"))


def test_a_bomb_of_yaml_aliases_is_refused(tmp_path: Path) -> None:
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9))
    (tmp_path / "bomb.yaml").write_text(f"l0: &l0 [x]\n{levels}\n")
    with pytest.raises(FormatError, match="aliases"):
        list(read_rows(tmp_path / "bomb.yaml"))


def test_yaml_dates_stay_text_and_merge_keys_work(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("base: &base {weight: 2, day: 2024-01-02}\nitem: {<<: *base, weight: 3}\n")
    (row,) = read_rows(tmp_path / "a.yaml")
    assert row.record["item"] == {"weight": 3, "day": "2024-01-02"}


def test_files_that_cannot_be_opened_are_refused_at_the_call(tmp_path: Path) -> None:
    (tmp_path / "responses.jsonl").write_text("{}")
    with pytest.raises(FormatError, match=r"did you mean responses\.jsonl"):
        read_rows(tmp_path / "response.jsonl")
    with pytest.raises(FormatError, match="folder"):
        read_rows(tmp_path, kind="jsonl")
    with pytest.raises(FormatError, match="known endings"):
        read_rows(tmp_path / "responses.docx")
    (tmp_path / "responses.txt").write_text("{}")
    with pytest.raises(FormatError, match="one text"):
        list(read_rows(tmp_path / "responses.txt"))
    assert [row.record for row in read_rows(tmp_path / "responses.jsonl", kind="json")] == [{}]


def test_a_file_without_rows_can_be_allowed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    assert list(read_rows(tmp_path / "a.jsonl", allow_empty=True)) == []


def test_parquet_values_that_json_lacks(tmp_path: Path) -> None:
    import datetime
    import decimal

    day = datetime.datetime(2024, 1, 2, 3, 4)
    write_parquet(tmp_path / "a.parquet", [{"day": day, "n": decimal.Decimal("12")}])
    (row,) = read_rows(tmp_path / "a.parquet")
    assert row.record == {"day": "2024-01-02T03:04:00", "n": 12}
    write_parquet(tmp_path / "b.parquet", [{"x": [1.0]}, {"x": [0.0, float("nan")]}])
    with pytest.raises(FormatError, match="NaN") as caught:
        list(read_rows(tmp_path / "b.parquet"))
    assert (caught.value.line, caught.value.field) == (2, "x[1]")
    write_parquet(tmp_path / "c.parquet", [{"raw": b"bytes"}])
    with pytest.raises(FormatError, match="type bytes"):
        list(read_rows(tmp_path / "c.parquet"))


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"")
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"rubricate\[parquet\]"):
        list(read_rows(tmp_path / "a.parquet"))


def test_the_line_of_a_field_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[\n {"a": 1},\n {"b": {"x": [1,\n 2,\n {"c": "}]"}]},\n  "d": 4}\n]')
    (tmp_path / "a.yaml").write_text("- a: 1\n- b:\n    x:\n    - 1\n    - 2\n    - c: 3\n  d: 4\n")
    for name, base in (("a.json", [1]), ("a.yaml", [0, 1])):
        lines = [
            find_line(tmp_path / name, [*base, *path])
            for path in ([], ["b"], ["b", "x", 1], ["b", "x", 2, "c"], ["d"], ["b", "missing"])
        ]
        assert lines == ([3, 3, 4, 5, 6, 3] if name == "a.json" else [2, 3, 5, 6, 7, 3])
    assert find_line(tmp_path / "a.jsonl", []) is None


def test_field_names_read_like_code() -> None:
    assert field_name(("criteria", 3, "weight")) == "criteria[3].weight"
    assert field_name((0, "a", 1, 2)) == "[0].a[1][2]"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@relaxed
@given(st.lists(json_values, max_size=5), st.sampled_from([None, 1]))
def test_a_json_list_splits_into_its_elements(values: list[object], indent: int | None) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    found = list(split_json(text))
    assert [value for _, value, _ in found] == values
    lines = JsonLines(text)
    assert [lines.line(place) for _, _, place in found] == [line for line, _, _ in found]


@relaxed
@given(st.text(max_size=60) | st.text(alphabet='[]{}",:1eNa\n -', max_size=40))
def test_any_text_gives_values_or_a_format_error(text: str) -> None:
    from rubricate.data.yamltext import split_yaml

    for split in (split_json, split_yaml):
        try:
            list(split(text))
        except FormatError:
            pass


@relaxed
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), json_values, min_size=1))
def test_yaml_gives_back_what_was_written(record: dict[str, object]) -> None:
    from rubricate.data.yamltext import split_yaml, yaml_text

    assert [value for _, value, _ in split_yaml(yaml_text(record))] == [record]


def test_values_may_be_of_any_type(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('["one", 2]')
    assert [value.value for value in read_values(tmp_path / "a.json")] == ["one", 2]
