"""Every number has one spelling, and none claims more than it knows."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from calibrate.report import numbers

SHARES = st.floats(0, 1)
REALS = st.floats(-1e9, 1e9)


def value_of(text: str) -> float:
    """The number that a reader takes from a text."""
    return float(text.replace(",", "").replace("−", "-").replace("+", "").rstrip("%"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"), (float("nan"), "unknown"), (0.0, "0%"), (1e-9, "under 0.1%"), (0.00099, "under 0.1%"),
        (0.001, "0.1%"), (0.031, "3.1%"), (0.05, "5%"), (0.0949, "9.5%"), (0.0996, "10%"), (0.314, "31%"),
        (0.9, "90%"), (0.9899, "99%"), (0.99, "99%"), (0.994, "99.4%"), (0.9996, "over 99.9%"),
        (1 - 1e-9, "over 99.9%"), (1 - 1e-13, "100%"), (1.0, "100%"),
    ],
)  # fmt: skip
def test_a_share_has_one_spelling(value: float | None, text: str) -> None:
    assert numbers.share(value) == text


@given(st.floats(1e-10, 1 - 1e-10))
def test_a_share_is_never_all_or_nothing_unless_it_is(value: float) -> None:
    assert numbers.share(value) not in ("0%", "100%")


@given(SHARES)
def test_a_share_reads_back_within_its_last_digit(value: float) -> None:
    text = numbers.share(value)
    if text.startswith(("under", "over")):
        bound = value_of(text.split()[1]) / 100
        assert value < bound if text.startswith("under") else value > bound
    else:
        assert abs(value_of(text) / 100 - value) <= 0.0051


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ((-0.16, -0.21, -0.11), "16 points fewer (95% interval 11 to 21)"),
        ((0.07, 0.002, 0.148), "7 points more (95% interval 0.2 to 14.8)"),
        ((-0.011, -0.02, -0.005), "1 point fewer (95% interval 0.5 to 2.0)"),
    ],
)
def test_a_difference_that_is_shown_is_said_in_words(bounds: tuple[float, float, float], text: str) -> None:
    assert numbers.points_apart(*bounds) == text


@pytest.mark.parametrize(
    ("value", "other", "text"),
    [
        (0.6983, 0.7, "69.8%"), (0.64, 0.7, "64%"), (0.69996, 0.7, "69.996%"), (0.729, 0.7295, "72.9%"),
        (0.031, 0.03, "3.1%"), (0.7, 0.7, "70%"),
    ],
)  # fmt: skip
def test_a_share_beside_another_shows_which_is_larger(value: float, other: float, text: str) -> None:
    assert numbers.share_beside(value, other) == text


@given(SHARES, SHARES)
def test_a_larger_share_never_reads_smaller(first: float, second: float) -> None:
    def read(value: float) -> float:
        return value_of(numbers.share(value).removeprefix("under ").removeprefix("over "))

    assert read(min(first, second)) <= read(max(first, second))


@given(st.integers(0, 100))
def test_a_whole_percent_is_spelled_equally_everywhere(percent: int) -> None:
    text = numbers.share(percent / 100)
    assert text == numbers.exact_share(percent / 100) == f"{percent}%"
    assert numbers.estimate(percent / 100, None, None) == text


@pytest.mark.parametrize(("value", "text"), [(0.7, "70%"), (0.7295, "72.95%"), (0.975, "97.5%"), (0.999, "99.9%")])
def test_a_target_is_never_rounded(value: float, text: str) -> None:
    assert numbers.exact_share(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.58, 0.814, "58–81%"), (0.0, 0.04, "0–4%"), (0.2, 1.0, "20–100%"), (0.0, 0.0, "0–0%"), (1.0, 1.0, "100–100%"),
        (0.002, 0.006, "0.2–0.6%"), (0.0, 0.006, "0–0.6%"), (0.0004, 0.0004, "0–0.1%"), (0.004, 0.012, "0–1%"),
        (0.992, 0.998, "99.2–99.8%"), (0.9996, 1.0, "99.9–100%"), (None, 0.3, "unknown"), (0.3, None, "unknown"),
    ],
)  # fmt: skip
def test_an_interval_has_an_en_dash(low: float | None, high: float | None, text: str) -> None:
    assert numbers.interval(low, high) == text


@given(SHARES, SHARES)
def test_an_interval_reads_back_in_order(first: float, second: float) -> None:
    low, high = min(first, second), max(first, second)
    left, right = numbers.interval(low, high).split("–")
    assert value_of(left) <= value_of(right)
    assert abs(value_of(left) - 100 * low) <= 0.51
    assert abs(value_of(right) - 100 * high) <= 0.51


def test_an_interval_may_leave_its_unit_to_the_sentence() -> None:
    assert numbers.interval(0.22, 0.48, unit="") == "22–48"


def test_an_estimate_is_a_share_with_its_interval() -> None:
    assert numbers.estimate(0.34, 0.22, 0.48) == "34% (22–48%)"
    assert numbers.estimate(None, 0.2, 0.4) == "unknown"


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        ((0.005, -0.011, 0.023), "+0.005, 95% −0.011 to +0.023"), ((-0.5, None, None), "−0.500"),
        ((0.0, -0.0001, 0.0), "0, 95% 0 to 0"), ((None, None, None), "unknown"),
    ],
)  # fmt: skip
def test_a_difference_has_its_signs(figure: tuple[float | None, float | None, float | None], text: str) -> None:
    assert numbers.difference(*figure) == text


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        ((0.04, -0.06, 0.13), "+4 points (−6 to +13)"), ((0.01, -0.02, 0.04), "+1 point (−2 to +4)"),
        ((0.03, 0.0021, 0.05), "+3 points (+0.2 to +5.0)"), ((-0.03, -0.05, -0.0003), "−3 points (−5.00 to −0.03)"),
        ((0.03, -0.0021, 0.05), "+3 points (0 to +5)"), ((0.004, None, None), "0 points"), ((None, 0, 0), "unknown"),
    ],
)  # fmt: skip
def test_points_never_look_as_if_they_held_zero_when_they_do_not(
    figure: tuple[float | None, float | None, float | None], text: str
) -> None:
    assert numbers.points(*figure) == text


@given(REALS, st.integers(0, 4))
def test_a_signed_number_reads_back(value: float, places: int) -> None:
    text = numbers.signed(value, places)
    assert value_of(text) == pytest.approx(value, abs=0.51 * 10**-places)
    assert text == "0" or text[0] == ("+" if value > 0 else "−")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.81254, "0.8125"), (0.5, "0.5"), (2.0, "2"), (-1.25, "−1.25"), (12345.6, "12,346"), (-12345.6, "−12,346"),
        (0.0, "0"), (-0.0, "0"), (1e-7, "1e-07"), (float("inf"), "∞"), (float("-inf"), "−∞"), (float("nan"), "unknown"),
        (None, "unknown"),
    ],
)  # fmt: skip
def test_a_score_has_four_digits(value: float | None, text: str) -> None:
    assert numbers.number(value) == text


@given(REALS)
def test_a_score_reads_back(value: float) -> None:
    text = numbers.number(value)
    assert value_of(text) == pytest.approx(value, rel=5.1e-4)
    assert not text.startswith("-")


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(0.94, 3, "0.940"), (0.944, 2, "0.94"), (-0.022, 2, "−0.02"), (-0.001, 2, "0.00"), (None, 2, "unknown")],
)
def test_a_figure_without_unit_has_fixed_decimals(value: float | None, places: int, text: str) -> None:
    assert numbers.decimals(value, places) == text


def test_an_interval_that_may_be_negative_is_joined_by_to() -> None:
    assert numbers.decimal_interval(0.911, 0.958) == "0.911–0.958"
    assert numbers.decimal_interval(-0.02, 0.312, 2) == "−0.02 to 0.31"
    assert numbers.decimal_interval(None, 0.3) == "unknown"


@pytest.mark.parametrize(
    ("value", "text"), [(262.4, "260"), (1234.0, "1,200"), (12.4, "12"), (9.96, "10"), (7.0, "7"), (0.432, "0.43")]
)
def test_a_rate_has_the_two_digits_it_is_worth(value: float, text: str) -> None:
    assert numbers.about(value) == text


@given(st.floats(1e-4, 1e9))
def test_a_rate_reads_back(value: float) -> None:
    assert value_of(numbers.about(value)) == pytest.approx(value, rel=0.051)


def test_a_count_has_its_plural() -> None:
    assert [numbers.count(n, "trace") for n in (0, 1, 1204)] == ["0 traces", "1 trace", "1,204 traces"]
    assert numbers.count(2, "query", "queries") == "2 queries"
    assert numbers.count(12345) == "12,345"
    assert numbers.labelled(340, 61) == "340 labels, 61 of them hallucinated"


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (0.0, "$0.00"),
        (0.004, "under $0.01"),
        (0.005, "$0.01"),
        (0.42, "$0.42"),
        (1204.5, "$1,204.50"),
        (None, "unknown"),
    ],
)
def test_money_is_never_nothing_unless_it_is(dollars: float | None, text: str) -> None:
    assert numbers.money(dollars) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"), (40, "40 s"), (89, "89 s"), (90, "2 min"), (720, "12 min"), (4800, "1 h 20 min"), (3600, "1 h"),
        (36_000 + 1200, "10 h"), (47 * 3600, "47 h"), (48 * 3600, "2 days"), (80 * 3600, "3 days"),
    ],
)  # fmt: skip
def test_a_duration_has_two_units_at_most(seconds: float, text: str) -> None:
    assert numbers.duration(seconds) == text


NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("past", "text"),
    [
        (timedelta(seconds=59), "just now"), (timedelta(minutes=1), "60 s ago"), (timedelta(minutes=5), "5 min ago"),
        (timedelta(hours=11), "11 h ago"), (timedelta(hours=13), "yesterday"), (timedelta(days=1), "yesterday"),
        (timedelta(days=12), "12 days ago"), (-timedelta(hours=1), "just now"),
    ],
)  # fmt: skip
def test_a_moment_is_so_long_ago(past: timedelta, text: str) -> None:
    assert numbers.ago(NOON - past, NOON) == text


def test_an_hour_past_midnight_is_not_yesterday() -> None:
    late = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
    assert numbers.ago(late, late + timedelta(hours=1)) == "1 h ago"


def test_a_date_and_a_moment() -> None:
    assert numbers.day(NOON) == "20 Nov 2026"
    assert numbers.minute(NOON + timedelta(minutes=5)) == "20 Nov 2026, 12:05 UTC"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""), (["a"], "a"), (("a", "b"), "a and b"), (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d"], "a, b, c and 1 more"),
    ],
)  # fmt: skip
def test_names_are_listed_as_people_do(names: list[str], text: str) -> None:
    assert numbers.listed(names) == text


def test_a_long_list_may_be_asked_for() -> None:
    assert numbers.listed(list("abcde"), most=5) == "a, b, c, d and e"


@given(REALS, REALS, SHARES)
def test_no_text_has_a_hyphen_for_a_minus(low: float, high: float, part: float) -> None:
    assume(abs(low) > 1e-3)
    texts = [numbers.number(low), numbers.decimals(low), numbers.signed(low), numbers.share(part)]
    texts += [numbers.difference(high, low, high), numbers.points(high, low, high), numbers.decimal_interval(low, high)]
    assert not [text for text in texts if re.search(r"(^|[ –(])-", text)]


def test_numbers_load_nothing_but_the_standard_library() -> None:
    code = "import sys; before = set(sys.modules); import calibrate.report.numbers; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded - set(sys.stdlib_module_names) - {"calibrate"}
