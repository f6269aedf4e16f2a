"""What the Tune page takes from an address."""

from __future__ import annotations

import pytest

from pages.thresholds.tune_setting import threshold_in

SPAN = (-0.5, 2.0)


@pytest.mark.parametrize("value", [-0.5, 0.0, 0.1 + 0.2, 1 / 3, 2.0])
def test_a_threshold_comes_back_with_all_its_digits(value: float) -> None:
    assert threshold_in(repr(value), SPAN) == value


@pytest.mark.parametrize(
    "text", ["", "abc", "nan", "inf", "-inf", "1e999", "2.0001", "-0.51", "0.1,0.2", "<b>1</b>", "\0"]
)
def test_what_is_no_threshold_of_these_scores_is_none(text: str) -> None:
    assert threshold_in(text, SPAN) is None
