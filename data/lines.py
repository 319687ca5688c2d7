"""The lines of values in documents (JSON, YAML, TOML), for messages: a file is read again when first asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rubricate.errors import FormatError

__all__ = ["Lines"]

Find = Callable[[Sequence[str | int]], int | None]


def _nothing(path: Sequence[str | int]) -> int | None:
    return None


class Lines:
    """Gives the line of a value of one document, by the path to it (`Value.place` and a path into the value).

    Args:
        read: gives the document's text; called once, at the first question.
        kind: json, yaml or toml; for other kinds of file the answer is always None.
    """

    def __init__(self, read: Callable[[], str], kind: str) -> None:
        self._read = read
        self._kind = kind
        self._find: Find | None = None

    def __call__(self, path: Sequence[str | int]) -> int | None:
        """The line, from 1, on which the value starts, or as far along the path as the document goes."""
        if self._find is None:
            self._find = self._index()
        return self._find(path)

    def _index(self) -> Find:
        if self._kind not in ("json", "yaml", "toml"):
            return _nothing
        try:
            text = self._read()
        except FormatError:
            return _nothing
        if self._kind == "json":
            from rubricate.data.jsontext import JsonLines

            return JsonLines(text).line
        if self._kind == "yaml":
            from rubricate.data.yamltext import YamlLines  # loads PyYAML

            return YamlLines(text).line
        from rubricate.data.tomltext import TomlLines

        return TomlLines(text).line
