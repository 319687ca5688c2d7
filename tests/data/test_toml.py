"""TOML: values, the lines of what is wrong and of everything else, and writing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.data.io import find_line, read_rows, read_values, write_toml
from rubricate.data.tomltext import TomlLines, split_toml, toml_text
from rubricate.errors import FormatError
from rubricate.narrow import as_array

DOCUMENT = '''\
# A rubric
title = "r"
nested.key."dotted.name" = 1
list = [
  1,
  # two
  { a = "x", b = [2, 3] },
]

[[criteria]]
text = """
Says "hi", then \\"bye\\".
"""
weight = 1e1

[[criteria]]
text = 'C:\\path'
[criteria.scale]
type = "binary"

[[criteria.scale.levels]]
day = 2024-01-02
[[criteria.scale.levels]]
"" = \'\'\'
]]\'\'\'
[other . table]
x = 1
'''


def test_values_and_their_lines() -> None:
    ((line, value, place),) = split_toml(DOCUMENT)
    assert (line, place) == (2, ())
    assert value == {
        "title": "r",
        "nested": {"key": {"dotted.name": 1}},
        "list": [1, {"a": "x", "b": [2, 3]}],
        "criteria": [
            {"text": 'Says "hi", then "bye".\n', "weight": 10.0},
            {"text": "C:\\path", "scale": {"type": "binary", "levels": [{"day": "2024-01-02"}, {"": "]]"}]}},
        ],
        "other": {"table": {"x": 1}},
    }
    lines = TomlLines(DOCUMENT)
    wanted: list[tuple[list[str | int], int]] = [
        (["title"], 2),
        (["nested", "key", "dotted.name"], 3),
        (["list"], 4),
        (["list", 0], 5),
        (["list", 1, "b", 1], 7),
        (["criteria"], 10),
        (["criteria", 0, "text"], 11),
        (["criteria", 0, "weight"], 14),
        (["criteria", 1], 16),
        (["criteria", 1, "scale", "type"], 19),
        (["criteria", 1, "scale", "levels", 0, "day"], 22),
        (["criteria", 1, "scale", "levels", 1, ""], 24),
        (["other", "table", "x"], 27),
        (["criteria", 1, "missing"], 16),
        (["criteria", 9, "text"], 10),
    ]
    assert [lines.line(path) for path, _ in wanted] == [line for _, line in wanted]


def test_rows_are_the_records_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[[rows]]\na = 1\n\n[[rows]]\na.b = [2]\n")
    rows = list(read_rows(path))
    assert [(row.line, row.record) for row in rows] == [(1, {"a": 1}), (4, {"a": {"b": [2]}})]
    assert find_line(path, [*rows[1].place, "a", "b", 0]) == 5
    path.write_text("name = 1\n[[rows]]\na = 1\n")
    assert [row.record for row in read_rows(path)] == [{"name": 1, "rows": [{"a": 1}]}]
    path.write_text("rows = [1, 2]\n")
    assert [row.record for row in read_rows(path)] == [{"rows": [1, 2]}]


@pytest.mark.parametrize(
    ("content", "line", "field", "words"),
    [
        (b"a = 1\nb = \n", 2, "", "not valid TOML"),
        (b"a = 1\nb = null\n", 2, "", "TOML wants texts in double quotes, and has no null"),
        (b"a = 1\na = 2\n", 2, "", "overwrite"),
        (b'[a]\nb = "cut o', 2, "", "not valid TOML"),
        (b"[[a]]\nx = 1\n[a]\n", 3, "", "not valid TOML"),
        (b"a = 1\n[b]\nc = [0, nan]\n", 3, "b.c[1]", "NaN"),
        (b"a = -inf\n", 1, "a", "-Infinity"),
        (b"a = 1\nb = 2024-13-45\n", 2, "", "not valid TOML"),
        (b"a = 1\nb = " + b"9" * 5000 + b"\n", 2, "", "digits"),
        (b"a = " + b"[" * 5000, None, "", "nested too deeply"),
        (b"a = " + b"[" * 120 + b"]" * 120, 1, "a" + "[0]" * 99, "nested deeper"),
        (b"x" + b".x" * 120 + b" = 1\n", 1, ".".join("x" * 100), "nested deeper"),
        (b'a = "\xff"\n', 1, "", "not UTF-8"),
        (b"", None, "", "no rows"),
        (b"# nothing\n", None, "", "no rows"),
        (b'{"a": 1}', 1, "", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_field(
    tmp_path: Path, content: bytes, line: int | None, field: str, words: str
) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        list(read_rows(path))
    assert (caught.value.source, caught.value.line, caught.value.field) == (str(path), line, field)
    assert words in str(caught.value)


def test_values_that_are_not_finite_can_be_let_through(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("a = inf\n")
    (value,) = read_values(tmp_path / "a.toml", allow_nonfinite=True)
    assert value.value == {"a": float("inf")}


def test_what_toml_lacks_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    for value, field, words in [
        ({"a": [{"b": 1}, {"b": None}]}, "a[1].b", "no null"),
        ({"a": float("nan")}, "a", "NaN"),
        ({"a": "cut \ud83d"}, "a", "surrogate"),
    ]:
        with pytest.raises(FormatError, match=words) as caught:
            write_toml(path, value)
        assert (caught.value.source, caught.value.field) == (str(path), field)
    assert not path.exists()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
values = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(texts, values, min_size=1, max_size=4))
def test_what_is_written_is_read_back(record: dict[str, object]) -> None:
    text = toml_text(record)
    if set(record) != {"rows"}:
        ((_, found, _),) = split_toml(text)
        assert found == record
        assert json.dumps(found, sort_keys=True) == json.dumps(record, sort_keys=True)
    lines = TomlLines(text)
    seen = text.split("\n")
    for key, value in record.items():
        line = lines.line([key])
        assert line is not None
        head = toml_text({key: 0}).removesuffix(" = 0\n")
        assert head in seen[line - 1]
        listed = as_array(value)
        if listed is not None:
            inside = [lines.line([key, index]) or 0 for index in range(len(listed))]
            assert inside == sorted(inside)


@given(st.text(max_size=60) | st.text(alphabet="[]{}\",.=1ea\n #'-\\", max_size=40))
def test_any_text_gives_values_or_a_format_error(text: str) -> None:
    TomlLines(text).line(["a", 0])
    try:
        found = list(split_toml(text))
    except FormatError:
        return
    for line, _, place in found:
        assert 1 <= line <= text.count("\n") + 1
        assert TomlLines(text).line(place) == line
