"""The journal: nothing committed is lost, nothing torn is believed, two writers are kept apart."""

from __future__ import annotations

import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from rubricate.cli.journal import Journal, differences
from rubricate.errors import ConfigError

SETTINGS: dict[str, object] = {"judge": "abc", "aggregation": {"missing": "mask", "scale": 1.0}}


def key(number: int) -> str:
    return f"{number:016x}"


def test_rows_are_found_again_by_key(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path, SETTINGS) as journal:
        journal.append(key(7), {"id": "seven"})
        journal.append(key(3), {"id": "three ü 日本"})
    with Journal(path, SETTINGS) as journal:
        assert len(journal) == 2
        found = journal.take(key(3))
        assert found is not None
        assert journal.read(found[0]) == {"id": "three ü 日本"}
        assert journal.take(key(99)) is None


def test_equal_keys_are_handed_out_once_each_in_order(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path, SETTINGS) as journal:
        for number in range(2):
            journal.append(key(5), {"n": number})
    with Journal(path, SETTINGS) as journal:
        places = [journal.take(key(5)) for _ in range(3)]
        assert places[2] is None
        assert [journal.read(place[0])["n"] for place in places[:2] if place] == [0, 1]


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_torn_last_line_is_discarded(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "j"
    with Journal(path, SETTINGS) as journal:
        journal.append(key(1), {"id": "whole"})
        journal.append(key(2), {"id": "torn", "text": "x" * 50})
    path.write_bytes(path.read_bytes()[:-cut])
    with Journal(path, SETTINGS) as journal:
        assert len(journal) == 1
        place = journal.append(key(2), {"id": "again"})
        assert journal.read(place) == {"id": "again"}
    with Journal(path, SETTINGS) as journal:
        assert len(journal) == 2


def test_a_torn_first_line_is_a_new_journal(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(b'{"journal":"rubr')
    with Journal(path, SETTINGS) as journal:
        assert len(journal) == 0


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_text("my notes\n")
    with pytest.raises(ConfigError, match="not a journal"):
        Journal(path, SETTINGS)
    assert path.read_text() == "my notes\n"


def test_other_settings_are_refused_and_named(tmp_path: Path) -> None:
    path = tmp_path / "j"
    Journal(path, SETTINGS).close()
    changed: dict[str, object] = {"judge": "abc", "aggregation": {"missing": "skip", "scale": 1.0}}
    with pytest.raises(ConfigError, match='aggregation.missing: "mask" -> "skip"') as caught:
        Journal(path, changed)
    assert "--restart" in caught.value.hint
    assert "judge" not in caught.value.message.split("settings: ")[1]
    with Journal(path, changed, restart=True) as journal:
        assert len(journal) == 0


def test_settings_that_come_and_go_are_named() -> None:
    assert differences({"a": 1}, {"b": 2}) == ["a: 1 -> not set", "b: not set -> 2"]


def test_a_row_scored_again_replaces_its_line(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path, SETTINGS) as journal:
        first = journal.append(key(1), {"value": None}, retry=True)
    with Journal(path, SETTINGS) as journal:
        assert journal.take(key(1)) == (first, True)
        journal.append(key(1), {"value": 0.5}, replaces=first)
    with Journal(path, SETTINGS) as journal:
        assert len(journal) == 1
        found = journal.take(key(1))
        assert found is not None and not found[1]
        assert journal.read(found[0]) == {"value": 0.5}


def test_records_come_back_in_the_order_asked_for(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", SETTINGS) as journal:
        places = [journal.append(key(n), {"n": n}) for n in range(5)]
        order = array("q", reversed(places))
        assert [record["n"] for record in journal.read_many(order)] == [4, 3, 2, 1, 0]


HOLD = """
import sys
from pathlib import Path
from rubricate.cli.journal import Journal
journal = Journal(Path(sys.argv[1]), {})
journal.append("00000000000000aa", {"id": "held"})
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_kept_out_until_the_first_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(ConfigError, match="another process"):
            Journal(path, {})
        holder.kill()
        holder.wait()
    with Journal(path, {}) as journal:
        assert len(journal) == 1


def test_discard_removes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path, SETTINGS) as journal:
        journal.append(key(1), {})
        journal.discard()
    assert not path.exists()
