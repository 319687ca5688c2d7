"""Writers: nothing half-written, nothing that another reader could not read."""

from __future__ import annotations

import gzip
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rubricate.data.io import atomic, read_rows, write_json, write_jsonl, write_parquet, write_text, write_yaml
from rubricate.errors import FormatError


def _failing() -> Iterator[dict[str, object]]:
    yield {"a": 1}
    raise RuntimeError("the source broke")


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_text(path, "old\n")
    with pytest.raises(RuntimeError):
        write_jsonl(path, _failing())
    with pytest.raises(FormatError):
        write_jsonl(path, [{"a": 1}, {"a": float("nan")}])
    assert path.read_text() == "old\n"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_the_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with atomic(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"half"


def test_permissions_of_the_old_file_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    write_text(path, "a")
    path.chmod(0o640)
    write_text(path, "b")
    assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (0o640, "b")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_device_is_written_not_replaced() -> None:
    write_text("/dev/null", "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_compressed_output_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_jsonl(tmp_path / name, [{"a": 1}])
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()) == b'{"a": 1}\n'


@pytest.mark.parametrize(
    ("records", "line", "field", "words"),
    [
        ([{"a": 1}, {"a": {"b": [1, float("inf")]}}], 2, "a.b[1]", "Infinity"),
        ([{"a": {1, 2}}], 1, "a", "type set"),
        ([{"a": 1}, {"b": b"x"}], 2, "b", "type bytes"),
    ],
)
def test_values_that_json_lacks_are_named(
    tmp_path: Path, records: list[dict[str, object]], line: int, field: str, words: str
) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        write_jsonl(tmp_path / "a.jsonl", records)
    assert (caught.value.line, caught.value.field) == (line, field)


def test_a_value_that_contains_itself_is_refused(tmp_path: Path) -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(FormatError, match="nested deeper"):
        write_json(tmp_path / "a.json", value)


def test_half_a_surrogate_pair_survives(tmp_path: Path) -> None:
    broken = json.loads('{"response": "cut \\ud83d"}')
    write_jsonl(tmp_path / "a.jsonl", [broken])
    assert [row.record for row in read_rows(tmp_path / "a.jsonl")] == [broken]
    write_text(tmp_path / "a.html", broken["response"])
    assert (tmp_path / "a.html").read_text() == "cut \\ud83d"


def test_folders_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="does not exist"):
        write_text(tmp_path / "missing" / "a.txt", "")
    with pytest.raises(FormatError, match="folder, not a file"):
        write_text(tmp_path, "")


def test_parquet_holds_every_column_of_every_record(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    assert write_parquet(path, [{"a": 1}, {"b": "x"}, {"a": 2, "b": "y"}]) == 3
    rows = [row.record for row in read_rows(path)]
    assert rows == [{"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": 2, "b": "y"}]


def test_parquet_columns_that_do_not_fit_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pytest.raises(FormatError, match="json_columns") as caught:
        write_parquet(path, [{"id": "1", "meta": "x"}, {"id": "2", "meta": 3}])
    assert caught.value.field == "meta"
    with pytest.raises(FormatError, match="json_columns"):
        write_parquet(path, [{"id": "1", "meta": {}}])
    assert os.listdir(tmp_path) == []
    metas: list[object] = ["x", 3, {}, {"a": [1, None]}]
    write_parquet(path, [{"meta": meta} for meta in metas], json_columns=["meta"])
    assert [json.loads(str(row.record["meta"])) for row in read_rows(path)] == metas


def test_yaml_and_json_refuse_nan(tmp_path: Path) -> None:
    for write in (write_json, write_yaml):
        with pytest.raises(FormatError, match="NaN"):
            write(tmp_path / "a.out", {"a": float("nan")})
