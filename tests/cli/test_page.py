"""The page: what was said is shown, what failed is never shown as a number, and no text can become markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from rubricate.cli.page import Figure, PageRow, render_page
from rubricate.rubrics import Criterion, Polarity, Rubric, VerifierSpec
from rubricate.types import Failure, FailureCause, FailureKind, Reward, RewardStatus, Verdict

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028<!-- ]]>"

RUBRIC = Rubric(
    id="letters",
    criteria=(
        Criterion(id="short", text="It is short.", weight=2, verifier=VerifierSpec(name="words")),
        Criterion(id="rude", text="It is rude.", polarity=Polarity.PENALTY, veto=True),
        Criterion(id="clear", text="It is clear."),
        Criterion(id="dated", text="It has a date.", condition="it is a letter"),
    ),
)
FAILED = Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "the server was away", retryable=True)


def row(response: str = "Dear Sir, no.", **changes: object) -> PageRow:
    verdicts = (
        Verdict("short", 1.0, reason="3 words", judge="code"),
        Verdict("rude", 0.93, probability=0.93),
        Verdict.failed("clear", FAILED),
        Verdict.not_applicable("dated"),
    )
    reward = Reward(None, RewardStatus.UNSCORED, bounds=(0.2, 0.8), verdicts=verdicts, failure=FAILED)
    values: dict[str, object] = {
        "name": "r1",
        "prompt": "Write a letter.",
        "response": response,
        "rubric": RUBRIC,
        "reward": reward,
    }
    return PageRow(**(values | changes))  # type: ignore[arg-type]  # a test's keyword arguments, all of the right type


class Elements(HTMLParser):
    """Start tags with their attributes, and text by tag, as a browser's parser sees them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[tuple[str, str]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._cell: str | None = None
        self._script: dict[str, str | None] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append((tag, named))
        if tag == "td":
            self._cell = named.get("class") or ""
        if tag == "script":
            self._script = named

    def handle_endtag(self, tag: str) -> None:
        if tag == "td":
            self._cell = None
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts.append((self._script, data))
        elif self._cell is not None and data.strip():
            self.cells.append((self._cell, data.strip()))


@pytest.mark.parametrize("place", ["response", "prompt", "name"])
def test_no_text_becomes_markup(place: str) -> None:
    clean = Elements(render_page([row()], title="t"))
    dirty = Elements(render_page([row(**{place: EVIL})] if place != "response" else [row(EVIL)], title="t"))
    assert [tag for tag, _ in dirty.tags] == [tag for tag, _ in clean.tags]


def test_titles_notes_criteria_and_reasons_are_escaped_too() -> None:
    rubric = Rubric(id=EVIL, criteria=(Criterion(id=EVIL, text=EVIL),))
    reward = Reward(1.0, verdicts=(Verdict(EVIL, 1.0, reason=EVIL, judge=EVIL),))
    given = PageRow(EVIL, EVIL, EVIL, rubric, reward, language='"><script>')
    page = render_page([given], title=EVIL, figures=[Figure(EVIL, EVIL, EVIL)], notes=[EVIL], footer=EVIL)
    parsed = Elements(page)
    assert len(parsed.scripts) == 2
    assert not [tag for tag, _ in parsed.tags if tag == "img"]


def test_the_details_survive_escaping() -> None:
    data = json.loads(
        next(text for attrs, text in Elements(render_page([row(EVIL)], title="t")).scripts if "id" in attrs)
    )
    assert data["rows"][0]["response"] == EVIL
    assert data["rows"][0]["verdicts"][0]["reason"] == "3 words"
    assert any("the server was away" in line for line in data["rows"][0]["verdicts"][2]["more"])


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = render_page([row()], title="t")
    assert not [name for _, attrs in Elements(page).tags for name in attrs if name in ("src", "href", "srcset")]
    assert "url(" not in page and "@import" not in page
    policy = next(attrs["content"] for tag, attrs in Elements(page).tags if tag == "meta" and "http-equiv" in attrs)
    assert policy is not None and policy.startswith("default-src 'none'")


def test_the_policy_admits_the_script_of_the_page_and_no_other() -> None:
    page = render_page([row(EVIL)], title="t")
    script = next(text for attrs, text in Elements(page).scripts if "id" not in attrs)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.replace("&#39;", "'").replace("&#43;", "+")


def test_failed_and_inapplicable_verdicts_have_neither_number_nor_score_colour() -> None:
    cells = Elements(render_page([row()], title="t")).cells
    assert cells[0] == ("cell q10", "1")
    assert cells[2] == ("cell failed", "failed")
    assert cells[3] == ("cell na", "n/a")
    assert ("value unscored", "unscored") in cells
    assert not [text for style, text in cells if "unscored" in style and re.fullmatch(r"0(\.0+)?", text)]


def test_a_met_penalty_is_coloured_as_bad_and_marked() -> None:
    parsed = Elements(render_page([row()], title="t"))
    assert parsed.cells[1] == ("cell q1", "0.93")
    heads = [attrs.get("class") for tag, attrs in parsed.tags if tag == "th" and attrs.get("class")]
    assert heads.count("penalty") == 1


def test_bounds_are_shown() -> None:
    assert "[0.20, 0.80]" in render_page([row()], title="t")


def test_gold_labels_mark_what_differs() -> None:
    gold = {"short": True, "rude": False, "clear": True, "dated": True}
    cells = Elements(render_page([row(gold=gold)], title="t")).cells
    assert [("differs" in style) for style, _ in cells[:4]] == [False, True, False, False]


def test_responses_to_one_rubric_share_a_table_and_others_have_their_own() -> None:
    other = Rubric(id="other", criteria=(Criterion(id="x", text="X."),))
    reward = Reward(1.0, verdicts=(Verdict("x", 1.0),))
    page = render_page([row(), row(rubric=other, reward=reward), row("Again.")], title="t")
    assert page.count("<table") == 2


def test_a_holistic_rating_has_a_column_of_its_own() -> None:
    reward = Reward(0.7, overall=Verdict("overall", 0.7, raw=7.3, reason="fine"))
    cells = Elements(render_page([row(reward=reward)], title="t")).cells
    assert cells[0] == ("cell q7", "0.70")
    assert len(cells) == 2  # the rating and the reward


def test_a_thousand_rows_make_a_page_of_a_few_megabytes() -> None:
    rows = [row("word " * 100, name=f"r{index}") for index in range(1000)]
    page = render_page(rows, title="t", left_out=12)
    assert page.count('<tr><th scope="row">') == 1000
    assert len(page.encode()) < 4_000_000
    assert "12 further responses" in page


def test_a_rubric_for_several_prompts_has_a_table_for_each_named_by_its_prompt() -> None:
    rows = [row(), row(prompt="Write <a poem>.", name="r2"), row("Again.", name="r3")]
    page = render_page(rows, title="t")
    assert page.count("<table") == 2
    assert page.count("<summary>Prompt</summary>") == 2
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", page) == ["Write a letter.", "Write &lt;a poem&gt;."]
    data = json.loads(next(text for attrs, text in Elements(page).scripts if "id" in attrs))
    assert [(item["columns"], item["prompt"]) for item in data["rows"]] == [(0, 0), (0, 1), (0, 0)]
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", render_page([row()], title="t")) == ["letters"]
