"""Strata by rank: what belongs where, with ties, gaps and detectors that abstain."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.stats.sampling.octaves import Octaves, Scale, mean_z, octaves, octaves_around, scale_of

VALUES = st.lists(
    st.one_of(st.floats(-5, 5), st.integers(-3, 3).map(float), st.just(float("nan"))), min_size=1, max_size=400
)


def sizes(bands: Octaves, values: np.ndarray) -> dict[str, int]:
    counts = np.bincount(bands.codes(values), minlength=len(bands.names))
    return dict(zip(bands.names, counts.tolist(), strict=True))


def test_a_ranking_without_ties_is_cut_at_every_halving() -> None:
    values = np.random.default_rng(1).permutation(10_240).astype(float)
    expected = {"top 1/256": 40, "top 1/128": 40, "top 1/64": 80, "top 1/32": 160, "top 1/16": 320, "top 1/8": 640}
    expected |= {"top 1/4": 1280, "top 1/2": 2560, "rest": 5120, "no score": 0}
    bands = octaves(values)
    assert sizes(bands, values) == expected
    assert set(values[bands.codes(values) == 0]) == set(range(10_200, 10_240))


@given(VALUES)
def test_equal_values_share_a_stratum_and_higher_ones_are_never_in_a_looser_one(given: list[float]) -> None:
    values = np.array(given)
    bands = octaves(values)
    codes = bands.codes(values)
    assert np.all(codes[np.isnan(values)] == len(bands.names) - 1)
    there = ~np.isnan(values)
    order = np.argsort(-values[there], kind="stable")
    ranked, ordered = codes[there][order], values[there][order]
    assert np.all(np.diff(ranked) >= 0)
    assert np.all(ranked[1:][np.diff(ordered) == 0] == ranked[:-1][np.diff(ordered) == 0])
    # No octave holds more than its share of the ranking: a tie goes to the looser side.
    for code, name in enumerate(bands.bounds):
        assert np.count_nonzero(codes <= code) <= there.sum() / int(name.rpartition("/")[2])


@given(VALUES, st.floats(-6, 6))
def test_bounds_kept_as_json_tell_the_same_strata(given: list[float], at: float) -> None:
    values = np.array(given)
    for bands in (octaves(values), octaves_around(values, at)):
        kept = {name: tuple(pair) for name, pair in json.loads(json.dumps(bands.bounds)).items()}
        assert np.array_equal(Octaves(kept).codes(values), bands.codes(values))


def test_nearness_counts_the_traces_between() -> None:
    # 1,000 traces crowd below the threshold and 24 lie thin above it: nearness is by rank, not by distance.
    values = np.concatenate([np.linspace(0, 1, 1_000, endpoint=False), np.arange(1, 25) * 100.0])
    near = octaves_around(values, 1.0)
    codes = near.codes(values)
    assert near.names[0] == "nearest 1/256"
    assert 0 < np.count_nonzero(codes == 0) <= 4
    inner = values[codes <= near.names.index("nearest 1/64")]
    assert np.count_nonzero(inner < 1) in (7, 8)
    assert np.count_nonzero(inner > 1) in (7, 8)


def test_a_detector_that_abstains_is_left_out_of_a_traces_mean() -> None:
    scores = np.array([[1.0, 10.0], [3.0, np.nan], [np.nan, 30.0], [np.nan, np.nan]])
    first, second = scale_of(scores[:, 0], 1.0), scale_of(scores[:, 1], -1.0)
    assert first == Scale(1.0, 2.0, 1.0)
    assert second == Scale(-1.0, 20.0, 10.0)
    assert np.array_equal(mean_z(scores, [first, second]), [0.0, 1.0, -1.0, np.nan], equal_nan=True)


def test_equal_scores_rank_nothing_and_infinite_ones_are_refused() -> None:
    assert scale_of(np.array([2.0, np.nan, 2.0]), 1.0) is None
    assert scale_of(np.array([np.nan]), 1.0) is None
    assert octaves(np.full(500, 3.0)).bounds == {}
    with pytest.raises(BadInput, match="infinite"):
        octaves(np.append(np.arange(100.0), np.inf))
