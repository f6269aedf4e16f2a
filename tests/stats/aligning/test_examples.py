"""Examples for a prompt: balanced, hard, far apart, one of a group."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_distances

from calibrate.errors import BadInput
from calibrate.stats.aligning.examples import choose_examples, hardness


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.integers(1, 60), st.floats(0, 1))
def test_examples_are_balanced_and_of_different_groups(seed: int, most: int, n: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < share
    groups = [None if number == 0 else f"g{number}" for number in rng.integers(0, 8, n)]
    chosen = choose_examples(labels, rng.normal(size=(n, 5)), rng.random(n), most=most, groups=groups)
    assert len(chosen) <= most
    assert len(set(chosen)) == len(chosen)
    hits = int(labels[chosen].sum())
    assert hits - (len(chosen) - hits) in (0, 1)
    shared = [groups[i] for i in chosen if groups[i] is not None]
    assert len(shared) == len(set(shared))


def test_the_hardest_comes_first() -> None:
    labels = np.array([True, True, False, False])
    hard = hardness(labels, np.array([0.9, 0.2, 0.7, np.nan]))
    assert hard == pytest.approx([0.1, 0.8, 0.7, 0.5])
    assert choose_examples(labels, np.eye(4), hard, most=2).tolist() == [1, 2]


def test_within_twice_the_best_radius_of_a_k_center() -> None:
    """Gonzalez' bound, against the best of all choices: the hallucinated lie where the first clean one does."""
    rng = np.random.default_rng(4)
    n, k = 6, 3
    for _ in range(20):
        vectors = rng.normal(size=(n, 2))
        # The bound is of a metric: of unit vectors the root of twice the cosine distance is one, and orders alike.
        metric = np.sqrt(np.maximum(2 * cosine_distances(vectors), 0))
        every = np.vstack([vectors, np.repeat(vectors[:1], n, axis=0)])
        chosen = choose_examples(np.arange(2 * n) >= n, every, np.full(2 * n, 0.5), most=2 * n)
        centres = [0, *(int(i) for i in chosen if i < n)][:k]
        radius = metric[:, centres].min(axis=1).max()
        best = min(metric[:, list(each)].min(axis=1).max() for each in combinations(range(n), k))
        assert radius <= 2 * best + 1e-9


def test_the_easy_half_is_left_out() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([True, False], 50)
    hard = rng.permutation(100) / 100
    chosen = choose_examples(labels, rng.normal(size=(100, 8)), hard, most=6)
    for verdict in (True, False):
        rows = [i for i in chosen if labels[i] == verdict]
        assert min(hard[rows]) >= np.median(hard[labels == verdict]) - 1e-9


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="one of each per label"):
        choose_examples([True], np.eye(2), [0.5], most=1)
    with pytest.raises(BadInput, match="0 or more"):
        choose_examples([True], np.eye(1), [0.5], most=-1)
