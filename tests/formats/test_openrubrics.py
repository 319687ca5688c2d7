"""OpenRubrics' numbered texts.

Columns as public code that loads OpenRubrics/OpenRubrics and OpenRubric-v2 names them, and the data notes of
RUBRIC-ARROW (Haoxiang03/RUBRIC-ARROW: `rlhf/README.md`, `judge/README.md`).
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubricate.errors import ConfigError, FormatError
from rubricate.rubrics import Criterion, CriterionKind, Polarity, Rubric
from rubricate.rubrics.formats import Note, Place, convert, detect, dump_rubrics, load_rubrics, parse_rubric
from rubricate.rubrics.formats.openrubrics import FORMAT

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
HARD, PRINCIPLE = CriterionKind.HARD_RULE, CriterionKind.PRINCIPLE

TEXT = (
    "1. The response has at most three sentences. [Hard Rule]\n"
    "2. The response explains before it concludes. [Principle]\n"
    "3. The response names its sources. [Principle]"
)
ROW: dict[str, object] = {
    "instruction": "Why is the sky blue?",
    "response_a": "Because.",
    "response_b": "Short waves scatter more.",
    "winner": "Response B",
    "rubric": TEXT,
    "source": "made up",
}


def read(text: str, notes: list[Note] | None = None) -> list[tuple[str, CriterionKind | None]]:
    rubric = parse_rubric(text, format="openrubrics", notes=notes)
    assert dump_rubrics(rubric, "openrubrics") == [{"rubric": text}], "the source's text comes back"
    return [(criterion.text, criterion.kind) for criterion in rubric.criteria]


def test_a_row_becomes_a_rubric_and_a_row_again() -> None:
    notes: list[Note] = []
    rubric = parse_rubric(ROW, notes=notes)
    assert notes == []
    assert rubric.ids == ("c1", "c2", "c3")
    assert [c.kind for c in rubric.criteria] == [HARD, PRINCIPLE, PRINCIPLE]
    assert [c.weight for c in rubric.criteria] == [1, 1, 1]
    assert {c.polarity for c in rubric.criteria} == {Polarity.REWARD}
    assert rubric.criteria[0].text == "The response has at most three sentences."
    assert rubric.metadata["winner"] == "Response B"
    (written,) = dump_rubrics(rubric, "openrubrics")
    assert json.dumps(written) == json.dumps(ROW)


@pytest.mark.parametrize(
    "record",
    [
        {"instruction": "i", "rubric": TEXT, "source": "s"},
        {"messages": [{"role": "user", "content": "i"}], "rubrics": [TEXT]},
        {"rubrics": [TEXT], "original_prompt": "i", "chosen": "a", "rejected": "b", "tag": "chosen"},
        {"prompt": "p", "rubrics": TEXT},
        {"id": "r1", "rubric": [TEXT]},
    ],
)
def test_every_layout_of_the_row_comes_back(record: dict[str, object]) -> None:
    rubric = parse_rubric(record)
    assert detect(record) == "openrubrics"
    assert len(rubric) == 3
    assert json.dumps(dump_rubrics(rubric, "openrubrics")) == json.dumps([record])


def test_a_text_alone_is_read() -> None:
    assert detect(TEXT) == "openrubrics"
    assert read(TEXT)[1] == ("The response explains before it concludes.", PRINCIPLE)


def test_weights_of_rubric_arrow() -> None:
    rubric = parse_rubric(ROW, weights="arrow")
    assert [c.weight for c in rubric.criteria] == [3, 1, 1]
    with pytest.raises(FormatError, match=r"cannot hold.*weight \(c1\)"):
        dump_rubrics(rubric, "openrubrics")
    assert dump_rubrics(rubric, "openrubrics", lossy=True) == [ROW]
    with pytest.raises(FormatError, match=r"item 2 \(line 2 of the text\) has no tag, and so no weight"):
        parse_rubric("1. The response a. [Principle]\n2. The response b.", weights="arrow")
    with pytest.raises(ConfigError, match="equal, arrow"):
        parse_rubric(ROW, weights="arrows")


@pytest.mark.parametrize(
    "text",
    [
        "1) The response is short. [Hard Rule]\n2) The response is clear. [Principle]",
        "**1.** The response is short. [Hard Rule]\n**2.** The response is clear. [Principle]",
        "**1. The response is short. [Hard Rule]**\n**2. The response is clear. [Principle]**",
        "1. The response is short. **[Hard Rule]**\n2. The response is clear. _[Principle]_",
        "1. The response is short. [HARD RULE]\r\n2. The response is clear. [ principle ]",
        "1. The response is short. [Hard Rule].\n\n\n2.The response is clear. [Principle];\n",
        "1. The response is\n   short.\n   [Hard Rule]\n2. The  response is clear. [Principle]",
        "1. The response is short. [Hard Rule] 2. The response is clear. [Principle]",
        "- 1. The response is short. [Hard-Rule]\n- 2. The response is clear. \\[Principle\\]",
        "(1) The response is short. `[Hard Rule]`\n(2) The response is clear. [**Principle**]",
        "### 1. The response is short. [Hard Rule]\n### 2. The response is clear. [Principle]",
    ],
)
def test_other_ways_of_writing_the_same_list(text: str) -> None:
    notes: list[Note] = []
    expected = [("The response is short.", HARD), ("The response is clear.", PRINCIPLE)]
    assert detect(text) == "openrubrics"
    assert read(text, notes) == expected
    assert notes == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Rubric:\n\n1. The response a. [Hard Rule]\n2. The response b. [Principle]", "before the list"),
        ("<think>1. x [Principle]</think>\n1. The response a. [Hard Rule]\n2. The response b. [Principle]", ""),
        (
            "- [Hard Rule]: strict\n\n1. The response a. [Hard Rule]\n2. The response b. [Principle]",
            "before the list",
        ),
        (
            "1. The response a. [Hard Rule]\n2. The response b. [Principle]\n\nThese cover the request.",
            "after item 2",
        ),
        ("```\n1. The response a. [Hard Rule]\n2. The response b. [Principle]\n```", "after item 2"),
        ("1. The response a. [Hard Rule]\n\n## Quality\n2. The response b. [Principle]", "after item 1"),
        ("1. The response a. [Hard Rule]\n4. The response b. [Principle]", "numbered 1, 4"),
        ("1. The response a. [Hard Rule]\n1. The response b. [Principle]", "numbered 1, 1"),
        ("- The response a. [Hard Rule]\n- The response b. [Principle]", "bullets"),
        ("1. [Hard Rule] The response a.\n2. **[Principle]** The response b.", "its tag in front"),
    ],
)
def test_what_is_odd_is_read_and_noted(text: str, words: str) -> None:
    notes: list[Note] = []
    assert read(text, notes) == [("The response a.", HARD), ("The response b.", PRINCIPLE)]
    assert {note.kind for note in notes} <= {"layout"}
    assert words in " ".join(note.message for note in notes)
    assert bool(notes) == bool(words)


def test_a_missing_tag_and_another_opening_are_noted() -> None:
    notes: list[Note] = []
    found = read("1. The response a. [Hard Rule]\n2. Names b\n3. The response c. [Principle]", notes)
    assert found == [("The response a.", HARD), ("Names b", None), ("The response c.", PRINCIPLE)]
    assert [note.message for note in notes] == [
        "item 2 (line 2 of the text) has no tag",
        'not opening with "The response": c2',
    ]


def test_numbers_inside_an_item_are_part_of_it() -> None:
    nested = (
        "1. The response has:\n   1. a title\n   2. a body\n   [Hard Rule]\n2. The response rates 4.5. [Principle]"
    )
    assert read(nested) == [
        ("The response has: 1. a title 2. a body", HARD),
        ("The response rates 4.5.", PRINCIPLE),
    ]
    assert read("1. The response has\n1) a title\n2) a body [Hard Rule]") == [
        ("The response has 1) a title 2) a body", HARD)
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1. The response a. [Hard Rule]\nThe response b. [Principle]", "item 1 (line 1 of the text) has 2 tags"),
        ("1. The response a. [Hard Rule]\n2. [Principle]", "item 2 (line 2 of the text) has no text"),
        ("\n1. The response a. [Hard Rule] since x\n2. The response b. [Principle]", "item 1 (line 2"),
        ("1. The response a. [Hard Rule]\n   - detail\n2. The response b. [Principle]", "'- detail'"),
        ("1. The response a. [Hard Rule]\n2. The response b.\n\nThat is all.", "item 2 (line 2"),
        ("[Hard Rule]\n1. The response a.\n[Principle]\n2. The response b.", "line 1 of the text is a tag"),
        ("The response a. [Hard Rule]\n2. The response b. [Principle]", "line 1 of the text has a tag but no"),
        ("The response a. [Hard Rule]", "no numbered list"),
        (
            "1. The response a. [Hard Rule]\n2. The response b. [Princple]\n",
            "item 2 (line 2 of the text) has '[Princ",
        ),
        (
            "1. The response a. [Hrd Rule]\n2 The response b. [Principle]",
            "'[Hrd Rule]', which looks like a misspelt",
        ),
        ("1. The response a. [Soft Wish]\n2. The response b. [Principle]", "'[Soft Wish]', which is none of"),
        ("1. The response a [Hard Rule]\n2) The response b [Principle]", "in another way"),
    ],
)
def test_what_cannot_be_read_names_item_and_line(text: str, words: str) -> None:
    for value, field in ((text, ""), (ROW | {"rubric": text}, "rubric")):
        with pytest.raises(FormatError) as caught:
            parse_rubric(value)
        assert words in str(caught.value)
        assert caught.value.field == field


def test_wrong_fields_are_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"'rubrics': expected one text in this list, found 2"):
        parse_rubric({"rubrics": [TEXT, TEXT]})
    for value, field, words in (
        ({"instruction": "i"}, "rubric", "missing"),
        ({"rubric": 5}, "rubric", "int"),
        ({"rubric": " "}, "rubric", "blank"),
        ({"rubrics": [5]}, "rubrics[0]", "int"),
        ({"rubric": "1. The response a."}, "rubric", "no tag"),
        ({"rubric": TEXT, "openrubrics:text": "x"}, "openrubrics:text", "reserved"),
    ):
        with pytest.raises(FormatError) as caught:
            FORMAT.parse(value, Place(), {})
        assert caught.value.field == field
        assert words in str(caught.value)
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + json.dumps(ROW | {"rubric": "1. [Hard Rule]"}) + "\n")
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert (caught.value.line, caught.value.field) == (2, "rubric")


def test_texts_that_are_something_else() -> None:
    assert not FORMAT.fits("1. The response is short.\n2. The response is clear.")
    assert not FORMAT.fits({"rubric": "1. The response is short."})
    assert not FORMAT.fits("[Quality]\nScore 1: 1. a [Hard Rule]\nScore 2: b\nScore 3: c\nScore 4: d\nScore 5: e")
    assert detect(["1. The response is short. [Hard Rule]"]) == "native"
    quoting = json.dumps({"criteria": [{"text": "Ends with [Hard Rule]"}]}, indent=1)
    assert parse_rubric(quoting).criteria[0].text == "Ends with [Hard Rule]"


def test_a_changed_rubric_is_written_anew() -> None:
    messy = ROW | {"rubric": "Here:\n1) The response a. [hard rule]\n\n2) The response b [Principle]."}
    rubric = parse_rubric(messy)
    assert dump_rubrics(rubric, "openrubrics") == [messy]
    first, second = rubric.criteria
    changed = rubric.model_copy(update={"criteria": (second, first.model_copy(update={"kind": PRINCIPLE}))})
    assert dump_rubrics(changed, "openrubrics", lossy=True)[0]["rubric"] == (
        "1. The response b [Principle]\n2. The response a. [Principle]"
    )


def test_rubrics_from_elsewhere() -> None:
    plain = Rubric(criteria=(Criterion(id="c1", text="Cites sources.", kind=HARD),))
    assert dump_rubrics(plain, "openrubrics") == [{"rubric": "1. Cites sources. [Hard Rule]"}]
    other = Criterion(id="x", text="Two\nlines.", weight=2, tags=("a",), metadata={"k": 1})
    with pytest.raises(FormatError) as caught:
        dump_rubrics(Rubric(criteria=(other,)), "openrubrics")
    for words in ("id (x)", "weight (x)", "kind", "line breaks in text (x)", "tags (x)", "metadata.k"):
        assert words in str(caught.value)
    assert dump_rubrics(Rubric(criteria=(other,)), "openrubrics", lossy=True) == [
        {"rubric": "1. Two lines. [Principle]"}
    ]
    bad = Criterion(id="lies", text="Lies.", polarity=Polarity.PENALTY)
    with pytest.raises(FormatError, match="no penalties.*'lies'"):
        dump_rubrics(Rubric(criteria=(bad,)), "openrubrics", lossy=True)


@pytest.mark.parametrize("text", ["Ends with [Principle]", "**Half bold", "See:\n\n[Hard Rule]\n2. More"])
def test_texts_that_a_list_cannot_hold_are_refused(text: str) -> None:
    criteria = (Criterion(id="c1", text=text, kind=HARD), Criterion(id="c2", text="b", kind=HARD))
    with pytest.raises(FormatError, match=r"cannot be written as a list|read as something else"):
        dump_rubrics(Rubric(criteria=criteria), "openrubrics", lossy=True)


def test_converting_moves_the_prompt(tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps({"question": "q?", "rubric": [{"description": "The response d.", "weight": 1}]}))
    convert(source, target, to_format="openrubrics", lossy=True)
    assert json.loads(target.read_text()) == {"instruction": "q?", "rubric": "1. The response d. [Principle]"}


@pytest.mark.parametrize(
    "unit", ["*", "_", "[", "[ ", "1. ", "\n1.", "[Hard Rule]", "1. x [Hard Rule] ", " \n", ">"]
)
def test_long_texts_take_no_quadratic_time(unit: str) -> None:
    started = time.process_time()
    try:
        parse_rubric("1. The response " + unit * (60_000 // len(unit)), format="openrubrics")
    except FormatError:
        pass
    assert time.process_time() - started < 5


sentence = st.text('ab .é漢*_[]()"1:', min_size=1, max_size=12).filter(lambda value: bool(value.strip()))
kinds = st.sampled_from([HARD, PRINCIPLE])
extra = st.dictionaries(st.text("abc", min_size=1, max_size=4).map("x_{}".format), st.none() | sentence, max_size=2)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Lists as models write them, some of them broken."""
    style = draw(st.sampled_from(["{}. ", "{}) ", "**{}.** ", "- ", "  {}. ", "{}: "]))
    good = ["[Hard Rule]", "[Principle]", "**[hard rule]**", "[Principle].", "`[ Hard Rule]`", " [principles]"]
    tags = [*good, *good, "", "[Principle] x"]
    lines = [draw(st.sampled_from(["", "", "Rubric:\n", "```\n", "[Hard Rule]\n"]))]
    for number in range(1, draw(st.integers(1, 4)) + 1):
        body = draw(st.sampled_from(["The response ", "the response\n  ", ""])) + draw(sentence)
        lines.append(f"{style.format(number)}{body} {draw(st.sampled_from(tags))}")
        lines.append(draw(st.sampled_from(["\n", "\n\n", " \r\n", "\n\nMore.\n", " ", "\nMore.\n"])))
    return "".join(lines)


@relaxed
@given(texts() | st.text(max_size=30).map(lambda value: value + " [Hard Rule]"), extra)
def test_any_text_that_can_be_read_comes_back_byte_for_byte(text: str, columns: dict[str, object]) -> None:
    record: dict[str, object] = {"rubric": text}
    record |= columns
    try:
        rubric = parse_rubric(record, format="openrubrics")
    except FormatError:
        return
    (written,) = dump_rubrics(rubric, "openrubrics")
    assert written == record
    assert list(written) == list(record)
    assert parse_rubric(written, format="openrubrics") == rubric
    assert parse_rubric(dump_rubrics(rubric)[0], format="native") == rubric


@relaxed
@given(st.lists(st.tuples(sentence, kinds), min_size=1, max_size=4), extra, st.sampled_from(["", "r 1"]))
def test_any_rubric_without_losses_comes_back_as_it_was(
    entries: list[tuple[str, CriterionKind]], metadata: dict[str, object], name: str
) -> None:
    criteria = tuple(
        Criterion(id=f"c{index + 1}", text=text, kind=kind) for index, (text, kind) in enumerate(entries)
    )
    rubric = Rubric(criteria=criteria, metadata=metadata, id=name)
    if FORMAT.losses(rubric):
        return
    try:
        (record,) = dump_rubrics(rubric, "openrubrics")
    except FormatError as error:
        assert "read as" in str(error) or "as a list" in str(error)
        return
    assert parse_rubric(record) == rubric
