"""Thresholds per segment: the ends of what they can be, and when they are offered."""

from __future__ import annotations

import numpy as np
import pytest

from calibrate.errors import BadInput
from calibrate.stats.choosing.choose import choose
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.stats.segments.choosing import choose_segments
from calibrate.stats.segments.curves import fit_curves, odds_out_of_fold
from calibrate.stats.segments.rows import SegmentRows
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import sweep

PRECISION = Policy("precision", 0.7)


def draw(n: int, shifts: list[float], *, seed: int = 0, rate: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(len(shifts)), n)
    labels = rng.random(len(code)) < rate
    return labels, rng.normal(size=len(code)) + np.array(shifts)[code] + 1.5 * labels, code


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_the_one_threshold_is_that_of_choose() -> None:
    labels, scores, code = draw(120, [0.0, 0.5, 1.0])
    choice = choose_segments(SegmentRows.of(labels, scores, code, segments=3), PRECISION, rng=rng())
    point = choose(sweep(labels, scores), PRECISION)
    assert choice.common == point.threshold
    assert choice.gain.common == pytest.approx(point.recall.value)
    assert (labels & choice.common_flags).sum() == point.true_positives


def test_shifted_segments_have_shifted_thresholds_and_are_offered() -> None:
    labels, scores, code = draw(400, [0.0, 1.5, 3.0])
    choice = choose_segments(SegmentRows.of(labels, scores, code, segments=3), PRECISION, rng=rng())
    assert np.diff(choice.own) == pytest.approx([1.5, 1.5], abs=0.35)
    assert choice.offered
    assert choice.gain.difference.low is not None
    assert choice.gain.difference.value == pytest.approx(choice.gain.own - choice.gain.common)


def test_like_segments_are_not_offered() -> None:
    labels, scores, code = draw(150, [0.0, 0.0, 0.0])
    choice = choose_segments(SegmentRows.of(labels, scores, code, segments=3), PRECISION, rng=rng())
    assert not choice.offered
    assert choice.own == pytest.approx([choice.common] * 3, abs=0.4)


def test_below_is_above_turned_round() -> None:
    labels, scores, code = draw(100, [0.0, 1.0])
    above = choose_segments(SegmentRows.of(labels, scores, code, segments=2), PRECISION, rng=rng())
    rows = SegmentRows.of(labels, -scores, code, segments=2, flag_when="below")
    below = choose_segments(rows, PRECISION, rng=rng())
    assert below.own == pytest.approx(above.own)
    assert np.array_equal(below.own_flags, above.own_flags)


def test_a_segment_with_few_labels_keeps_the_common_threshold() -> None:
    labels, scores, code = draw(100, [0.0, 2.0])
    few = np.concatenate([code, np.full(20, 2), np.full(10, -1)])
    more_labels, more_scores, _ = draw(30, [1.0], seed=5)
    rows = SegmentRows.of(np.append(labels, more_labels), np.append(scores, more_scores), few, segments=3)
    assert rows.enough.tolist() == [True, True, False]
    choice = choose_segments(rows, PRECISION, rng=rng())
    assert len(choice.own) == 2
    assert np.array_equal(choice.own_flags[200:], choice.common_flags[200:])


def test_a_trace_without_a_score_is_never_flagged_and_stays_in_recall() -> None:
    labels, scores, code = draw(150, [0.0, 1.0])
    scores[:20] = np.nan
    rows = SegmentRows.of(labels, scores, code, segments=2)
    choice = choose_segments(rows, PRECISION, rng=rng())
    assert not choice.own_flags[:20].any()
    point = choose(sweep(labels, scores), PRECISION)
    assert choice.gain.common == pytest.approx(point.recall.value)


def test_the_fold_of_a_row_never_sees_its_group() -> None:
    """A label turned round changes the curve of other rows, and of none that shares its sources."""
    labels, scores, code = draw(60, [0.0, 1.0])
    groups = [f"g{row // 4}" for row in range(120)]
    rows = SegmentRows.of(labels, scores, code, segments=2, groups=groups)
    before = odds_out_of_fold(rows, rng=rng(), repeats=1)
    from calibrate.stats.fitting.folds import deal_folds

    folds = deal_folds(rows.labels, rows.units.of, folds=5, rng=rng())
    for group in range(30):
        assert len(set(folds[group * 4 : group * 4 + 4])) == 1
    assert np.isfinite(before).all()


def test_weights_move_the_curves_as_repeated_labels_do() -> None:
    labels, scores, code = draw(80, [0.0, 1.0])
    strata = (scores > 0.5).astype(int)
    counts = np.bincount(strata)
    design = Design(strata, np.array([counts[0] * 3, counts[1]]))
    rows = SegmentRows.of(labels, scores, code, segments=2, design=design)
    curves = fit_curves(rows)
    assert rows.information.sum() < 160  # Kish: unequal weights tell less than as many labels
    assert np.all(np.diff(curves.odds, axis=1) >= 0)


def test_shared_sources_tell_less() -> None:
    labels, scores, code = draw(20, [0.0, 1.0])
    labels, scores, code = (np.repeat(each, 4) for each in (labels, scores, code))
    groups = [str(row // 4) for row in range(160)]
    alone = SegmentRows.of(labels, scores, code, segments=2)
    shared = SegmentRows.of(labels, scores, code, segments=2, groups=groups)
    assert shared.information.sum() == pytest.approx(alone.information.sum() / 4, rel=0.01)


@pytest.mark.parametrize("policy", ["recall>=0.8", "f1", "cost:fa=1,miss=3"])
def test_other_policies(policy: str) -> None:
    labels, scores, code = draw(150, [0.0, 1.5])
    choice = choose_segments(SegmentRows.of(labels, scores, code, segments=2), parse(policy), rng=rng())
    assert choice.own[1] > choice.own[0]


@pytest.mark.parametrize("policy", ["elbow", "alerts<=20/day", "manual:0.3"])
def test_policies_without_thresholds_per_segment(policy: str) -> None:
    labels, scores, code = draw(60, [0.0, 1.5])
    with pytest.raises(BadInput, match="per segment"):
        choose_segments(SegmentRows.of(labels, scores, code, segments=2), parse(policy), rng=rng())


def test_one_segment_is_refused() -> None:
    labels, scores, code = draw(60, [0.0])
    with pytest.raises(BadInput, match="fewer than two segments"):
        choose_segments(SegmentRows.of(labels, scores, code, segments=1), PRECISION, rng=rng())


@pytest.mark.parametrize("seed", [1, 3, 4, 9])
def test_the_policy_is_met_by_all_that_is_flagged(seed: int) -> None:
    """The cut is chosen beside what the common threshold flags in segments that keep it."""
    labels, scores, code = draw(60, [0.0, 2.0, 1.0], seed=seed)
    labels[124:] &= code[124:] < 2  # the third has too few hallucinated for a threshold of its own
    rows = SegmentRows.of(labels, scores, code, segments=3)
    assert rows.enough.tolist() == [True, True, False]
    choice = choose_segments(rows, PRECISION, rng=rng())
    assert choice.feasible
    assert labels[choice.own_flags].mean() >= 0.7
