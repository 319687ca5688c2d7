"""What stands behind the JSON of a reply: contradictions are failures, and nothing else is. Loops cost little."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.errors import ParseError
from rubricate.judges.pairwise_reading import FORMATS, read_pair
from rubricate.judges.parsing import (
    parse_criterion_scores,
    parse_criterion_verdicts,
    parse_preference,
    parse_score,
    parse_scores,
    parse_verdict,
    reading,
)
from rubricate.judges.parsing.contest import Contest
from rubricate.judges.parsing.reading import read_reply
from rubricate.judges.spct import read_boxed

LABELS = ("Response A", "Response B")
ENTRIES = '[{"id": "C1", "reason": "x", "verdict": %s}, {"id": "C2", "reason": "y", "verdict": %s}]'
TWO = '{"verdicts": ' + ENTRIES % ('"met"', '"unmet"') + ', "final": {"C1": "met", "C2": "unmet"}}'
SCORES = '{"verdicts": ' + ENTRIES % ("9", "4") + ', "final": {"C1": 9, "C2": 4}}'


def refused(read: Callable[[], object]) -> str:
    with pytest.raises(ParseError) as caught:
        read()
    return caught.value.kind


@pytest.mark.parametrize(
    ("behind", "ambiguous"),
    [
        ("C1 is not met.", ("C1",)),
        ("Criterion 1 is not met.", ("C1",)),
        ("C1: unmet", ("C1",)),
        ("Verdict for C1: unmet", ("C1",)),
        ('"C1" should be "unmet".', ("C1",)),
        ("C1 is met, but C2 is met as well.", ("C2",)),
        ("The response meets C2 but fails C1.", ("C1", "C2")),
        ("C1 and C2 are not met.", ("C1",)),
        ("C1 and C2 are met.", ("C2",)),
        ("None of the criteria are met.", ("C1",)),
        ("All criteria are met.", ("C2",)),
        ("On reflection, C1 fails.", ("C1",)),
        ("C1 is met. C2 is not met.", ()),
        ("Not all of the criteria are met.", ()),
        ("All criteria are met except C2.", ("C2",)),
        ("Is C1 not met?", ()),
        ("If C1 were not met, I would have said so.", ()),
        ('The response claims "C2 is met".', ()),
        ("C12 is not met.", ()),
        ("I hope that this helps.", ()),
    ],
)
def test_verdicts_on_several_criteria(behind: str, ambiguous: tuple[str, ...]) -> None:
    found = parse_criterion_verdicts(f"{TWO}\n\n{behind}", ["C1", "C2"])
    assert found.ambiguous == ambiguous
    right = {"C1": "met", "C2": "unmet"}
    assert found.verdicts == {id: verdict for id, verdict in right.items() if id not in ambiguous}


@pytest.mark.parametrize(
    ("behind", "ambiguous"),
    [
        ("C1 should be 3.", ("C1",)),
        ("C1: 3", ("C1",)),
        ("Score for C1: 3/10", ("C1",)),
        ("Criterion 2 deserves a 7.", ("C2",)),
        ("C1: 9, and C2: 4", ()),
        ("C1 is 3 sentences too long.", ()),
        ("C1 should be 9.", ()),
    ],
)
def test_scores_on_several_criteria(behind: str, ambiguous: tuple[str, ...]) -> None:
    found = parse_criterion_scores(f"{SCORES}\n{behind}", {"C1": (0, 10), "C2": (0, 10)})
    assert found.ambiguous == ambiguous


def test_one_criterion_needs_no_name_and_others_are_not_meant() -> None:
    one = '{"verdicts": [{"id": "C2", "reason": "x", "verdict": "met"}], "final": {"C2": "met"}}'
    for behind in ("Unmet.", "The criterion is not met.", "Verdict: unmet"):
        assert parse_criterion_verdicts(f"{one}\n{behind}", ["C2"]).ambiguous == ("C2",)
    known = parse_criterion_verdicts(f"{one}\nC1 is not met.", ["C2"], known=["C1"])
    assert known.verdicts == {"C2": "met"}


@pytest.mark.parametrize(
    "behind", ["Unmet.", "It is not met.", "So it is unmet!", "The criterion is not met.", "No."]
)
def test_a_single_verdict(behind: str) -> None:
    assert refused(lambda: parse_verdict(f'{{"verdict": "met"}}\n{behind}')) == "ambiguous"
    assert parse_verdict(f'{{"verdict": "unmet"}}\n{behind}') == "unmet"


@pytest.mark.parametrize("behind", ["I would rate it 3 out of 10.", "The rating should be 3.", "Score: 3", "3/10"])
def test_a_single_score(behind: str) -> None:
    assert refused(lambda: parse_score(f'{{"score": 9}}\n{behind}', 1, 10)) == "ambiguous"
    assert parse_score(f'{{"score": 3}}\n{behind}', 1, 10) == 3


@pytest.mark.parametrize(
    "behind",
    ["Correction: B.", "Response B is better.", "Actually, B wins.", "On reflection Response B should win."],
)
def test_the_winner_of_a_pair(behind: str) -> None:
    ours = '{"criteria": [], "reason": "x", "winner": "A", "final": "A"}'
    form = FORMATS["rubricate"]
    assert refused(lambda: read_pair(form, f"{ours}\n{behind}", (), True, ())) == "ambiguous"
    assert read_pair(form, f"{ours}\nResponse A is better.", (), True, ()).side == "A"
    tagged = "<eval>x</eval><answer>[[A]]</answer>"
    assert refused(lambda: read_pair(FORMATS["rm-r1"], f"{tagged}\n{behind}", (), False, ())) == "ambiguous"
    assert read_pair(FORMATS["rm-r1"], f"{tagged}\nI am done.", (), False, ()).side == "A"


TAG = "The task is to explain </think> and [THINK]."
READERS: dict[str, tuple[Callable[[str, tuple[str, ...]], object], str, str]] = {
    "verdict": (lambda r, q: parse_verdict(r, quoted=q), '{"verdict": "unmet"}', '{"verdict": "met"}'),
    "score": (lambda r, q: parse_score(r, 1, 10, quoted=q), '{"score": 2}', '{"score": 9}'),
    "scores": (
        lambda r, q: parse_scores(r, ["A", "B"], 1, 10, quoted=q),
        '{"scores": {"A": 2, "B": 2}}',
        '{"scores": {"A": 9, "B": 2}}',
    ),
    "preference": (lambda r, q: parse_preference(r, LABELS, ties=True, quoted=q), "Winner: B", "Winner: A"),
    "verdicts": (
        lambda r, q: dict(parse_criterion_verdicts(r, ["C1"], quoted=q).verdicts) or refuse(),
        '{"C1": "unmet"}',
        '{"C1": "met"}',
    ),
    "criterion scores": (
        lambda r, q: dict(parse_criterion_scores(r, {"C1": (0, 10)}, quoted=q).scores) or refuse(),
        '{"C1": 1}',
        '{"C1": 9}',
    ),
    "boxes": (lambda r, q: read_boxed(r, 2, quoted=q), "Scores: \\boxed{2, 3}", "\\boxed{9, 3}"),
}


def refuse() -> object:
    raise ParseError("nothing was read", kind="ambiguous", reply="")


@pytest.mark.parametrize("name", READERS)
def test_a_quoted_tag_of_reasoning_hides_nothing(name: str) -> None:
    read, own, planted = READERS[name]
    reply = f"{own}\nIt says: </think>\n{planted}"
    assert read(reply, ()) == read(planted, ())  # the judge's own tag: what stands before it is reasoning
    assert refused(lambda: read(reply, (TAG,))) == "ambiguous"
    same = f"It says </think>, which is fine.\n{own}"
    assert read(same, (TAG,)) == read(own, ())


class Count:
    """Characters that went through a function."""

    def __init__(self) -> None:
        self.total = 0

    def of(self, read: Callable[..., object], place: int = 1) -> Callable[..., object]:
        def counted(*args: str, **kwargs: object) -> object:
            self.total += len(args[place])
            return read(*args, **kwargs)

        return counted


LOOPS = ("Winner: ", "Winner: Response ", "The winner is ", "Verdict: A or B ", "Answer: {n} Winner: {n} ")


@pytest.mark.parametrize("unit", LOOPS)
def test_a_reply_that_loops_costs_work_in_proportion_to_its_length(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(length: int) -> int:
        count = Count()
        with monkeypatch.context() as patch:
            patch.setattr(Contest, "read_text", count.of(Contest.read_text))
            text = "".join(unit.format(n=n) for n in range(length))[:length]
            refused(lambda: parse_preference(text, LABELS, ties=True))
        return count.total

    sizes = {length: work(length) for length in (6_000, 24_000)}
    assert all(total <= 12 * length + 60_000 for length, total in sizes.items())
    assert sizes[24_000] <= 6 * max(sizes[6_000], 6_000)


@pytest.mark.parametrize("source", ["a" * 4000, "ab c" * 1000, "".join(f"{n} birds " for n in range(500))])
def test_copies_are_found_in_one_pass(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is counted in characters that were compared while a passage was extended."""
    walked = 0
    extend = reading._extend  # pyright: ignore[reportPrivateUsage]  # the inner loop is what may be quadratic

    def counted(text: str, at: int, source: str, origin: int, floor: int) -> tuple[int, int]:
        nonlocal walked
        start, end = extend(text, at, source, origin, floor)
        walked += end - start
        return start, end

    monkeypatch.setattr(reading, "_extend", counted)
    for length in (10_000, 40_000):
        walked = 0
        text = (source * (length // len(source) + 1))[:length]
        found = read_reply(f"Verdict: met {text}", [source])
        assert walked <= 4 * length
        assert len(found.text) < 200


@given(st.integers(0, 300), st.integers(40, 400), st.text(max_size=30))
def test_a_copied_passage_is_masked_wherever_it_begins(start: int, length: int, lead: str) -> None:
    source = " ".join(f"word{n}" for n in range(150))
    copied = source[start : start + length]
    masked = read_reply(f"{lead}|{copied}|", [source]).own_words(f"{lead}|{copied}|")
    assert copied[20:-20] not in masked or len(copied) < 47
