"""Broken files: whatever is done to a good one, it is read, or an error names the file and the line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import cast

import pytest
from format_samples import LISTS, RECORDS, TEXTS
from spots import Holder, Record, put, spots
from typer.testing import CliRunner

from rubricate.cli.app import app
from rubricate.data.io import file_kind, write_csv, write_jsonl, write_parquet, write_text, write_toml, write_yaml
from rubricate.errors import FormatError, RubricateError
from rubricate.rubrics.formats import convert, load_rubrics

SEEDS = 14
"""Mutations of the values, and as many of the bytes, of each format in each kind of file."""

Mutation = Callable[[Random, Holder, str | int], None]

# Mutations of values


def taken(holder: Holder, key: str | int) -> object:
    return holder[str(key)] if isinstance(holder, dict) else holder[int(key)]


def nested(depth: int) -> object:
    value: object = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def delete(random: Random, holder: Holder, key: str | int) -> None:
    if isinstance(holder, dict):
        del holder[str(key)]
    else:
        del holder[int(key)]


def retype(random: Random, holder: Holder, key: str | int) -> None:
    others: list[object] = [
        None,
        True,
        3,
        -1,
        10**30,
        0.5,
        "",
        "text",
        "5",
        [],
        {},
        [[]],
        ["x"],
        {"a": None},
        [None],
    ]
    put(holder, key, random.choice(others))


def not_finite(random: Random, holder: Holder, key: str | int) -> None:
    put(holder, key, random.choice([math.nan, math.inf, -math.inf]))


def nest(random: Random, holder: Holder, key: str | int) -> None:
    put(holder, key, nested(random.choice([50, 120, 400])))


def rename(random: Random, holder: Holder, key: str | int) -> None:
    if isinstance(holder, dict):
        new = random.choice(["x", "", "weight", "id", str(key).upper(), str(key) + "s", "é", "rows", "rubric"])
        holder[new] = holder.pop(str(key))


def swap(random: Random, holder: Holder, key: str | int) -> None:
    other = random.choice(list(holder)) if isinstance(holder, dict) else random.randrange(len(holder))
    one, two = taken(holder, key), taken(holder, other)
    put(holder, key, two)
    put(holder, other, one)


def wrap(random: Random, holder: Holder, key: str | int) -> None:
    value = taken(holder, key)
    put(holder, key, random.choice([[value], {"value": value}, json.dumps(value)]))


def cut(random: Random, holder: Holder, key: str | int) -> None:
    value = taken(holder, key)
    if isinstance(value, str):
        put(holder, key, value[: random.randrange(len(value) + 1)])


def repeat(random: Random, holder: Holder, key: str | int) -> None:
    if isinstance(holder, list):
        holder.append(holder[int(key)])


VALUES: list[Mutation] = [delete, retype, retype, not_finite, nest, rename, swap, wrap, cut, repeat]


def mutated(random: Random, records: Sequence[Record]) -> list[Record]:
    changed = json.loads(json.dumps(list(records)))
    for _ in range(random.choice([1, 1, 2])):
        found = spots(changed[random.randrange(len(changed))])
        if found:
            random.choice(VALUES)(random, *random.choice(found))
    return changed


# Mutations of bytes


def broken(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    end = min(len(data), at + random.randrange(1, 12))
    ways: list[Callable[[], bytes]] = [
        lambda: data[:at],
        lambda: data[:at] + random.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00"]) + data[at:],
        lambda: data[:at] + bytes([random.randrange(256)]) + data[at + 1 :],
        lambda: data[:at] + data[end:],
        lambda: data[:end] + data[at:],
        lambda: data.replace(b": ", b": " + random.choice([b"NaN", b"[", b"'", b"1e999 "]), random.randrange(1, 9)),
        lambda: data.replace(b'{"', b'{"weight": 1, "weight": 2, "', random.randrange(1, 4)),
        lambda: data[:at] + random.choice([b"[", b'{"a":', b"- ", b"a = {"]) * 4000 + data[at:],
        lambda: data.decode("utf-8", "replace").encode("utf-16"),
        lambda: random.choice(
            [b"", b"\n", b"\xef\xbb\xbf", b"null", b"[]", b"{}", b"[[]]", b'""', b"\x1f\x8b\x08"]
        ),
        lambda: data[at:] + data[:at],
    ]
    return random.choice(ways)()


# Files


def store(path: Path, records: Sequence[Record]) -> None:
    """Write records whatever they hold. Raises FormatError where the kind of file cannot hold them."""
    kind = file_kind(path)
    if kind == "jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif kind == "json":
        path.write_text(json.dumps(list(records), indent=1))
    elif kind == "yaml":
        write_yaml(path, list(records))
    elif kind == "toml":
        write_toml(path, {"rows": list(records)})
    elif kind == "parquet":
        write_parquet(path, records, exact=True)
    else:
        write_csv(path, records, delimiter="," if kind == "csv" else "\t")


def rows_of(name: str) -> list[list[Record]]:
    """The files that are made of a format: each layout three times, and a bare list as rows."""
    files = [[record] * 3 for record in RECORDS[name] if name != "flat"]
    listed = LISTS.get(name)
    return [*files, cast("list[Record]", listed)] if listed is not None else files


FILE_LEVEL = ("no rows", "not readable as Parquet", "nested too deeply", "not valid YAML", "Parquet cannot hold")


def check(path: Path, kind: str) -> None:
    """A file is read, or refused with an error that names it, and its line."""
    try:
        load_rubrics(path)
    except FormatError as error:
        assert error.source == str(path)
        assert str(path) in str(error)
        assert error.line is not None or any(words in error.detail for words in FILE_LEVEL), str(error)
    except RubricateError as error:
        assert str(path) in str(error)


KINDS = ["jsonl", "json", "yaml", "toml", "csv", "tsv", "parquet"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RECORDS)
def test_changed_values(tmp_path: Path, name: str, kind: str) -> None:
    path, files, random = tmp_path / f"a.{kind}", rows_of(name), Random(f"{name} {kind}")
    tried = 0
    while tried < SEEDS:
        try:
            store(path, mutated(random, random.choice(files)))
        except FormatError:
            continue  # TOML has no null, and so on: there is no such file
        tried += 1
        check(path, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RECORDS)
def test_broken_bytes(tmp_path: Path, name: str, kind: str) -> None:
    path, files, random = tmp_path / f"a.{kind}", rows_of(name), Random(f"{name} {kind}")
    for records in files:
        store(path, records)
        data = path.read_bytes()
        for _ in range(SEEDS // len(files) + 1):
            path.write_bytes(broken(random, data))
            check(path, kind)


@pytest.mark.parametrize("name", TEXTS)
def test_broken_texts(tmp_path: Path, name: str) -> None:
    path, random = tmp_path / "a.txt", Random(name)
    for _ in range(SEEDS):
        path.write_bytes(broken(random, TEXTS[name].encode()))
        check(path, "text")


@pytest.mark.parametrize("name", RECORDS)
def test_conversions_of_changed_files(tmp_path: Path, name: str) -> None:
    files, random, targets = rows_of(name), Random(name), sorted(RECORDS)
    for seed in range(SEEDS):
        source = tmp_path / f"a.{KINDS[seed % len(KINDS)]}"
        target = tmp_path / f"b.{random.choice(KINDS)}"
        try:
            store(source, mutated(random, random.choice(files)))
        except FormatError:
            continue
        try:
            convert(source, target, to_format=random.choice(targets), lossy=bool(seed % 2))
        except RubricateError as error:
            assert str(source) in str(error) or str(target) in str(error)
            assert not target.exists()
        target.unlink(missing_ok=True)


@pytest.mark.parametrize("name", RECORDS)
def test_the_command_ends_with_an_error_and_no_traceback(tmp_path: Path, name: str) -> None:
    files, random, runner = rows_of(name), Random(name), CliRunner()
    source, target = tmp_path / "a.jsonl", tmp_path / "b.json"
    for seed in range(6):
        records = random.choice(files)
        write_jsonl(source, records)
        if seed % 2:
            source.write_bytes(broken(random, source.read_bytes()))
        else:
            store(source, mutated(random, records))
        done = runner.invoke(app, ["convert", str(source), str(target)])
        assert done.exit_code in (0, 2), done.output
        assert done.exception is None or isinstance(done.exception, SystemExit)
        assert (done.exit_code == 0) == target.exists()
        if done.exit_code:
            assert f"error: {source}" in done.output
        target.unlink(missing_ok=True)


def test_a_good_file_of_each_kind_is_read(tmp_path: Path) -> None:
    for name in RECORDS:
        for records in rows_of(name):
            for kind in KINDS:
                store(tmp_path / f"a.{kind}", records)
                assert load_rubrics(tmp_path / f"a.{kind}").rubrics
    write_text(tmp_path / "a.txt", TEXTS["rlcf"])
    assert load_rubrics(tmp_path / "a.txt").format == "rlcf"
