"""Sheets are repeatable, balanced and rightly labelled, and the splits ask different things."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from rubricate.errors import ConfigError
from rubricate.judges.calibrated import Labelled
from rubricate.judges.verifiers import Input, run_verifier
from rubricate.training.checks import HIDDEN, UNSEEN_KINDS, load_banks, make_sheets, masked_sheets, sheets_of


def text(item: Labelled) -> str:
    return str(item.rollout.response)


def of_kind(made: list[Labelled], kind: str, form: str = "") -> list[Labelled]:
    return [item for item in made if item.criterion.tags[1] == kind and form in ("", item.criterion.tags[2])]


def plainly(item: Labelled) -> bool:
    """The label of the plain criterion, whatever the wording."""
    return item.met == (item.criterion.tags[2] == "plain")


def test_a_seed_gives_the_same_sheets_and_another_seed_others() -> None:
    one, two, three = make_sheets(5, seed=3), make_sheets(5, seed=3), make_sheets(5, seed=4)
    assert one == two
    assert [item.rollout.response for item in one] != [item.rollout.response for item in three]


def test_more_sheets_begin_with_the_fewer() -> None:
    few, many = make_sheets(4, seed=3), make_sheets(9, seed=3)
    assert many[: len(few)] == few


def test_answers_are_level_within_kinds_forms_and_responses(train: list[Labelled]) -> None:
    levels: Counter[tuple[str, ...]] = Counter()
    for item in train:
        levels[item.criterion.tags[1:]] += 1 if item.met else -1
    counts = Counter(item.criterion.tags[1:] for item in train)
    for name, level in levels.items():
        assert abs(level) <= max(8, 0.1 * counts[name]), (name, level, counts[name])
    sheets = sheets_of(train)
    assert len(sheets) == 600
    for sheet in sheets:
        assert abs(sum(1 if item.met else -1 for item in sheet)) <= 1
    assert sum(len(sheet) == 10 for sheet in sheets) > 540


def test_plain_and_negated_wordings_are_both_asked(train: list[Labelled]) -> None:
    counts = Counter(item.criterion.tags[1:] for item in train)
    for kind in ("states", "bullets", "emoji", "on_topic", "words_max", "refuses"):
        plain, negated = counts[kind, "plain"], counts[kind, "negated"]
        assert min(plain, negated) >= 0.4 * max(plain, negated) > 0, kind


def test_criteria_differ_within_a_response_and_carry_their_tags(train: list[Labelled]) -> None:
    for sheet in sheets_of(train):
        assert len({item.criterion.id for item in sheet}) == len(sheet)
        assert len({item.criterion.text for item in sheet}) == len(sheet)
    for item in train:
        family, kind, form = item.criterion.tags
        assert family and kind and form in ("plain", "negated")
        assert not re.search(r"\{\w+\}", item.criterion.text), item.criterion.text


def test_splits_ask_of_different_topics_and_kinds(train: list[Labelled], held_out: list[Labelled]) -> None:
    whole = load_banks()
    sides = [{p for topic in whole.part(side).topics for p in topic.prompts} for side in (False, True)]
    for made, own, other in ((train, sides[0], sides[1]), (held_out, sides[1], sides[0])):
        for item in made:
            prompt = str(item.rollout.prompt)
            assert any(prompt.startswith(start) for start in own)
            assert not any(prompt == start for start in other)
            assert item.criterion.tags[1] not in UNSEEN_KINDS
    unseen = make_sheets(120, seed=1, split="unseen_kinds")
    assert {item.criterion.tags[1] for item in unseen} == UNSEEN_KINDS


def test_points_are_met_exactly_where_one_of_their_sentences_is_in(train: list[Labelled]) -> None:
    def plain(value: str) -> str:
        return re.sub(r"[^\w]+", "", value).casefold()

    says: dict[str, list[set[str]]] = defaultdict(list)
    for topic in load_banks().topics:
        for point in topic.points:
            for phrase in (*point.about, *point.about_en):
                says[phrase].append({plain(sentence) for sentence in point.says})
    checked = 0
    for item in of_kind(train, "states", "plain"):
        found = [says[phrase] for phrase in says if phrase.casefold() in item.criterion.text.casefold()]
        if len(found) != 1 or len(found[0]) != 1:
            continue
        checked += 1
        assert item.met == any(sentence in plain(text(item)) for sentence in found[0][0]), item
    assert checked > 100


@pytest.mark.parametrize(
    ("kind", "verifier"),
    [("bullets", "bullets"), ("numbered", "numbered"), ("headings", "headings"), ("json", "json")],
)
def test_forms_agree_with_the_verifiers(train: list[Labelled], kind: str, verifier: str) -> None:
    found = of_kind(train, kind)
    assert len(found) > 20
    for item in found:
        assert plainly(item) == run_verifier(verifier, {}, Input(text(item))).met


def test_lengths_and_words_are_as_the_criteria_say(train: list[Labelled]) -> None:
    for kind, bound in (("words_max", "max"), ("words_min", "min")):
        for item in of_kind(train, kind):
            number = int(re.findall(r"\d+", item.criterion.text)[0])
            assert plainly(item) == run_verifier("words", {bound: number}, Input(text(item))).met
    for item in of_kind(train, "contains_word"):
        word = re.findall(r"[\"„«] ?(.+?) ?[\"“»]", item.criterion.text)[0]
        assert plainly(item) == (word.casefold() in text(item).casefold())
    for item in of_kind(train, "no_commas"):
        assert plainly(item) == ("," not in text(item))


def test_languages_are_what_a_detector_finds() -> None:
    made = make_sheets(60, seed=2, kinds=["in_language"])
    names = {"English": "en", "German": "de", "French": "fr", "Spanish": "es", "Italian": "it", "Portuguese": "pt"}
    checked = 0
    for item in made:
        wanted = [code for name, code in names.items() if name in item.criterion.text]
        if wanted and len(text(item)) > 250:
            checked += 1
            # The detector takes capitals for Slavic or German.
            assert plainly(item) == run_verifier("language", {"language": wanted[0]}, Input(text(item).lower())).met
    assert checked > 10


def test_only_the_kinds_asked_for_are_asked_about() -> None:
    made = make_sheets(40, seed=1, kinds=["bullets", "states", "apology"], checks_per_response=3)
    assert {item.criterion.tags[1] for item in made} == {"bullets", "states", "apology"}
    assert max(map(len, sheets_of(made))) <= 3
    with pytest.raises(ConfigError, match="no kind 'bulets'"):
        make_sheets(1, seed=1, kinds=["bulets"])
    with pytest.raises(ConfigError, match="no split"):
        make_sheets(1, seed=1, split="test")  # pyright: ignore[reportArgumentType]  # what a caller may mistype


def test_masked_controls_hide_one_text_and_keep_the_labels(train: list[Labelled]) -> None:
    part = train[:50]
    criterion, response = masked_sheets(part, "criterion"), masked_sheets(part, "response")
    assert [item.met for item in criterion] == [item.met for item in response] == [item.met for item in part]
    assert {item.criterion.text for item in criterion} == {HIDDEN}
    assert [item.rollout for item in criterion] == [item.rollout for item in part]
    assert {item.rollout.response for item in response} == {HIDDEN}
    assert len(sheets_of(response)) == len(sheets_of(part))
    assert make_sheets(5, seed=3, masked="criterion") == masked_sheets(make_sheets(5, seed=3), "criterion")
