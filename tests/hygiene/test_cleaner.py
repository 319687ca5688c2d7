"""One pass of hygiene over rows: reasons, splits, licences and sources, documented columns."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from rubricate.data.hygiene import Cleaner
from rubricate.data.hygiene_benchmarks import Benchmark, Decontaminator
from rubricate.data.hygiene_columns import ColumnReport, describe_columns, with_origin
from rubricate.data.hygiene_duplicates import Deduplicator
from rubricate.errors import ConfigError, FormatError

ITEM = "Explain in your own words why the sky is blue during the day and red in the evening"


def rows() -> list[Mapping[str, object]]:
    return [
        {"prompt": "Name three rivers of France.", "license": "MIT", "source": "rivers", "extra": [1]},
        {"question": f"{ITEM}, please."},
        {"messages": [{"role": "user", "content": "name three rivers of france"}]},
        {"prompt": "Name three rivers of France.", "reference": "Seine"},
        {"prompt": "Write a poem about the sea.", "licence": "CC-BY-4.0"},
        {"prompt": f"{ITEM}!"},
        {"prompt": "Write a letter to a friend about nothing at all.", "license": None},
    ]


def cleaner() -> Cleaner:
    return Cleaner(
        deduplicator=Deduplicator(),
        decontaminator=Decontaminator([Benchmark("sky", (ITEM,))]),
        splits={"train": 0.5, "test": 0.5},
        source="mine",
    )


def test_every_row_comes_back_with_its_reason() -> None:
    made = cleaner()
    found = list(made.clean(rows()))
    assert [one.row for one in found] == list(range(7))
    assert [one.removed.rule if one.removed else None for one in found] == [
        None,
        "contaminated",
        "near_duplicate",
        "exact_duplicate",
        None,
        "contaminated",
        None,
    ]
    assert found[1].removed is not None
    assert found[1].removed.reason == "it holds item 0 of sky (13-gram)"
    assert found[3].removed is not None
    assert found[3].removed.duplicate is not None
    assert found[3].removed.duplicate.of == 0  # numbers count contaminated rows too
    report = made.report
    assert (report.rows, report.kept) == (7, 3)
    assert report.removed == {"contaminated": 2, "near_duplicate": 1, "exact_duplicate": 1}
    assert report.benchmarks == {"sky": 2}
    assert sum(report.splits.values()) == 3
    json.dumps(report.to_dict(), allow_nan=False)


def test_licence_and_source_are_carried_and_never_made_up() -> None:
    made = cleaner()
    kept = [one.record for one in made.clean(rows()) if one.removed is None]
    assert [(row["source"], row["license"]) for row in kept] == [
        ("rivers", "MIT"),
        ("mine", "CC-BY-4.0"),
        ("mine", None),
    ]
    assert made.report.licences == {"MIT": 1, "CC-BY-4.0": 1, "unknown": 1}
    assert kept[0]["extra"] == [1]
    given: dict[str, object] = {"prompt": "p", "license": " ", "question_source": "web"}
    assert with_origin(given, licence="MIT") == {**given, "license": "MIT", "source": "web"}
    assert given["license"] == " "


async def test_async_callers_and_several_calls_share_what_was_seen() -> None:
    made = cleaner()
    first = [one async for one in made.aclean(rows()[:1])]
    second = [one async for one in made.aclean(rows()[3:4])]
    assert first[0].removed is None
    assert second[0].removed is not None
    assert (second[0].row, made.report.rows) == (1, 2)


def test_a_row_without_a_prompt_is_named() -> None:
    with pytest.raises(FormatError, match="row 1"):
        list(Cleaner().clean([{"prompt": "p"}, {"text": "q"}]))
    found = list(Cleaner(columns={"prompt": "text"}).clean([{"text": "q"}]))
    assert found[0].record["text"] == "q"
    assert "split" not in found[0].record


def test_columns_are_documented_in_memory_that_does_not_grow() -> None:
    records: list[dict[str, object]] = [
        {"prompt": "ab", "n": 1, "x": None},
        {"prompt": "abcd", "n": 2.5, "flag": True, "rubric": {}},
    ]
    columns = {one.name: one for one in describe_columns(records, {"n": "a number"})}
    assert list(columns) == ["prompt", "n", "x", "flag", "rubric"]
    prompt = columns["prompt"]
    assert (prompt.rows, prompt.shortest, prompt.longest, prompt.characters) == (2, 2, 4, 6)
    assert "responses answer" in prompt.meaning
    assert (columns["n"].low, columns["n"].high, columns["n"].meaning) == (1.0, 2.5, "a number")
    assert columns["n"].types == {"integer": 1, "number": 1}
    assert (columns["x"].rows, columns["x"].missing) == (1, 1)
    assert columns["flag"].types == {"boolean": 1}
    many = describe_columns({"prompt": f"text {n}"} for n in range(60))
    assert many[0].values is None
    assert many[0].rows == 60


def test_columns_that_nobody_documented_are_named() -> None:
    report = ColumnReport({"mine": "something"})
    report.add({"prompt": "p", "mine": 1, "odd": 2})
    with pytest.raises(ConfigError, match="odd"):
        report.check()
    report = ColumnReport({"odd": "something"})
    report.add({"prompt": "p", "odd": 2})
    report.check()


def test_a_seed_without_a_split_is_refused() -> None:
    with pytest.raises(ConfigError, match="splits"):
        Cleaner(seed=3)
    with pytest.raises(ConfigError, match="sum of 1"):
        Cleaner(splits={"train": 0.5})
