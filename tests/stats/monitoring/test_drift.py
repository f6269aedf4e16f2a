"""Two-sample tests of scores against scipy's, and their promises by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binom, energy_distance, false_discovery_control, fisher_exact, permutation_test

from calibrate.errors import BadInput
from calibrate.stats.monitoring.drift import ENOUGH, Moved, Shift, Window, compare_windows, holm, judge_shifts
from calibrate.stats.monitoring.permutation import energy_coefficient, permutations_needed, squared_energy_distance

VALUES = hnp.arrays(np.float64, st.integers(1, 30), elements=st.integers(-5, 5).map(lambda v: v / 2))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def shift(x: np.ndarray, y: np.ndarray, *, seed: int = 0, **given: object) -> Shift:
    usual = {"threshold": 1.0, "flag_when": "above", "rng": rng(seed)}
    return compare_windows(Window(x), Window(y), **{**usual, **given})  # type: ignore[arg-type]


@given(VALUES, VALUES)
def test_the_energy_distance_is_scipys_and_that_of_all_pairs(x: np.ndarray, y: np.ndarray) -> None:
    def apart(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.abs(a[:, None] - b).mean())

    assert squared_energy_distance(x, y) == pytest.approx(energy_distance(x, y) ** 2, abs=1e-12)
    assert squared_energy_distance(x, y) == pytest.approx(2 * apart(x, y) - apart(x, x) - apart(y, y), abs=1e-9)
    share = squared_energy_distance(x, y) / (2 * apart(x, y)) if apart(x, y) else 0.0
    assert energy_coefficient(x, y) == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize("away", [0.35, 0.5])
def test_p_values_of_scores_are_those_of_scipys_permutation_tests(away: float) -> None:
    x, y = np.round(rng(1).standard_normal(60), 1), np.round(away + rng(2).standard_normal(45), 1)
    theirs = permutation_test((x, y), energy_distance, n_resamples=999, alternative="greater", rng=rng(3)).pvalue
    ours = np.mean([shift(x, y, seed=seed).p_scores for seed in range(12)])
    assert ours == pytest.approx(theirs, abs=0.035)


def test_many_distinct_scores_are_binned_and_tested_alike() -> None:
    x, y = rng(6).standard_normal(250), 0.2 + rng(7).standard_normal(250)
    full = permutation_test((x, y), energy_distance, n_resamples=999, alternative="greater", rng=rng(8)).pvalue
    ours = np.mean([shift(x, y, seed=seed).p_scores for seed in range(12)])
    assert ours == pytest.approx(full, abs=0.03)


def test_flag_rate_and_coverage_are_fishers() -> None:
    x, y = rng(1).standard_normal(200), rng(2).standard_normal(150)
    y[:20], x[:3] = np.nan, np.nan
    found = shift(x, y)
    for p, hits in ((found.p_flags, (np.sum(y >= 1), np.sum(x >= 1))), (found.p_coverage, (130, 197))):
        table = [[int(hits[0]), 150 - int(hits[0])], [int(hits[1]), 200 - int(hits[1])]]
        assert p == pytest.approx(fisher_exact(table).pvalue)
    assert (found.now.traces, found.now.scored, found.now.coverage) == (150, 130, 130 / 150)


def test_flags_below_count_what_is_below() -> None:
    found = shift(np.arange(100.0), np.arange(100.0), threshold=9.0, flag_when="below")
    assert found.now.flagged == 10


def test_a_test_at_level_a_is_wrong_in_a_share_of_a() -> None:
    p = np.array([_null(seed).p_scores for seed in range(250)], dtype=float)
    for level in (0.05, 0.2, 0.5):
        error = np.sqrt(level * (1 - level) / len(p))
        assert np.mean(p <= level) <= level + 3 * error
    assert np.mean(p <= 0.2) >= 0.1


def _null(seed: int) -> Shift:
    drawn = rng(seed)
    return shift(drawn.standard_normal(60), drawn.standard_normal(40), seed=seed)


def test_blocks_keep_the_level_where_answers_share_their_sources() -> None:
    wrong = {True: 0, False: 0}
    for seed in range(80):
        drawn = rng(seed)
        blocks = np.arange(96) // 8
        sides = [drawn.standard_normal(12)[blocks] + 0.4 * drawn.standard_normal(96) for _ in range(2)]
        for used in wrong:
            given_blocks = blocks if used else None
            found = compare_windows(
                Window(sides[0], given_blocks),
                Window(sides[1], given_blocks),
                threshold=1.0,
                flag_when="above",
                rng=drawn,
            )
            wrong[used] += found.p_scores is not None and found.p_scores <= 0.05
    assert wrong[True] <= binom.isf(0.001, 80, 0.05)
    assert wrong[False] > 20


def test_blocks_of_one_are_no_blocks() -> None:
    x, y = rng(1).standard_normal(80), 0.6 + rng(2).standard_normal(70)
    alone = shift(x, y, tests=10).p_scores
    each = compare_windows(
        Window(x, np.arange(80)), Window(y, np.arange(70)), threshold=1.0, flag_when="above", rng=rng(), tests=10
    )
    assert alone is not None
    assert each.p_scores == pytest.approx(alone, abs=0.01)


def test_holm_by_hand_and_less_strict_than_bonferroni() -> None:
    # Holm's table: .01 <= .05/4, .013 <= .05/3, .03 > .05/2: the rest stand.
    assert holm([0.03, 0.01, 0.2, 0.013]).tolist() == [False, True, False, True]
    assert holm([]).tolist() == []
    p = rng(3).random(50) ** 4
    assert not np.any((p <= 0.05 / 50) & ~holm(p))
    assert not np.any(holm(p) & ~(false_discovery_control(p) <= 0.05))


def test_the_permutations_suffice_for_holms_first_step() -> None:
    for tests in (1, 3, 42, 200):
        assert 1 / (permutations_needed(tests) + 1) < 0.05 / tests
    assert permutations_needed(10**6) == 20_000


def test_a_shift_that_would_have_been_seen_is_seen_in_four_of_five() -> None:
    seen = 0
    for seed in range(40):
        drawn = rng(seed)
        x, y = drawn.standard_normal(400), drawn.standard_normal(200)
        quiet = shift(x, y, seed=seed, tests=3)
        assert quiet.visible is not None
        moved = shift(x, drawn.standard_normal(200) + quiet.visible, seed=seed, tests=3)
        seen += judge_shifts([moved])[0].scores
    assert 24 <= seen <= 38


def test_too_little_is_not_tested_and_constants_do_not_move() -> None:
    few = shift(np.ones(ENOUGH - 1), np.ones(300))
    assert few.p_values == (None, None, None)
    assert judge_shifts([few]) == [Moved()]
    same = shift(np.ones(50), np.ones(50))
    assert (same.p_scores, same.p_coverage, same.visible) == (1.0, 1.0, None)
    nothing = shift(np.full(30, np.nan), np.full(30, np.nan))
    assert nothing.p_scores is None
    assert nothing.now.median is None
    empty = shift(np.empty(0), np.empty(0))
    assert empty.now.flag_rate is None
    with pytest.raises(BadInput, match="infinite"):
        shift(np.array([np.inf]), np.ones(3))


def test_a_permutation_as_far_apart_as_the_data_counts_to_the_last_digit() -> None:
    scores = np.zeros(21)
    scores[4] = np.nan  # in whichever window it falls, coverage differs by 1 of 21
    found = compare_windows(
        Window(scores, np.arange(21)), Window(np.zeros(21), np.arange(21)), threshold=1.0, flag_when="above", rng=rng()
    )
    assert found.p_coverage == 1.0


def test_traces_of_one_source_are_too_few_to_tell_however_many() -> None:
    """They move together: 300 answers on one document are one thing that was seen."""
    rng = np.random.default_rng(4)
    before = Window(rng.standard_normal(300), np.arange(300))
    now = Window(rng.standard_normal(300) - 2, np.zeros(300, dtype=np.int64))
    shift = compare_windows(before, now, threshold=1.5, flag_when="above", rng=rng)
    assert shift.p_values == (None, None, None)
    assert shift.visible is None
