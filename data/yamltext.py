"""Safe YAML whose values are plain JSON: no tags, no cycles, no repeated keys; dates stay text.

Import this module only where YAML is read: it loads PyYAML.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from rubricate.data.values import MAX_DEPTH, Path, field_name, spoken
from rubricate.errors import FormatError
from rubricate.narrow import as_object

__all__ = ["YamlLines", "split_yaml", "yaml_text"]

_TAG = "tag:yaml.org,2002:"
_NUMBERS = frozenset(_TAG + name for name in ("int", "float"))
_OLD = re.compile(r"[-+]?(?:0[0-9_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)")
"""Octal numbers such as 010, and numbers to the base of 60 such as 1:30."""

_SCALARS = frozenset(_TAG + name for name in ("null", "bool", "int", "float", "str"))


def _loader(text: str) -> yaml.SafeLoader | yaml.CSafeLoader:
    return yaml.CSafeLoader(text) if getattr(yaml, "__with_libyaml__", False) else yaml.SafeLoader(text)


def _documents(loader: yaml.SafeLoader | yaml.CSafeLoader, source: str) -> Iterator[Node]:
    try:
        while loader.check_node():
            node: Node | None = loader.get_node()
            if node is not None:
                yield node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = ": ".join(part for part in (error.context, error.problem) if part)
        line = mark.line + 1 if mark is not None else None
        raise FormatError(f"not valid YAML: {message}", source=source, line=line, hint=_hint(message)) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise FormatError(f"not valid YAML: {error}", source=source) from None


def _hint(message: str) -> str:
    if "cannot start any token" in message and "\\t" in message:
        return "YAML indents with spaces, not with tabs"
    if "mapping values are not allowed" in message:
        return "put a text that holds a colon in quotes"
    return ""


class _Builder:
    """Builds plain values out of YAML nodes, with the line of whatever it refuses."""

    def __init__(self, loader: yaml.SafeLoader | yaml.CSafeLoader, text: str, source: str, nonfinite: bool) -> None:
        self._loader = loader
        self._source = source
        self._nonfinite = nonfinite
        self._open: set[int] = set()
        # A document without aliases has fewer nodes than characters; only a bomb of aliases has many more.
        self._left = 10 * len(text) + 1000

    def error(self, node: Node, path: Path, message: str, hint: str = "") -> FormatError:
        line = node.start_mark.line + 1
        return FormatError(message, source=self._source, line=line, field=field_name(path), hint=hint)

    def build(self, node: Node, path: Path) -> object:
        self._left -= 1
        if self._left < 0:
            raise self.error(node, path, "aliases make the document far larger than the file", "write it out")
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if len(path) >= MAX_DEPTH:
            raise self.error(node, path, f"nested deeper than {MAX_DEPTH} levels")
        if id(node) in self._open:
            raise self.error(node, path, "the value contains itself", "remove the alias")
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode) and node.tag == _TAG + "seq":
                return [self.build(part, (*path, index)) for index, part in enumerate(node.value)]
            if isinstance(node, MappingNode) and node.tag == _TAG + "map":
                return self._mapping(node, path)
        finally:
            self._open.discard(id(node))
        raise self.error(node, path, f"the tag {node.tag} is not allowed", "only plain values are read")

    def _scalar(self, node: ScalarNode, path: Path) -> object:
        if node.tag == _TAG + "timestamp":
            return node.value
        if node.tag not in _SCALARS:
            raise self.error(node, path, f"the tag {node.tag} is not allowed", "only plain values are read")
        if node.tag in _NUMBERS and _OLD.fullmatch(node.value):
            message = f"{node.value} is another number in YAML 1.1 than in YAML 1.2, or none"
            raise self.error(node, path, message, "write it in plain digits, or in quotes where it is a text")
        try:
            value = self._construct(node)
        except (yaml.YAMLError, ValueError, KeyError):
            raise self.error(node, path, f"cannot be read as {node.tag.removeprefix(_TAG)}") from None
        if isinstance(value, float) and not math.isfinite(value) and not self._nonfinite:
            raise self.error(node, path, f"{spoken(value)} is not a number", "write null for an unknown value")
        return value

    def _construct(self, node: ScalarNode) -> object:
        match node.tag.removeprefix(_TAG):
            case "null":
                return None
            case "bool":
                return self._loader.construct_yaml_bool(node)
            case "int":
                return self._loader.construct_yaml_int(node)
            case "float":
                return self._loader.construct_yaml_float(node)
            case _:
                return node.value

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, object]:
        own: dict[str, object] = {}
        merged: dict[str, object] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                merged |= self._merged(value_node, path)
                continue
            key = self._key(key_node, path)
            if key in own:
                raise self.error(key_node, (*path, key), f"the key {key!r} occurs twice", "keep one of them")
            own[key] = self.build(value_node, (*path, key))
        return merged | own

    def _key(self, node: Node, path: Path) -> str:
        if isinstance(node, ScalarNode) and node.tag == _TAG + "timestamp":
            return node.value
        value = self._scalar(node, path) if isinstance(node, ScalarNode) else None
        if not isinstance(value, str):
            seen = node.value if isinstance(node, ScalarNode) else "a nested value"
            raise self.error(node, path, f"a key must be text, and YAML does not read {seen} as text", "quote it")
        return value

    def _merged(self, node: Node, path: Path) -> dict[str, object]:
        """What a merge key (`<<`) brings in; the first of several mappings wins."""
        parts = node.value if isinstance(node, SequenceNode) else [node]
        merged: dict[str, object] = {}
        for part in parts:
            if not isinstance(part, MappingNode):
                raise self.error(node, path, "a merge key takes a mapping or a list of mappings")
            merged = dict(as_object(self.build(part, path)) or {}) | merged
        return merged


def split_yaml(text: str, *, source: str = "", allow_nonfinite: bool = False) -> Iterator[tuple[int, object, Path]]:
    """The values of a YAML text: each element of a list, or each document, with line and path.

    Paths start with the number of the document. Raises FormatError, with line and field, for what is not YAML,
    not plain (tags, keys other than text, NaN unless allowed), repeated keys, cycles and too deep nesting.
    """
    loader = _loader(text)
    builder = _Builder(loader, text, source, allow_nonfinite)
    for number, node in enumerate(_documents(loader, source)):
        if isinstance(node, SequenceNode) and node.tag == _TAG + "seq":
            for index, part in enumerate(node.value):
                yield part.start_mark.line + 1, builder.build(part, (index,)), (number, index)
        elif not isinstance(node, ScalarNode) or node.tag != _TAG + "null":
            yield node.start_mark.line + 1, builder.build(node, ()), (number,)


class YamlLines:
    """The lines of the values of a YAML text, which is read once."""

    def __init__(self, text: str) -> None:
        self._nodes: list[Node] | None
        try:
            self._nodes = list(_documents(_loader(text), ""))
        except FormatError:
            self._nodes = None
        self._inside: dict[int, dict[str | int, Node]] = {}

    def line(self, path: Sequence[str | int]) -> int | None:
        """The line, from 1, of the value at `path` (document number first), or as far as the document follows it.

        None where the text is not valid YAML. It is for messages: nothing is checked.
        """
        if not self._nodes or not path or not isinstance(path[0], int) or path[0] >= len(self._nodes):
            return None
        node = self._nodes[path[0]]
        for part in path[1:]:
            inner = self._parts(node).get(part)
            if inner is None:
                break
            node = inner
        return node.start_mark.line + 1

    def _parts(self, node: Node) -> dict[str | int, Node]:
        found = self._inside.get(id(node))
        if found is None:
            found = self._inside[id(node)] = dict(_children(node))
        return found


def _children(node: Node) -> Iterator[tuple[str | int, Node]]:
    if isinstance(node, SequenceNode):
        yield from enumerate(node.value)
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            if isinstance(key, ScalarNode):
                yield key.value, value


_BREAKS = re.compile("[\x85\u2028\u2029\ufeff]")


def yaml_text(value: Mapping[str, object] | Sequence[object]) -> str:
    """A value as YAML text that `split_yaml` reads back as it was. Values that JSON cannot hold are not checked."""
    text = _dump(value, readable=True)
    # PyYAML writes these line breaks as they are, and reads them as spaces; escaping is all or nothing.
    return _dump(value, readable=False) if _BREAKS.search(text) else text


def _dump(value: Mapping[str, object] | Sequence[object], readable: bool) -> str:
    # PyYAML's stubs leave the type of `width` open.
    return yaml.safe_dump(  # pyright: ignore[reportUnknownMemberType]
        value, allow_unicode=readable, sort_keys=False, width=100
    )
