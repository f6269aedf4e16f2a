"""Labels needed for a wished precision: against the intervals that such a sample gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from calibrate.errors import BadInput
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sampling.designs import allocate
from calibrate.stats.sampling.octaves import octaves
from calibrate.stats.sampling.sizing import Stratum, halfwidth, labels_needed
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import sweep


def test_at_random_it_is_the_textbook_number_of_flagged_labels() -> None:
    # p (1 - p) (1.96 / h)^2 = 81 flagged labels for 0.7 +/- 0.1; Wilson's interval needs a few less.
    need = labels_needed({"all": Stratum(10**9, 0.02)}, 0.1, precision=0.7)
    assert need is not None
    flagged = need * 0.02
    assert flagged == pytest.approx(0.7 * 0.3 * (norm.ppf(0.975) / 0.1) ** 2, rel=0.05)
    assert halfwidth({"all": Stratum(10**9, 0.02)}, need, precision=0.7) <= 0.1
    assert halfwidth({"all": Stratum(10**9, 0.02)}, need - 100, precision=0.7) > 0.1


def test_the_fewest_that_will_do_and_none_where_all_would_not() -> None:
    strata = {"a": Stratum(200, 1.0), "b": Stratum(5_000, 0.01)}
    need = labels_needed(strata, 0.08, precision=0.7)
    assert need is not None
    assert halfwidth(strata, need, precision=0.7) <= 0.08 < halfwidth(strata, need - 1, precision=0.7)
    assert labels_needed({"all": Stratum(100, 0.05)}, 0.1, precision=0.7) is None
    assert labels_needed({"all": Stratum(100, 0.0)}, 0.1, precision=0.7) is None
    assert labels_needed({}, 0.1, precision=0.7) is None


@pytest.mark.parametrize("design", ["random", "octave"])
def test_a_plan_that_is_followed_gives_the_width_it_promised(design: str) -> None:
    """A detector of AUROC about .9 in traffic with 3% hallucinated; the ranking knows a little more than it does."""
    rng = np.random.default_rng(4)
    bad = rng.random(60_000) < 0.03
    score = rng.normal(1.8 * bad, 1.0)
    ranking = score + rng.normal(0.6 * bad, 0.6)
    ordered = np.argsort(-score)
    precision = np.cumsum(bad[ordered]) / np.arange(1, len(bad) + 1)
    cut = int(np.flatnonzero(precision[200:] >= 0.6)[-1]) + 200
    flagged, at = np.zeros(len(bad), dtype=bool), float(score[ordered[cut]])
    flagged[score >= at] = True
    codes = octaves(ranking).codes(ranking) if design == "octave" else np.zeros(len(bad), dtype=np.int64)
    strata = {
        str(code): Stratum(
            int((codes == code).sum()), float(flagged[codes == code].mean()), _share(bad, flagged, codes, code)
        )
        for code in np.unique(codes)
    }
    need = labels_needed(strata, 0.1, precision=0.6)
    assert need is not None
    assert need < 2_000 if design == "octave" else need > 8_000
    taken = allocate({name: stratum.population for name, stratum in strata.items()}, need)
    widths = []
    for _ in range(60):
        rows = np.concatenate([rng.choice(np.flatnonzero(codes == int(h)), n, replace=False) for h, n in taken.items()])
        drawn = Design(codes[rows], np.bincount(codes))
        found = figures(sweep(bad[rows], score[rows], design=drawn), at).precision
        assert found.low is not None
        assert found.high is not None
        widths.append((found.high - found.low) / 2)
    assert np.median(widths) == pytest.approx(0.1, rel=0.25)


def _share(bad: np.ndarray, flagged: np.ndarray, codes: np.ndarray, code: int) -> float | None:
    here = flagged & (codes == code)
    return float(bad[here].mean()) if here.any() else None


@pytest.mark.parametrize(("wish", "precision"), [(0.0, 0.7), (0.6, 0.7), (math.nan, 0.7), (0.1, 1.0), (0.1, math.nan)])
def test_a_wish_that_is_none_is_a_sentence(wish: float, precision: float) -> None:
    with pytest.raises(BadInput, match="give a number between 0 and"):
        labels_needed({"all": Stratum(100, 0.5)}, wish, precision=precision)
