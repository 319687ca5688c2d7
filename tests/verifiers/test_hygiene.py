"""No repetition and no truncation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.verifiers.conftest import check, met

from rubricate.judges.verifiers.hygiene import repeated_share

REFRAIN = """Row, row, row your boat,
gently down the stream.
Merrily, merrily, merrily, merrily,
life is but a dream.
"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "One plain sentence.",
        REFRAIN,
        "I saw the cat. The cat saw me. Neither of us moved for a while.",
        "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 40,
        "```python\n" + "x = x + 1\n" * 40 + "```",
        "# Same\n\n" * 9,
        "1,000,000,000,000 and 0 0 0 0 0 0 0 0 0 0 0 0 0",
        "Ha ha ha! Very funny. ........................................................",
        "今日は朝から晴れていて、気持ちのよい一日でした。午後は友達と公園へ行きました。",
    ],
)
def test_ordinary_texts_do_not_repeat(text: str) -> None:
    assert met("no_repetition", text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no " * 11, "'no' 11 times in a row"),
        ("N" + "o" * 50, "letter"),
        ("I am here for you. " * 4, "sentences"),
        ("Questions: " + " ".join(f"{n}. What do you think of the weather today?" for n in range(9)), "sequences"),
        (" ".join(f"word{n}" for n in range(400)) + " and so it goes on, over and over again," * 16, "locally"),
        ("今日は晴れです。" * 8, "sentences"),
        ("はい" * 3 + "うん" * 40, "sequences"),
    ],
)
def test_repetitions_are_found(text: str, reason: str) -> None:
    found = check("no_repetition", text)
    assert not found.met
    assert reason in found.reason


def test_the_thresholds_are_arguments() -> None:
    text = "I am here for you. I am here for you. And a third, quite different sentence follows them."
    assert met("no_repetition", text)
    assert not met("no_repetition", text, max_sentences=0.0)
    assert not met("no_repetition", text, max_share=0.0)
    assert met("no_repetition", "no " * 11, max_run=20, max_share=1.0)


def test_the_share_of_repeats() -> None:
    assert repeated_share([]) == 0
    assert repeated_share("abab") == 0.5
    assert repeated_share("aaaa") == 0.75


@pytest.mark.parametrize(
    "text",
    [
        "A whole sentence that comes to its end.",
        "He asked: “Are you sure that this is the right way?”",
        "Best wishes from all of us here,\nSam",
        "Yours,\nAnna Maria",
        "Ingredients:\n- two large ripe tomatoes from the garden\n- one onion cut into very small cubes",
        "Here is the code you asked for:\n```python\nprint(1)\n```",
        "Here is it:\n```python\nprint(1)```",
        "| a | b |\n|---|---|\n| one | two |",
        "You can read all about it in the documentation at https://example.org/docs",
        "Write to the people at the front desk at desk@example.org",
        "See you all on Saturday at the summer party in the park 🎉",
        "See you all on Saturday at the summer party in the park :)",
        "The result of the long calculation above is therefore x = 42",
        "*Roses are red and violets are blue as everyone knows*",
        "Success is not final and failure is not fatal at all.\n- Winston Churchill",
        '"Success is not final and failure is not fatal at all." - Winston Churchill',
        "The Catcher in the Rye by J.D. Salinger",
        "Join the art of being human and of seeing clearly #art #freedom",
        "Roses are red in the garden of mine\nViolets are blue and they grow in a line\n"
        "Sugar is sweet in the tea and the wine\nAnd honey is golden and tastes quite divine",
        '{"a": [1, 2, 3]}',
        "[1] Smith, 2020.",
        "[Name], thank you!",
        "42",
        "Das ist ein ganzer Satz, der zu Ende geht.",
        "今日は晴れです。",
        "こんにちは",
        "すべての作業が無事に終わりました",
        "สวัสดีครับ วันนี้อากาศดีมากและผมไปเดินเล่นที่สวนสาธารณะกับเพื่อนหลายคน",
        "यह एक पूरा वाक्य है।",
        "Text.\n\n***",
    ],
)
def test_complete_responses(text: str) -> None:
    found = check("not_truncated", text)
    assert found.met, found.reason


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "The most important thing to remember about this is that the",
        "There are three steps to follow when you want to bake bread at",
        "First we go there, and then we",
        "Here are the three steps:",
        "You need flour, water,",
        "Use the function `open` (",
        "Take the left road or",
        "Text.\n```python\nprint(1)",
        "A sentence here.\n\n## Next steps",
        '{"name": "Ann", "age": 3',
        '{"name": "Ann", "friends": ["Bob"',
        '[{"name": "An',
        "1. Open the lid of the box carefully.\n2. Take out the small parts.\n3. Put the largest of them on the",
        "Ich habe gestern einen Brief geschrieben, weil",
        "Das ist der Grund, warum wir heute alle hier zusammengekommen sind und",
        "今日は朝から天気がよくて、",
        "まず最初に確認すべき点を",
        "まず最初に確認すべき点は三つあって、その一つ目として挙げられるのが資料の準備",
    ],
)
def test_truncated_responses(text: str) -> None:
    assert not met("not_truncated", text)


def test_the_finish_reason_decides() -> None:
    assert not check("not_truncated", "A whole sentence.", finish="length").met
    assert check("not_truncated", "A whole sentence.", finish="stop").met
    assert check("not_truncated", "Here are three steps that you should follow when", sentence=False).met


def test_recorded_complete_responses_pass(shared: Callable[[str], Path]) -> None:
    """540 responses of GPT-4, all finished: neither check may fire on them; cut at a third, most are found out."""
    path = shared("ifeval") / "input_response_data_gpt4_20231107_145030.jsonl"
    responses = [str(json.loads(line)["response"]) for line in path.read_text("utf-8").splitlines()]
    for name in ("not_truncated", "no_repetition", "no_praise", "no_self_eval"):
        assert [text for text in responses if not met(name, text)] == [], name
    long = [text for text in responses if len(text) > 600]
    found = sum(not met("not_truncated", text[: len(text) // 3]) for text in long)
    print(f"\nnot_truncated finds {found} of {len(long)} responses cut at a third")
    assert found > 0.5 * len(long)
