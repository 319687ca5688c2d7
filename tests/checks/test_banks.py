"""The banks that ship are sound, errors name the place, and the split keeps texts apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubricate.errors import ConfigError, FormatError
from rubricate.training.checks import UNSEEN_KINDS, load_banks
from rubricate.training.checks.banks import Banks, Point, Topic
from rubricate.training.checks.probes import PROBES
from rubricate.training.checks.sheets import all_kinds

FOLDER = Path(__file__).parents[2] / "training" / "checks" / "banks"


def point(name: str, **more: object) -> dict[str, object]:
    return {"id": name, "about": [f"tells {name}"], "denied": ["does not"], "says": [f"It is {name}."], **more}


def topic(**more: object) -> dict[str, object]:
    points = [point("a"), point("b"), point("c")]
    return {"id": "t", "language": "en", "task": "explain", "prompts": ["Tell me."], "points": points, **more}


def trait(**more: object) -> dict[str, object]:
    fields = {"kind": "calm", "family": "tone", "language": "en", "slot": "any"}
    return {**fields, "plain": ["Is calm"], "negated": ["Is not calm"], "present": ["All is well."], **more}


def put(folder: Path, name: str, **entries: list[dict[str, object]]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(entries), encoding="utf-8")
    return folder


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_every_bank_that_ships_is_valid(path: Path, tmp_path: Path) -> None:
    put(tmp_path, "0.json", topics=[topic()])
    (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    assert load_banks(tmp_path).topics


def every_point(banks: Banks) -> list[tuple[Topic, Point]]:
    return [(topic, point) for topic in banks.topics for point in topic.points]


def test_no_sentence_of_a_topic_has_two_meanings() -> None:
    for each in load_banks().topics:
        says = [text for point in each.points for text in point.says]
        others = [text for point in each.points for text in point.misses] + list(each.asides)
        assert len(set(says)) == len(says), each.id
        assert not set(says) & set(others), each.id


def test_no_phrase_both_fulfils_a_trait_and_misses_it() -> None:
    banks = load_banks()
    for entry in [*banks.traits.values(), *banks.forms.values()]:
        assert not set(entry.present) & set(entry.near), (entry.language, entry.kind)


def test_kinds_are_many_and_each_that_code_decides_has_wordings() -> None:
    banks = load_banks()
    assert {("en", kind) for kind in PROBES} <= set(banks.forms)
    assert UNSEEN_KINDS < all_kinds(banks)
    assert len(all_kinds(banks)) >= 60
    assert 8 <= len(UNSEEN_KINDS) <= 14
    assert len({entry.family for entry in [*banks.traits.values(), *banks.forms.values()]}) >= 10


@pytest.mark.parametrize(
    ("entries", "field", "name"),
    [
        (
            {"topics": [topic(points=[point("a"), point("b"), point("c", says=[])])]},
            "topics[0].points[2].says",
            "t",
        ),
        ({"topics": [topic(), topic(id="u", prompts=[" "])]}, "topics[1].prompts[0]", "u"),
        ({"topics": [topic(point=1)]}, "topics[0].point", "t"),
        ({"topics": [topic(points=[point("a"), point("a"), point("b")])]}, "topics[0]", "differ"),
        ({"traits": [trait(slot="middle")]}, "traits[0].slot", "calm"),
        ({"traits": [{"kind": "calm"}]}, "traits[0].family", "calm"),
    ],
)
def test_an_error_names_file_entry_and_field(
    tmp_path: Path, entries: dict[str, list[dict[str, object]]], field: str, name: str
) -> None:
    put(tmp_path, "topics_x.json", **entries)
    with pytest.raises(FormatError) as caught:
        load_banks(tmp_path)
    assert caught.value.field == field
    assert "topics_x.json" in str(caught.value)
    assert name in str(caught.value)


def test_names_that_occur_twice_and_files_that_are_no_banks_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "twice", "a.json", topics=[topic()])
    put(tmp_path / "twice", "b.json", topics=[topic()])
    with pytest.raises(FormatError, match="second topic 't'"):
        load_banks(tmp_path / "twice")
    put(tmp_path / "none", "a.json", themes=[])
    with pytest.raises(FormatError, match="expected an object"):
        load_banks(tmp_path / "none")
    with pytest.raises(ConfigError, match="no topics"):
        load_banks(tmp_path / "twice" / "missing")


def test_the_split_parts_topics_and_phrases() -> None:
    whole = load_banks()
    train, held_out = whole.part(False), whole.part(True)
    ids = [{topic.id for topic in part.topics} for part in (train, held_out)]
    assert not ids[0] & ids[1]
    assert ids[0] | ids[1] == {topic.id for topic in whole.topics}
    assert 0.1 < len(ids[1]) / len(whole.topics) < 0.3
    assert {topic.language for topic in held_out.topics} == set(whole.languages)
    for key, entry in whole.traits.items():
        sides = train.traits[key], held_out.traits[key]
        for one, two, both in (
            (sides[0].present, sides[1].present, entry.present),
            (sides[0].near, sides[1].near, entry.near),
        ):
            assert not set(one) & set(two)
            assert set(one) | set(two) == set(both)
            assert one and two
