"""Facts of the machine, from files made for the test; keys never show."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubricate.cli.doctor_machine import cache_facts, gpu_facts, machine_facts, variable_facts


def test_limits_of_a_container_count(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000\n", encoding="utf-8")
    (tmp_path / "memory.max").write_text("1048576\n", encoding="utf-8")
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    2048 kB\n", encoding="utf-8")
    facts = machine_facts(tmp_path, tmp_path)
    assert (facts["cpus_usable"], facts["memory"], facts["memory_available"]) == (0.5, 2**20, 2**21)


def test_without_limits(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n", encoding="utf-8")
    (tmp_path / "memory.max").write_text("max\n", encoding="utf-8")
    facts = machine_facts(tmp_path, tmp_path)
    assert isinstance(facts["cpus_usable"], int | float) and facts["cpus_usable"] >= 1
    assert facts["memory_available"] is None


def test_gpus_are_named_by_the_driver(tmp_path: Path) -> None:
    card = tmp_path / "driver" / "nvidia" / "gpus" / "0000:01:00.0"
    card.mkdir(parents=True)
    (card / "information").write_text("Model: \t\t Card 9000\nIRQ: 1\n", encoding="utf-8")
    assert gpu_facts(proc=tmp_path)["driver_sees"] == ["Card 9000"]
    assert gpu_facts(proc=tmp_path / "none")["driver_sees"] == []


def test_keys_and_passwords_do_not_show() -> None:
    facts = variable_facts(
        {
            "OPENAI_API_KEY": "sk-secret",
            "RUBRICATE_API_KEY": "",
            "OPENAI_BASE_URL": "https://me:secret@host:8443/v1?token=secret",
            "HTTPS_PROXY": "me:secret@proxy",
            "OMP_NUM_THREADS": "2",
            "RUBRICATE_CACHE": "/c",
        }
    )
    assert "secret" not in str(facts)
    assert facts["OPENAI_API_KEY"] == "set"
    assert facts["RUBRICATE_API_KEY"] is None
    assert facts["OPENAI_BASE_URL"] == "https://host:8443/v1"
    assert (facts["OMP_NUM_THREADS"], facts["RUBRICATE_CACHE"]) == ("2", "/c")


def test_the_cache_folder(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    absent = cache_facts(root)
    assert (absent["exists"], absent["bytes"], absent["writable"]) == (False, 0, True)
    assert not root.exists()
    (root / "gguf").mkdir(parents=True)
    (root / "gguf" / "a").write_bytes(b"x" * 1000)
    (root / "b").write_bytes(b"x" * 24)
    facts = cache_facts(root)
    assert (facts["bytes"], facts["files"], facts["complete"]) == (1024, 2, True)
    assert isinstance(facts["disk_free"], int) and facts["disk_free"] > 0


def test_a_cache_that_cannot_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert cache_facts(tmp_path / "file" / "cache")["writable"] is False


def test_the_place_is_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUBRICATE_CACHE", str(tmp_path / "here"))
    assert cache_facts()["folder"] == str(tmp_path / "here")
