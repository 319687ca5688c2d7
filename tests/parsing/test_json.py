"""JSON as models write it, strictly read where it is sound and repaired where it is not."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.judges.parsing import find_json

REPAIRED: list[tuple[str, object]] = [
    ('{"a": 1}', {"a": 1}),
    ('```json\n{"a": 1}\n```', {"a": 1}),
    ('text {"a": 1} more', {"a": 1}),
    ('{"a": 1} and then {"b": 2}', {"b": 2}),
    ('"{\\"a\\": 1}"', {"a": 1}),
    ("{'a': True, 'b': None}", {"a": True, "b": None}),
    ("{'a': 'can\\'t', 'b': \"can't\"}", {"a": "can't", "b": "can't"}),
    ('{"a": 1,}', {"a": 1}),
    ('{"a": [1, 2,],}', {"a": [1, 2]}),
    ('{"a": 1 // one\n, /* two */ "b": 2 # three\n}', {"a": 1, "b": 2}),
    ("{a: 1, b-c: x y}", {"a": 1, "b-c": "x y"}),
    ("{\u201ca\u201d: \u201cb\u201d}", {"a": "b"}),
    ('{"a": "x "y" z"}', {"a": 'x "y" z'}),
    ('{"a": "x "y", z", "b": 1}', {"a": 'x "y", z', "b": 1}),
    ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
    ('{"a": "\\(\\tan x\\)"}', {"a": "\\(\\tan x\\)"}),
    ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
    ('{"a": 1, "b": "cut he', {"a": 1}),
    ('{"a": 1, "b": 2', {"a": 1}),
    ('{"a": tru', {}),
    ('{"a": {"b": [1, {"c": 2', {"a": {"b": [1, {}]}}),
    ('{\\"a\\": 1}', {"a": 1}),
    ("{&quot;a&quot;: 1}", {"a": 1}),
    ('\ufeff{"a": 1}\u200b', {"a": 1}),
    ('<think>{"a": 0}</think>{"a": 1}', {"a": 1}),
    ('{amount, unit} then {"a": 1}', {"a": 1}),
]


@pytest.mark.parametrize(("text", "value"), REPAIRED)
def test_usual_faults_are_repaired(text: str, value: object) -> None:
    assert find_json(text) == value


@pytest.mark.parametrize(
    "text", ["", "no json here", "{amount, unit}", "[1] is a footnote", "[" * 100_000, "{" * 5000, "}{"]
)
def test_text_without_json(text: str) -> None:
    assert find_json(text) is None


def test_not_a_number_and_infinity_are_not_hidden() -> None:
    value = find_json('{"a": NaN, "b": 1e999}')
    assert repr(value) == "{'a': nan, 'b': inf}"


def test_enormous_integers_do_not_raise() -> None:
    assert find_json('{"a": 1' + "0" * 6000 + "}") == {"a": math.inf}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON_VALUES, min_size=1, max_size=3), st.booleans())
def test_sound_json_is_read_as_json_reads_it(value: dict[str, object], ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert find_json(text) == value
    assert find_json(f"```json\n{text}\n```") == value


@given(st.dictionaries(st.text("abcdef", min_size=1), st.text("abc .,"), min_size=1, max_size=3))
def test_python_spelling_of_the_same_object(value: dict[str, str]) -> None:
    assert find_json(repr(value)) == value
