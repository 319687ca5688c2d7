"""The mass of labels at an answer's position, whatever the tokens are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat import TokenLogprob
from rubricate.judges.mass import label_mass, plain_tokens

FIVE = ("1", "2", "3", "4", "5")
TEN = tuple(str(number) for number in range(1, 11))


def token(*top: tuple[str, float]) -> TokenLogprob:
    """A token with alternatives, the generated one first, as (text, probability)."""
    alternatives = tuple((text, math.log(p)) for text, p in top)
    return TokenLogprob(*alternatives[0], alternatives)


def test_all_spellings_of_a_label_add_up() -> None:
    mass = label_mass([token(("4", 0.4), (" 4", 0.2), ("**4", 0.1), ("4.", 0.1), ("5", 0.1), ("Score", 0.1))], FIVE)
    assert mass.shares["4"] == pytest.approx(0.8) and mass.shares["5"] == pytest.approx(0.1)
    assert mass.outside == pytest.approx(0.1)
    values = {label: float(label) for label in FIVE}
    assert mass.expected(values) == pytest.approx((0.8 * 4 + 0.1 * 5) / 0.9)


def test_a_blank_token_before_the_answer_is_followed() -> None:
    mass = label_mass([token((" ", 0.5), ("3", 0.3), ("The", 0.2)), token(("4", 0.8), ("5", 0.2))], FIVE)
    assert mass.shares == pytest.approx({"1": 0, "2": 0, "3": 0.3, "4": 0.4, "5": 0.1})


def test_ten_in_two_tokens_is_not_one() -> None:
    mass = label_mass([token(("1", 0.6), ("9", 0.4)), token(("0", 0.75), ("<|im_end|>", 0.25))], TEN)
    assert mass.shares["10"] == pytest.approx(0.45) and mass.shares["1"] == pytest.approx(0.15)
    assert mass.shares["9"] == pytest.approx(0.4) and mass.outside == pytest.approx(0.0)


def test_ten_in_one_token() -> None:
    mass = label_mass([token(("10", 0.7), ("9", 0.3))], TEN)
    assert mass.shares["10"] == pytest.approx(0.7)


def test_a_beginning_off_the_generated_path_is_outside() -> None:
    mass = label_mass([token(("7", 0.8), ("1", 0.2)), token(("\n", 1.0))], TEN)
    assert mass.shares["7"] == pytest.approx(0.8) and mass.outside == pytest.approx(0.2)


def test_an_answer_that_ends_where_another_could_go_on() -> None:
    one = [token(("1", 0.9), ("2", 0.1))]
    assert label_mass(one, TEN).shares["1"] == pytest.approx(0.9)
    assert label_mass(one, TEN, ended=False).shares["1"] == 0.0
    assert label_mass([*one, token(("", 1.0))], TEN, ended=False).shares["1"] == pytest.approx(0.9)


def test_a_number_outside_the_labels_is_none_of_them() -> None:
    mass = label_mass([token(("1", 1.0)), token(("2", 0.9), ("0", 0.1))], TEN)
    assert mass.shares["10"] == pytest.approx(0.1) and mass.outside == pytest.approx(0.9)
    assert label_mass([token(("45", 1.0))], FIVE).inside == 0.0
    assert label_mass([token(("-4", 0.6), ("4", 0.4))], FIVE).shares["4"] == pytest.approx(0.4)


def test_pieces_of_a_word_count_and_other_words_do_not() -> None:
    mass = label_mass(
        [token(("tr", 0.5), ("fal", 0.2), ("f", 0.1), ("True", 0.1), ("trust", 0.1))], ("true", "false")
    )
    assert mass.shares == pytest.approx({"true": 0.6, "false": 0.3})


def test_vocabulary_spellings_of_blanks_are_read_unless_the_text_has_them() -> None:
    tokens = (token(("Ġ▁true", 1.0)),)
    assert plain_tokens(tokens, " true")[0].token == "  true"
    assert plain_tokens(tokens, "Ġ true")[0].token == "Ġ true"


def test_nothing_listed_is_all_outside() -> None:
    assert label_mass([], FIVE).outside == 1.0
    assert label_mass([], FIVE).expected({label: 1.0 for label in FIVE}) is None


PIECES = st.sampled_from(["1", "0", "10", " 1", "2", "", "x", "\n", "01", "-"])


@given(st.lists(st.lists(st.tuples(PIECES, st.floats(0.01, 1)), min_size=1, max_size=6), max_size=4))
def test_shares_are_a_part_of_one(rows: Sequence[Sequence[tuple[str, float]]]) -> None:
    tokens = [token(*((text, p / sum(p for _, p in row)) for text, p in row)) for row in rows]
    mass = label_mass(tokens, TEN)
    assert all(0.0 <= share <= 1.0 + 1e-9 for share in mass.shares.values())
    assert math.fsum(mass.shares.values()) <= 1.0 + 1e-9
    expected = mass.expected({label: float(label) for label in TEN})
    assert expected is None or 1.0 <= expected <= 10.0
