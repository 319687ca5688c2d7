"""`rubricate verifiers`: which code checks there are, and what they take."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rubricate.judges.verifiers import get_verifier, verifier_names
from rubricate.narrow import as_array, as_object

__all__ = ["explained", "listed"]


def listed() -> str:
    """All verifiers, a line each."""
    names = verifier_names()
    width = max(map(len, names))
    return "\n".join(f"{name:<{width}}  {get_verifier(name).doc}" for name in names)


def explained(name: str) -> str:
    """One verifier, a line an argument, and how a criterion names it. Raises ConfigError where there is none."""
    found = get_verifier(name)
    schema: Mapping[str, object] = found.args.model_json_schema()
    properties = {key: as_object(value) or {} for key, value in (as_object(schema.get("properties")) or {}).items()}
    needed = as_array(schema.get("required")) or ()
    lines = [f"{found.name}: {found.doc}", ""]
    for argument, fields in properties.items():
        default = "required" if argument in needed else f"default {json.dumps(fields.get('default'))}"
        lines.append(f"  {argument}: {_kind(fields)}, {default}")
    shown = [key for key in properties if key in needed] or list(properties)[:1]
    example = {"name": found.name, "args": {key: _example(properties[key]) for key in shown}}
    return "\n".join([*lines, "", f'in a criterion: "verifier": {json.dumps(example)}'])


def _kind(schema: Mapping[str, object]) -> str:
    """A JSON schema in a word or two."""
    branches = as_array(schema.get("anyOf"))
    if branches is not None:
        return " or ".join(_kind(as_object(branch) or {}) for branch in branches)
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in as_array(schema["enum"]) or ())
    if schema.get("type") == "array":
        return f"list of {_kind(as_object(schema.get('items')) or {})}"
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", ">="), ("maximum", "<=")) if key in schema]
    return " ".join([str(schema.get("type") or schema.get("const") or "value"), *bounds])


def _example(schema: Mapping[str, object]) -> object:
    """Some value that fits the schema's type."""
    branches = as_array(schema.get("anyOf"))
    if branches is not None:
        return _example(as_object(branches[0]) or {})
    if "enum" in schema:
        return (as_array(schema["enum"]) or ("...",))[0]
    if schema.get("type") == "array":
        return [_example(as_object(schema.get("items")) or {})]
    values = {"integer": 3, "number": 0.5, "boolean": True, "object": dict[str, object]()}
    return values.get(str(schema.get("type")), "...")
