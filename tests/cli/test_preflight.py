"""A model that cannot be loaded ends a command before anything is scored."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubricate.cli import main
from rubricate.data.bundled import sample_file


@pytest.mark.parametrize("command", ["score", "demo"])
def test_weights_that_cannot_be_loaded_end_the_command(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "model"
    broken.mkdir()
    (broken / "config.json").write_text('{"model_type": "llama"}')
    (broken / "model.safetensors").write_bytes(b"nothing of use")
    out = tmp_path / "out.jsonl"
    with sample_file("quickstart.jsonl") as data, sample_file("quickstart-rubric.json") as rubric:
        arguments = {
            "score": ["score", str(data), "--rubric", str(rubric), "--judge", f"local:{broken}", "--out", str(out)],
            "demo": ["demo", "--judge", f"local:{broken}", "--out", str(tmp_path / "demo")],
        }[command]
        with pytest.raises(SystemExit) as ended:
            main(arguments)
    assert ended.value.code == 2
    assert "cannot be loaded" in capsys.readouterr().err
    assert not out.exists()
