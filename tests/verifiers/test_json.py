"""JSON validity and JSON schemas."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verifiers.conftest import check, met

from rubricate.errors import VerifierError

PERSON: dict[str, object] = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
}


@pytest.mark.parametrize(
    ("text", "whole", "bare", "inside"),
    [
        ('{"a": 1}', True, True, True),
        ('\n ```json\n{"a": 1}\n``` \n', True, False, True),
        ("```\n[1]\n```", True, False, True),
        ('Here: {"a": 1} Bye.', False, False, True),
        ('Text.\n```json\n{"a": 1}\n```\nMore.', False, False, True),
        ('Use {braces} and then {"a": 1}.', False, False, True),
        ("[1, 2,]", False, False, False),
        ("{'a': 1}", False, False, False),
        ('{"a": 1 // one\n}', False, False, False),
        ('{"a": NaN}', False, False, False),
        ("[Infinity]", False, False, False),
        ('"text"', True, True, False),
        ("1e999", True, True, False),
        ("9" * 5_000, True, True, False),
        ("", False, False, False),
        ("\ufeff{}", True, True, True),
        ("[" * 100_000 + "]" * 100_000, False, False, False),
    ],
)
def test_validity(text: str, whole: bool, bare: bool, inside: bool) -> None:
    assert met("json", text) == whole
    assert met("json", text, where="bare") == bare
    assert met("json", text, where="inside") == inside


def test_the_top_of_the_document() -> None:
    assert met("json", "{}", top="object")
    assert not met("json", "[]", top="object")
    assert met("json", "[]", top="array")
    assert not met("json", "1", top="array")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_whatever_json_writes_is_valid(document: object) -> None:
    assert met("json", json.dumps(document))
    assert met("json", f"```json\n{json.dumps(document, indent=1)}\n```")


def test_schema() -> None:
    assert met("schema", '{"name": "Ann", "age": 3}', schema=PERSON)
    assert met("schema", '```json\n{"name": "Ann"}\n```', schema=PERSON)
    wrong = check("schema", '{"name": "Ann", "age": -1}', schema=PERSON)
    assert not wrong.met and wrong.reason.startswith("$.age:")
    assert not met("schema", '{"name": "Ann", "x": 1}', schema=PERSON)
    assert not met("schema", "not json", schema=PERSON)
    assert not met("schema", '["Ann"]', schema={}, top="object")


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(VerifierError, match="argument 'schema'.*not a JSON schema"):
        check("schema", "{}", schema={"type": "nothing"})
    with pytest.raises(VerifierError, match="argument 'schema'"):
        check("schema", "{}", schema={"pattern": "("})
    with pytest.raises(VerifierError, match="argument 'schema'"):
        check("schema", "{}", schema={"pattern": "x{4000000000}"})
    with pytest.raises(VerifierError, match="argument 'schema'"):
        check("schema", "{}", schema=[1])
    with pytest.raises(VerifierError, match="argument 'schema'"):
        check("schema", "{}")


def test_references_inside_work_and_outside_are_never_fetched() -> None:
    schema = {"$defs": {"n": {"type": "number"}}, "properties": {"a": {"$ref": "#/$defs/n"}}}
    assert met("schema", '{"a": 1}', schema=schema)
    assert not met("schema", '{"a": "x"}', schema=schema)
    with pytest.raises(VerifierError, match="cannot be used"):
        check("schema", "{}", schema={"$ref": "http://127.0.0.1:9/schema.json"})


def test_older_drafts_and_formats() -> None:
    draft4 = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}
    assert not met("schema", "1", schema=draft4)
    day = {"type": "string", "format": "date"}
    assert met("schema", '"yesterday"', schema=day)
    assert not met("schema", '"yesterday"', schema=day, formats=True)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^(a|a)*$"},
        {"patternProperties": {"^(a|a)*$": {}}},
        {"patternProperties": {"^(a|a)*$": {}}, "additionalProperties": False},
    ],
)
def test_patterns_in_a_schema_cannot_hang(schema: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rubricate.judges.verifiers.patterns.TIME_LIMIT", 0.1)
    text = "a" * 60 + "b"
    with pytest.raises(VerifierError, match=r"took more than 0\.1 seconds"):
        check("schema", json.dumps(text if "pattern" in schema else {text: 1}), schema=schema)


def test_endless_schemas_are_errors_and_endless_documents_are_not_met() -> None:
    with pytest.raises(VerifierError, match="refers to itself"):
        check("schema", "{}", schema={"$ref": "#"})
    tree = {"type": "array", "items": {"$ref": "#"}}
    assert met("schema", "[[[]]]", schema=tree)
    assert not met("schema", "[" * 400 + "]" * 400, schema=tree)
