"""Labels of all traffic beside labels of the flagged alone: recall is unbiased, and known better."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sampling.dual_frame import combine_frames
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import sweep

N, FLAGGED = 8_000, 700


def test_recall_of_two_frames_holds_the_truth_with_narrower_intervals() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(N) < 0.06
    scores = rng.standard_normal(N) + norm.ppf(0.95) * np.sqrt(2) * truth
    order = np.argsort(-scores)
    truth, scores = truth[order], scores[order]
    cut = FLAGGED // 2
    recall = truth[: cut + 1].sum() / truth.sum()
    held, errors, widths = [], [], []
    for _ in range(150):
        rows = rng.choice(N, 180, replace=False)
        design = Design(np.zeros(180, dtype=np.int64), np.array([N]))
        fresh = rng.choice(np.setdiff1d(np.arange(FLAGGED), rows), 120, replace=False)
        both = combine_frames(design, rows < FLAGGED, traffic_flagged=FLAGGED, fresh=120)
        assert np.isclose(both.weights.sum(), N)
        every = np.append(rows, fresh)
        assert np.isclose(both.weights[every < FLAGGED].sum(), FLAGGED)
        known = figures(sweep(truth[every], scores[every], design=both), float(scores[cut])).recall
        alone = figures(sweep(truth[rows], scores[rows], design=design), float(scores[cut])).recall
        assert known.value is not None
        assert known.low is not None
        assert known.high is not None
        assert alone.low is not None
        assert alone.high is not None
        held.append(known.low <= recall <= known.high)
        errors.append(known.value - recall)
        widths.append((known.high - known.low, alone.high - alone.low))
    assert np.mean(held) >= 0.92
    assert abs(np.mean(errors)) < 0.04
    dual, first = np.mean(widths, axis=0)
    assert dual < first
