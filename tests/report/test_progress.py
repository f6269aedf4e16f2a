"""Progress: the rate of the last seconds, and the line that says it."""

from __future__ import annotations

import pytest

from calibrate.report.progress import WINDOW, Rate, line


def test_the_rate_forgets_how_fast_the_beginning_was() -> None:
    """A resumed run skips 100,000 scores in a second and then makes 5 a second."""
    rate, at = Rate(), 0.0
    rate.read(0, at)
    rate.read(100_000, 1.0)
    for step in range(1, 2 * int(WINDOW)):
        rate.read(100_000 + 5 * step, at := 1.0 + step)
    assert rate.per_second(at) == pytest.approx(5)


def test_there_is_no_rate_before_a_second_of_work() -> None:
    rate = Rate()
    assert rate.per_second(0.0) is None
    rate.read(0, 10.0)
    assert rate.per_second(20.0) is None
    rate.read(7, 10.5)
    assert rate.per_second(10.9) is None
    assert rate.per_second(11.0) == pytest.approx(7)


def test_work_slower_than_the_window_has_a_rate_which_falls_while_it_stalls() -> None:
    rate = Rate()
    for second in range(0, 181):
        rate.read(second // 60, float(second))
    assert rate.per_second(180.0) == pytest.approx(1 / 60)
    assert rate.per_second(240.0) == pytest.approx(1 / 120)


def test_a_rate_of_many_readings_is_exact_and_keeps_few_of_them() -> None:
    rate = Rate()
    for step in range(100_001):
        rate.read(step, step / 1000)
    assert rate.per_second(100.0) == pytest.approx(1000)
    assert len(rate._readings) < 5 * WINDOW + 3


def test_work_that_begins_anew_has_a_new_rate() -> None:
    rate = Rate()
    rate.read(0, 0.0)
    rate.read(1000, 10.0)
    rate.read(10, 20.0)
    assert rate.per_second(20.0) is None
    rate.read(30, 30.0)
    assert rate.per_second(30.0) == pytest.approx(2)


def test_the_line_says_what_is_known_and_no_more() -> None:
    assert line(4096, 100_000, 1200, "trace") == "4,096 of 100,000 traces · 1,200/s · about 80 s left"
    assert line(4096, 100_000, 3) == "4,096 of 100,000 · 3/s · about 8 h 53 min left"
    assert line(4096, 100_000, None) == "4,096 of 100,000"
    assert line(4096, None, 1200, "row") == "4,096 rows · 1,200/s"
    assert line(1, None, None, "row") == "1 row"
    assert line(500, 999.6, 2, "row", estimated=True) == "500 of about 1,000 rows · 2/s · about 4 min left"
    assert line(100, 100, 12.0) == "100 of 100 · 12/s"
    assert line(0, 0, None) == "0 of 0"
