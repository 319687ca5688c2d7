"""Documents cut into passages that keep the source's own letters, and the lines they begin in."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_object
from rubricate.search.base import Passage

__all__ = ["SUFFIXES", "passages_of", "read_passages"]

SUFFIXES = (".md", ".txt", ".rst", ".jsonl", ".jsonl.gz", ".md.gz", ".txt.gz")
"""Endings of the files that are read in a folder."""

TEXTS = ("text", "content", "passage", "body", "abstract", "snippet")
SOURCES = ("source", "url", "link", "id", "doc_id", "_id")

_BREAK = re.compile(r"\n[ \t]*\n+")
_TITLE = re.compile(r"\s*#{1,6}\s+(.+)")


def read_passages(path: str | os.PathLike[str], *, words: int = 150) -> list[Passage]:
    """The passages of a file, or of all files of a folder whose ending is among `SUFFIXES`, in the order of names.

    A text file is cut at blank lines into pieces of about `words` words at most. Each row of a `.jsonl` file is a
    document with a text (`text`, `content`, ...) and may have a title and a source (`source`, `url`, `id`, ...).

    Raises ConfigError where there is no such file or no passage, FormatError for a row without a text.
    """
    root = Path(path)
    if root.is_dir():
        files = sorted(one for one in root.rglob("*") if one.is_file() and one.name.endswith(SUFFIXES))
        found = [one for file in files for one in _file(file, str(file.relative_to(root)), words)]
    elif root.is_file():
        found = list(_file(root, root.name, words))
    else:
        raise ConfigError(f"there is no file or folder {root}")
    if not found:
        raise ConfigError(f"{root} holds no passage", hint=f"endings read: {', '.join(SUFFIXES)}")
    return found


def _file(path: Path, source: str, words: int) -> Iterator[Passage]:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"the file is not UTF-8: {error.reason}", source=str(path)) from None
    if ".jsonl" not in path.name:
        yield from passages_of(text, source, words=words)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield from _row(line, number, source, str(path), words)


def _row(line: str, number: int, source: str, path: str, words: int) -> Iterator[Passage]:
    try:
        fields = as_object(json.loads(line))
    except (ValueError, RecursionError):
        raise FormatError("the line is not JSON", source=path, line=number) from None
    if fields is None:
        raise FormatError("expected an object", source=path, line=number)
    said = next((fields[name] for name in TEXTS if isinstance(fields.get(name), str)), None)
    if not isinstance(said, str):
        raise FormatError(f"expected a text in {', '.join(TEXTS)}", source=path, line=number)
    own = next((fields[name] for name in SOURCES if fields.get(name) not in (None, "")), None)
    title = fields.get("title")
    named = f"{source}#L{number}" if own is None else str(own)
    for one in passages_of(said, named, words=words, title=title if isinstance(title, str) else ""):
        yield Passage(one.text, one.source, one.title)


def passages_of(text: str, source: str, *, words: int = 150, title: str = "") -> Iterator[Passage]:
    """The passages of a text: paragraphs that follow one another, up to `words` words together; a longer paragraph
    is cut between words. Where there is no title, the first Markdown heading is one."""
    if words < 1:
        raise ConfigError(f"words is {words}", hint="use 1 or more")
    heading = _TITLE.match(text)
    named = title or (heading[1].strip() if heading is not None else "")
    start = end = count = 0
    for first, last in _pieces(text, words):
        size = len(text[first:last].split())
        if count and count + size > words:
            yield Passage(text[start:end], source, named, text.count("\n", 0, start) + 1)
            count = 0
        if not count:
            start = first
        end, count = last, count + size
    if count:
        yield Passage(text[start:end], source, named, text.count("\n", 0, start) + 1)


def _pieces(text: str, words: int) -> Iterator[tuple[int, int]]:
    """Where paragraphs begin and end, blanks around them left out; long ones in pieces of so many words."""
    at = 0
    for stop in (*(match for match in _BREAK.finditer(text)), None):
        first, last = at, len(text) if stop is None else stop.start()
        at = len(text) if stop is None else stop.end()
        spans = [match.span() for match in re.finditer(r"\S+", text[first:last])]
        for place in range(0, len(spans), words):
            part = spans[place : place + words]
            yield first + part[0][0], first + part[-1][1]
