"""JSON in a response: whether it is valid, and whether it fits a schema."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Literal, Protocol, cast

from pydantic import Field, field_validator

from rubricate.errors import VerifierError
from rubricate.judges.verifiers.markdown import fences, lines_of
from rubricate.judges.verifiers.patterns import bounded
from rubricate.judges.verifiers.registry import Check, Input, VerifierArgs, verifier
from rubricate.judges.verifiers.text import snippet
from rubricate.narrow import as_array, as_object

__all__ = ["JsonArgs", "SchemaArgs"]


class JsonArgs(VerifierArgs):
    """Where the JSON document is, and what it must be.

    Attributes:
        where: `whole`: the response is the document, possibly in one code fence; `bare`: without a fence;
            `inside`: the first code block marked `json`, otherwise the first `{` or `[` that begins a document.
        top: what the document must be at the top.
    """

    where: Literal["whole", "bare", "inside"] = "whole"
    top: Literal["any", "object", "array"] = "any"


class _Unreadable(Exception):
    """The response holds no JSON document; the message says why."""


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    # Python refuses to read integers of more than 4,300 digits; JSON sets no limit.
    return int(digits) if len(digits) < 4_000 else float(digits)


_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_int=_integer)


def _decode(text: str) -> object:
    try:
        document: object = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _Unreadable(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError as error:
        raise _Unreadable(str(error)) from None
    except RecursionError:
        raise _Unreadable("nested too deeply to read") from None
    return document


def _document(response: str, where: Literal["whole", "bare", "inside"]) -> object:
    text = response.strip().removeprefix("\ufeff")
    if not text:
        raise _Unreadable("the response is empty")
    if where == "bare":
        return _decode(text)
    blocks = fences(text)
    if where == "whole":
        whole = len(blocks) == 1 and text.startswith(("```", "~~~")) and blocks[0].last == len(lines_of(text)) - 1
        return _decode(blocks[0].body.strip() if whole else text)
    for block in blocks:
        if block.language == "json":
            return _decode(block.body.strip())
    return _first_document(text)


_ATTEMPTS = 50


def _first_document(text: str) -> object:
    """The document at the first bracket that begins one; the first fifty brackets are tried."""
    start = -1
    for _ in range(_ATTEMPTS):
        start = min((place for mark in "{[" if (place := text.find(mark, start + 1)) >= 0), default=-1)
        if start < 0:
            break
        try:
            document: object = _DECODER.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
        return document
    raise _Unreadable("there is no JSON object or array in the response")


def _of_kind(document: object, top: Literal["any", "object", "array"]) -> bool:
    return top == "any" or isinstance(document, dict if top == "object" else list)


@verifier("json", JsonArgs)
def valid_json(given: Input, args: JsonArgs) -> Check:
    """The response is valid JSON (RFC 8259: no NaN, no comments, no trailing commas)."""
    try:
        document = _document(given.response, args.where)
    except _Unreadable as error:
        return Check(False, str(error))
    if not _of_kind(document, args.top):
        return Check(False, f"valid JSON, but not an {args.top} at the top")
    return Check(True, "valid JSON")


class _Problem(Protocol):
    message: str
    json_path: str


class _Validator(Protocol):
    def iter_errors(self, instance: object) -> Iterator[_Problem]: ...


class _ValidatorClass(Protocol):
    VALIDATORS: Mapping[str, Callable[..., Iterator[object] | None]]

    def check_schema(self, schema: object) -> None: ...

    def __call__(self, schema: object, *, registry: object, format_checker: object) -> _Validator: ...


class _Validators(Protocol):
    def validator_for(self, schema: object, default: object) -> _ValidatorClass: ...

    def extend(self, validator: object, validators: Mapping[str, object]) -> _ValidatorClass: ...


class _JsonSchema(Protocol):
    Draft202012Validator: object
    FormatChecker: Callable[[], object]
    SchemaError: type[Exception]
    validators: _Validators


class _Specifications(Protocol):
    REGISTRY: object


def _jsonschema() -> _JsonSchema:
    return cast("_JsonSchema", importlib.import_module("jsonschema"))


@lru_cache(maxsize=256)
def _validator(schema_text: str, formats: bool) -> _Validator:
    """A validator for a schema in canonical JSON. Raises ValueError when it is none."""
    package = _jsonschema()
    schema = as_object(json.loads(schema_text)) or {}
    dialect = package.validators.validator_for(schema, package.Draft202012Validator)
    try:
        dialect.check_schema(schema)
    except package.SchemaError as error:
        raise ValueError(f"not a JSON schema: {getattr(error, 'message', error)}") from None
    for pattern in _patterns(schema):
        bounded(pattern)
    keywords = {
        name: _guarded(name, dialect.VALIDATORS[name]) for name in _WITH_PATTERNS if name in dialect.VALIDATORS
    }
    # The bundled drafts only: the default registry fetches other references from the network.
    registry = cast("_Specifications", importlib.import_module("jsonschema_specifications")).REGISTRY
    checker = package.FormatChecker() if formats else None
    return package.validators.extend(dialect, keywords)(schema, registry=registry, format_checker=checker)


class SchemaArgs(JsonArgs):
    """A JSON schema (draft 2020-12 unless its `$schema` says otherwise), and where the document is.

    References to other documents are not fetched. `formats` makes `format` an assertion.
    """

    json_schema: Mapping[str, object] = Field(alias="schema")
    formats: bool = False

    @field_validator("json_schema")
    @classmethod
    def _is_schema(cls, value: Mapping[str, object]) -> Mapping[str, object]:
        _validator(_canonical(value), False)
        return value


def _canonical(schema: Mapping[str, object]) -> str:
    try:
        return json.dumps(dict(schema), sort_keys=True, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None


def _patterns(schema: object) -> Iterator[str]:
    """Every regular expression in a schema."""
    table = as_object(schema)
    if table is not None:
        pattern = table.get("pattern")
        if isinstance(pattern, str):
            yield pattern
        yield from as_object(table.get("patternProperties")) or ()
    for value in table.values() if table is not None else as_array(schema) or ():
        yield from _patterns(value)


def _guarded(name: str, original: Callable[..., Iterator[object] | None]) -> Callable[..., Iterator[object]]:
    """A schema keyword whose regular expressions have first run within the time limit on the same texts."""

    def keyword(
        validator: object, value: object, instance: object, schema: Mapping[str, object]
    ) -> Iterator[object]:
        if name == "pattern":
            patterns, texts = ([value] if isinstance(value, str) else []), [instance]
        else:
            patterns, texts = (
                list(as_object(schema.get("patternProperties")) or ()),
                list(as_object(instance) or ()),
            )
        for pattern in patterns:
            for text in texts:
                if isinstance(text, str):
                    bounded(pattern).search(text)
        yield from original(validator, value, instance, schema) or ()

    return keyword


_WITH_PATTERNS = ("pattern", "patternProperties", "additionalProperties", "unevaluatedProperties")


@verifier("schema", SchemaArgs)
def json_schema(given: Input, args: SchemaArgs) -> Check:
    """The response is JSON that fits the schema."""
    try:
        document = _document(given.response, args.where)
    except _Unreadable as error:
        return Check(False, str(error))
    if not _of_kind(document, args.top):
        return Check(False, f"valid JSON, but not an {args.top} at the top")
    try:
        problem = next(iter(_validator(_canonical(args.json_schema), args.formats).iter_errors(document)), None)
    except OverflowError:
        return Check(False, "a number is too large to check")
    except RecursionError:
        if _depth(document) > _DEEP:
            return Check(False, "nested too deeply to check")
        raise VerifierError("the schema refers to itself without end") from None
    except VerifierError:
        raise
    except Exception as error:
        raise VerifierError(f"the schema cannot be used: {type(error).__name__}: {error}") from error
    if problem is None:
        return Check(True, "fits the schema")
    return Check(False, f"{problem.json_path}: {snippet(problem.message, 120)}")


_DEEP = 50


def _depth(document: object) -> int:
    """Levels of nesting, counted without recursion."""
    deepest = 0
    open_values = [(document, 1)]
    while open_values:
        value, level = open_values.pop()
        deepest = max(deepest, level)
        table = as_object(value)
        open_values += [
            (inner, level + 1) for inner in (table.values() if table is not None else as_array(value) or ())
        ]
    return deepest
