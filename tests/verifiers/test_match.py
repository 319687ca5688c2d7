"""Numbers within a tolerance, exact and fuzzy comparison with a reference."""

from __future__ import annotations

import difflib
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verifiers.conftest import check, met

from rubricate.errors import VerifierError
from rubricate.judges.verifiers import match
from rubricate.judges.verifiers.match import lcs_ratio, normalised, token_f1
from rubricate.judges.verifiers.numerals import find_numbers


def values(text: str, decimal: match.Decimal = "auto") -> list[float | None]:
    return [None if number.value is None else float(number.value) for number in find_numbers(text, decimal)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("The answer is 72.", [72]),
        ("1,234.5 and 1'234 and 1.234,5 and 1,234", [1234.5, 1234, 1234.5, 1234]),
        ("10\u202f000 or 10\u00a0000", [10000, 10000]),
        ("1,234,567.25", [1234567.25]),
        ("1.234.567", [1234567]),
        ("3,5 kg", [3.5]),
        ("3.141", [3.141]),
        ("0,123", [0.123]),
        ("list 1,2,3", [1, 2, 3]),
        ("on 2024-05-01 and 1.5.2024 and 5/6/2024", [2024, 5, 1, 1, 5, 2024, 5, 6, 2024]),
        ("5-3 (-4) x=-3 −2 –7", [5, 3, -4, -3, -2, 7]),
        ("- 5 apples", [5]),
        ("-$5 and $1,000 and €3", [-5, 1000, 3]),
        ("1.2e5, 3E-2, 1.2 × 10^5, 2x10^{-3}, 10⁵, 4·10⁻²", [120000, 0.03, 120000, 0.002, 100000, 0.04]),
        ("3/4, 1 1/2, ½, 1½, \\frac{3}{4}, 5 / 2", [0.75, 1.5, 0.5, 1.5, 0.75, 2.5]),
        ("25%, 12.5 %, 30 percent, 5\\%", [25, 12.5, 30, 5]),
        ("CO2 and GPT4 and v1.5", []),
        ("答えは840円です。第３章、−１２", [840, 3, -12]),
        ("x^2 and 3^2 and 110^2", [2, 3, 2, 110, 2]),
        (".5 and 7.", [0.5, 7]),
        ("1{,}234 and 12\\,345", [1234, 12345]),
        ("1/0", [None]),
        ("9" * 500, [None]),
        ("1e999999", [None]),
    ],
)
def test_numbers_are_read(text: str, found: list[float | None]) -> None:
    assert values(text) == found


def test_the_decimal_mark_can_be_set() -> None:
    assert values("1.200", ",") == [1200]
    assert values("1.200") == [1.2]
    assert values("1,200", ".") == [1200]
    assert values("1,20", ".") == [1, 20]
    assert values("68,50", ",") == [68.5]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12))
def test_a_written_number_is_read_back(number: object) -> None:
    for text in (f"{number:f}", f"{number:,f}"):
        assert [found.value for found in find_numbers(f"It is {text} in all.")] == [Fraction(str(number))]


@given(st.text(st.sampled_from("0123456789.,'-+/% eE^×()½²$\u00a0")))
def test_reading_numbers_never_fails(text: str) -> None:
    for decimal in ("auto", ".", ","):
        find_numbers(text, decimal)


def test_the_number_of_a_long_response() -> None:
    filler = "word " * 5_000
    assert met("number", f"{filler} 1 {filler} 2 {filler}", value=2)
    assert met("number", f"{filler} 1 {filler} 2 {filler}", value=1, which="first")
    assert met("number", "1 then " + "2" * 30_000 + "3", value=1, which="first")
    assert not met("number", "1 then " + "2" * 30_000 + "3", value=3)
    assert met("number", f"{filler} 1 {filler} 2 {filler} 12 34", value=34)


def test_number_last_first_any() -> None:
    text = "First 3, then 4, so the answer is 12."
    assert met("number", text, value=12)
    assert not met("number", text, value=4)
    assert met("number", text, value=3, which="first")
    assert met("number", text, value=4, which="any")
    assert met("number", "so \\boxed{12}. I checked it 2 times.", value=12)
    assert met("number", "so \\boxed{\\frac{3}{4}}, twice: 2", value="3/4")
    assert met("number", "Answer: 7 (out of 10)", value=7, extract=r"Answer: (\d+)")
    assert not met("number", "It is 7", value=7, extract=r"Answer: (\d+)")
    assert met("number", "a 1 b 2 c", value=2, extract=r"\d")
    assert not met("number", "none", value=1)


@pytest.mark.parametrize(
    ("text", "value", "tolerance", "relative", "expected"),
    [
        ("72.01", 72, 0.01, 0.0, True),
        ("72.011", 72, 0.01, 0.0, False),
        ("0.3", 0.3, 0.0, 0.0, True),
        ("101", 100, 0.0, 0.01, True),
        ("101.1", 100, 0.0, 0.01, False),
        ("0.333", "1/3", 0.001, 0.0, True),
        ("-5", 5, 0.0, 0.0, False),
        ("1,000,000", 1e6, 0.0, 0.0, True),
        (str(2**60 + 1), 2**60, 0.0, 0.0, False),
    ],
)
def test_the_tolerance_is_exact(
    text: str, value: object, tolerance: float, relative: float, expected: bool
) -> None:
    assert met("number", text, value=value, tolerance=tolerance, relative=relative) == expected


def test_percentages() -> None:
    assert met("number", "25%", value=25)
    assert not met("number", "25%", value=0.25)
    assert met("number", "25%", value=0.25, percent="ratio")
    assert met("number", "25%", value=0.25, percent="either")
    assert met("number", "25%", value=25, percent="either")
    assert check("number", "It is 25 %.", reference="25%", percent="ratio").met


def test_the_number_comes_from_the_reference() -> None:
    assert check("number", "I get 72 apples.", reference="48 + 24 = 72\n#### 72").met
    with pytest.raises(VerifierError, match="no number to compare with"):
        check("number", "72")
    with pytest.raises(VerifierError, match="reference has no number"):
        check("number", "72", reference="seventy-two")
    for wrong in ("none", "1 and 2", True, [1]):
        with pytest.raises(VerifierError, match="argument 'value'"):
            check("number", "72", value=wrong)


def test_exact() -> None:
    assert check("exact", " “Paris.” ", reference="paris").met
    assert check("exact", "ＰＡＲＩＳ", reference="Paris").met
    assert not check("exact", "It is Paris", reference="Paris").met
    assert not check("exact", "Paris.", reference="Paris", normalise="space").met
    assert check("exact", "a  b\n", reference="a b", normalise="space").met
    assert not check("exact", "a ", reference="a", normalise="none").met
    assert check("exact", "The U.S. Army", reference="us army", normalise="squad").met
    assert met("exact", "Edo", answers=["Tokyo", "edo"])
    assert met("exact", "Reasoning...\nAnswer: B", answers=["B"], extract=r"Answer: (\w)")
    assert not met("exact", "no answer", answers=["B"], extract=r"Answer: (\w)")
    assert met("exact", "+", answers=["+"])
    assert not met("exact", "+", answers=["-"])
    with pytest.raises(VerifierError, match="no answer to compare with"):
        check("exact", "a")
    with pytest.raises(VerifierError, match="argument 'extract'"):
        check("exact", "a", answers=["a"], extract="(")


def test_fuzzy() -> None:
    found = check("fuzzy", "the quick brown fox", reference="The quick brown fix!")
    assert found.met and found.value is not None and 0.9 < found.value < 1
    assert found.score is None
    assert not check("fuzzy", "something else", reference="The quick brown fix!").met
    partial = check("fuzzy", "quick fox", reference="the quick brown fox", partial=True, threshold=0.9)
    assert not partial.met and partial.score == partial.value
    assert check("fuzzy", "same", reference="same", partial=True, threshold=1.0).score == 1.0
    assert check("fuzzy", "fox brown", reference="brown fox", measure="words", threshold=1.0).met
    assert check("fuzzy", "", reference="", threshold=1.0).met
    assert check("fuzzy", "今日は晴れです", reference="今日は晴れでした", threshold=0.7).met


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_the_character_ratio_is_that_of_a_longest_common_subsequence(left: str, right: str) -> None:
    lengths = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            lengths[i + 1][j + 1] = lengths[i][j] + 1 if a == b else max(lengths[i][j + 1], lengths[i + 1][j])
    total = len(left) + len(right)
    expected = 2 * lengths[-1][-1] / total if total else 1.0
    assert lcs_ratio(left, right) == pytest.approx(expected)
    assert lcs_ratio(left, right) == lcs_ratio(right, left)
    assert lcs_ratio(left, right) >= difflib.SequenceMatcher(None, left, right, autojunk=False).ratio() - 1e-9


@given(st.text(max_size=30), st.text(max_size=30))
def test_similarities_are_shares(left: str, right: str) -> None:
    for measure in (lcs_ratio, token_f1):
        assert 0 <= measure(left, right) <= 1
        assert measure(left, left) == 1


@given(st.text())
def test_normalising_twice_is_normalising_once(text: str) -> None:
    for how in ("none", "space", "squad"):
        assert normalised(normalised(text, how), how) == normalised(text, how)


def test_a_long_response_is_not_met_against_a_short_reference_in_time() -> None:
    start = time.process_time()
    assert not check("fuzzy", "ab " * 300_000, reference="abc " * 500).met
    assert time.process_time() - start < 30
    huge = "ab " * 80_000
    assert not check("fuzzy", huge * 8, reference=huge).met
    with pytest.raises(VerifierError, match="too long to compare"):
        check("fuzzy", huge, reference=huge)
