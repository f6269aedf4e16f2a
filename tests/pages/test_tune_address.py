"""What the Tune page takes from an address."""

from __future__ import annotations

import pytest

from pages.thresholds.tune_setting import looks_in, threshold_in

SPAN = (-0.5, 2.0)


@pytest.mark.parametrize("value", [-0.5, 0.0, 0.1 + 0.2, 1 / 3, 2.0])
def test_a_threshold_comes_back_with_all_its_digits(value: float) -> None:
    assert threshold_in(repr(value), SPAN) == value


@pytest.mark.parametrize(
    "text", ["", "abc", "nan", "inf", "-inf", "1e999", "2.0001", "-0.51", "0.1,0.2", "<b>1</b>", "\0"]
)
def test_what_is_no_threshold_of_these_scores_is_none(text: str) -> None:
    assert threshold_in(text, SPAN) is None


@pytest.mark.parametrize(
    ("text", "looks"),
    [(None, 1), ("", 1), ("1", 1), ("12", 12), ("1000", 1000), ("1001", 1), ("0", 1), ("-3", 1), ("2.5", 1), ("²", 1)],
)
def test_looks_come_back_and_what_is_no_number_of_them_is_one(text: str | None, looks: int) -> None:
    assert looks_in(text) == looks
