"""The best of many detectors that are equally good is not said to be better than anything."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from calibrate.stats.intervals.best_of_many import Contest, Verdict, compare_leader, judge, simultaneous
from calibrate.stats.sweep.design import Floats
from calibrate.types import Interval

N, DETECTORS = 60, 15


def contest(rng: np.random.Generator, *, first: float = 0.75, n: int = N) -> tuple[Contest, str]:
    """Detectors of AUROC .75, but for the first, and a baseline just as good; who leads."""
    y = rng.random(n) < 0.35
    areas = {f"d{place}": first if place == 0 else 0.75 for place in range(DETECTORS)} | {"baseline": 0.75}
    scores: dict[str, Floats] = {
        name: rng.standard_normal(n) + norm.ppf(area) * np.sqrt(2) * y for name, area in areas.items()
    }
    detectors = sorted(list(scores)[:-1], key=lambda name: -roc_auc_score(y, scores[name]))
    result = compare_leader(
        y, scores, detectors[0], detectors[1:], ["baseline"], rng=rng, clusters=np.arange(n), weights=np.ones(n),
        strata=None,
    )  # fmt: skip
    return result, detectors[0]


def test_of_fifteen_equals_the_leader_is_hardly_ever_called_better() -> None:
    """By its own 95% interval it would be, over a baseline as good as it is, four times too often."""
    claims, alone, kept = [], [], []
    for seed in range(60):
        result, leader = contest(np.random.default_rng(seed))
        over = result.baselines["baseline"]
        verdict = judge(over.auroc, over.auroc_together)
        claims.append(verdict == Verdict.BETTER or (len(result.may_be_best) < DETECTORS - 1 and not result.may_be_best))
        alone.append(over.auroc.low is not None and over.auroc.low > 0)
        kept.append("d0" in (leader, *result.may_be_best))
    assert np.mean(claims) <= 0.05
    assert np.mean(alone) > 0.12
    assert np.mean(kept) >= 0.95


def test_a_far_better_one_is_the_best_beyond_all_others() -> None:
    result, leader = contest(np.random.default_rng(0), first=0.999, n=200)
    assert leader == "d0"
    assert result.may_be_best == ()
    over = result.baselines["baseline"]
    assert judge(over.auroc, over.auroc_together) == Verdict.BETTER


@pytest.mark.parametrize(
    ("alone", "together", "shown"),
    [
        (Interval(0.1, 0.02, 0.18), Interval(0.1, 0.01, 0.19), Verdict.BETTER),
        (Interval(0.1, 0.02, 0.18), Interval(0.1, -0.01, 0.21), Verdict.ALONE),
        (Interval(-0.1, -0.18, -0.02), Interval(-0.1, -0.21, 0.01), Verdict.ALONE),
        (Interval(-0.1, -0.18, -0.02), Interval(-0.1, -0.19, -0.01), Verdict.WORSE),
        (Interval(0.1, -0.1, 0.3), Interval(0.1, -0.2, 0.4), Verdict.SAME),
        (Interval(0.1), Interval(0.1), Verdict.UNKNOWN),
    ],
)
def test_what_a_difference_shows(alone: Interval, together: Interval, shown: Verdict) -> None:
    assert judge(alone, together) == shown


def test_intervals_that_hold_together_are_bonferronis() -> None:
    assert simultaneous(1) == pytest.approx(0.95)
    assert simultaneous(5) == pytest.approx(0.99)
    assert simultaneous(5, sides=1) == pytest.approx(0.98)
