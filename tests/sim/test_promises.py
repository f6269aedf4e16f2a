"""Triage and many attempts make no more wrong certificates than promised. Chances: `python -m calibrate simulate`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from calibrate.simulate.promises import ATTEMPTS, DRAWN, SHORT, any_segment, many_attempts, triage
from calibrate.stats.intervals.exact_tests import critical, level


def test_triage_bends_a_draw_from_what_nobody_labelled_and_not_one_from_all() -> None:
    whole, rest = triage(replications=150, labels=300, rng=np.random.default_rng(1))
    assert whole <= binom.isf(0.001, 150, 0.05) / 150
    assert rest > 0.2


def test_ten_attempts_err_in_what_their_levels_add_up_to() -> None:
    one_ledger, each_anew = many_attempts(replications=20_000, rng=np.random.default_rng(2))
    passes = []
    for attempt in range(1, ATTEMPTS + 1):
        least = critical(DRAWN, 0.7, level(attempt))[DRAWN]
        passes.append(binom.sf(least - 1, DRAWN, SHORT))
    assert one_ledger == pytest.approx(1 - np.prod(1 - np.array(passes)), abs=0.006)
    assert each_anew == pytest.approx(1 - (1 - passes[0]) ** ATTEMPTS, abs=0.012)
    assert one_ledger <= 0.05 < each_anew


def test_three_segments_err_together_in_no_more_than_one_may() -> None:
    replications = 20_000
    one_ledger, each_anew = any_segment(replications=replications, rng=np.random.default_rng(4))
    assert one_ledger <= binom.isf(0.001, replications, 0.05) / replications < each_anew
