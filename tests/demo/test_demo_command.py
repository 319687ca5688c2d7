"""`rubricate demo`: table, agreement, page and records, whatever the judge is worth."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from rubricate.chat import ChatRequest, MockModel
from rubricate.cli.app import app
from rubricate.cli.demo import score_demo
from rubricate.data.bundled import load_demo


def test_without_a_model_code_agrees_with_every_gold_label(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--no-model", "--out", str(tmp_path / "new" / "folder")])
    assert result.exit_code == 0, result.output
    assert "The code checks agree with 167 of 167 gold labels." in result.stdout
    assert "AUC" not in result.stdout
    records = (tmp_path / "new" / "folder" / "demo.rewards.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(records) == 76
    assert all(json.loads(record)["value"] is not None for record in records)


def test_a_judge_that_guesses_is_said_to_be_at_chance(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--judge", "mock:p=0.7", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "mock:p=0.7 judges no better than chance" in result.stdout
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert page.count("<section ") == 24
    assert page.count('<tr><th scope="row">') == 76
    assert "no better than chance" in page
    assert "A rubric lists the criteria" in page
    for label in ("unscored", "vetoed", "pairs in the gold order, by the code checks alone"):
        assert f"<dt>{label}</dt>" in page
    assert "-: unscored" in result.stdout
    assert "田中様" in page


def test_a_judge_that_fails_leaves_rewards_unscored_and_is_said_to_have_judged_nothing(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--judge", "mock:empty", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "gave no verdict that could be used" in result.stdout


async def test_a_judge_that_knows_the_answers_agrees_with_them() -> None:
    """The gold labels by way of the whole path: prompt, probability, verdict, reward."""
    samples = load_demo()[:10]
    gold = {
        (str(sample.rollout.response), criterion["text"]): sample.gold[criterion["id"]]
        for sample in samples
        for criterion in json.loads(json.dumps(sample.rubric))["criteria"]
    }

    def knows(request: ChatRequest) -> float:
        text = request.text()
        (found,) = [label for (response, asked), label in gold.items() if response in text and asked in text]
        return 0.95 if found else 0.05

    rows = await score_demo(MockModel(p_yes=knows), samples)
    for row in rows:
        assert row.reward.value is not None
        for verdict in row.reward.verdicts:
            assert verdict.score is not None
            assert (verdict.score >= 0.5) is row.sample.gold[verdict.criterion_id]
