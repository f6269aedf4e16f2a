"""What `align compare` promises: few replications, wide bounds. The table: `python -m calibrate simulate --align`."""

from __future__ import annotations

from scipy.stats import binom

from calibrate.simulate.aligning import World, measure

RUNS = 60


def test_null_changes_are_seldom_called_better_and_a_mended_bias_is_found() -> None:
    null, planted = (World("80 labels", 80, grouped=True),), (World("500 labels", 500),)
    report = measure(RUNS, seed=1, null=null, planted=planted)
    better, worse, half, whole = report.rows
    most = binom.isf(0.001, RUNS, 0.05) / RUNS
    assert better.measured <= most
    assert worse.measured <= most
    assert whole.measured >= binom.ppf(0.001, RUNS, 0.7) / RUNS
    assert half.measured < whole.measured
