"""What a bounded threshold holds for: the window, not what a sample by suspicion left of it; one look, not many."""

from __future__ import annotations

import numpy as np
import pytest

from calibrate.report.sentences.tuning import figures
from calibrate.stats.choosing.bounded import Bounded, bounded
from calibrate.stats.choosing.window_share import MUCH, WindowShare, window_share
from calibrate.stats.sampling.designs import allocate
from calibrate.stats.sampling.octaves import octaves
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import Sweep, sweep
from calibrate.types import FlagWhen
from calibrate.workflow.tuning.operating_points import BoundedScope

TARGET = 0.7


@pytest.mark.parametrize("flag_when", ["above", "below"])
def test_the_flagged_of_a_window_are_counted_from_the_design(flag_when: FlagWhen) -> None:
    # Two strata: 4 of 4 labelled, 4 of 40.
    scores = np.array([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0])
    design = Design(np.repeat([0, 1], 4), np.array([4, 40]))
    ours = sweep([1, 1, 0, 1, 0, 1, 0, 0], scores * (1 if flag_when == "above" else -1), design=design,
                 flag_when=flag_when)  # fmt: skip
    share = window_share(ours, 4.5 if flag_when == "above" else -4.5)
    assert share is not None
    assert (share.flagged, share.labelled, share.rest) == (pytest.approx(14.0), 5, 9)
    assert share.share == pytest.approx(5 / 14)
    assert share.differs
    assert window_share(ours, 99.0 if flag_when == "above" else -99.0) is None
    assert not WindowShare(4.0, 4).differs  # all are labelled: there is no rest
    assert not WindowShare(100.0, 29).differs


def _week(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, Sweep]:
    """A window of n traces, whether each is labelled, and the sweep of 300 labels by octaves."""
    truth = rng.random(n) < 0.2
    scores = rng.normal(size=n) + 1.6 * truth
    bands = octaves(scores)
    codes = bands.codes(scores)
    taken = allocate({str(code): int(np.sum(codes == code)) for code in np.unique(codes)}, 300)
    rows = np.concatenate([rng.choice(np.flatnonzero(codes == int(c)), k, replace=False) for c, k in taken.items()])
    ours = sweep(truth[rows], scores[rows], design=Design(codes[rows], np.bincount(codes)))
    return truth, scores, np.isin(np.arange(n), rows), ours


def test_the_rest_of_a_small_window_falls_short_where_much_is_labelled_and_only_there() -> None:
    rng = np.random.default_rng(1)
    window, rests = [], {True: [], False: []}  # type: ignore[var-annotated]
    for size in (700, 16_000):
        for _ in range(80):
            truth, scores, labelled, ours = _week(rng, size)
            at = bounded(ours, TARGET)
            if not isinstance(at, Bounded):
                continue
            flagged, share = scores >= at.threshold, window_share(ours, at.threshold)
            assert share is not None
            window.append(truth[flagged].mean() < TARGET)
            if (rest := flagged & ~labelled).sum() >= 5:
                rests[share.differs].append(truth[rest].mean() < TARGET)
    assert np.mean(window) <= 0.05
    assert np.mean(rests[True]) > 0.25
    assert np.mean(rests[False]) <= 0.1
    assert MUCH == 0.3


def test_a_bound_shared_among_looks_holds_for_the_best_of_many() -> None:
    """Eight detectors, three looks at growing labels; the one that first passes is taken."""
    rng = np.random.default_rng(2)
    size, runs, wrong = 50_000, 50, {1: 0, 8: 0}
    truth = rng.random(size) < 0.3
    every = [0.9 * truth + rng.normal(size=size) for _ in range(8)]
    for _ in range(runs):
        rows = rng.choice(size, 400, replace=False)
        for looks in wrong:
            wrong[looks] += _first_is_wrong(truth, every, rows, 0.05 / looks)
    assert wrong[1] / runs > 0.12
    assert wrong[8] / runs <= 0.05


def _first_is_wrong(truth: np.ndarray, every: list[np.ndarray], rows: np.ndarray, alpha: float) -> bool:
    for n in (150, 250, 400):
        for scores in every:
            at = bounded(sweep(truth[rows[:n]], scores[rows[:n]]), TARGET, alpha=alpha)
            if isinstance(at, Bounded):
                return bool(truth[scores >= at.threshold].mean() < TARGET)
    return False


def test_what_a_bound_holds_for_is_said() -> None:
    window, looks = figures.scope(BoundedScope(WindowShare(120.0, 73), 8, 1))
    assert "of about 120 traces that it flags there 73 (61%) are labelled" in window
    assert "the about 47 others alone" in window
    assert "8 have scores here, and the best of several is wrong more often." in looks
    assert figures.scope(BoundedScope(WindowShare(400.0, 73), 1, 1))[0].startswith(
        "Its error of at most 5% is that of one"
    )
    assert figures.scope(BoundedScope(None, 8, 8)) == ["Its error of at most 5% is shared among 8 detectors and looks."]
    assert figures.scope(None) == []
