"""The paired comparison against a plain bootstrap, a published figure, and simulation: rare alarms, sure alarms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.stats.intervals.flag_differences import Paired, compare_flags
from calibrate.stats.sweep.design import Design

Rows = list[tuple[bool, bool, bool]]
FIGURES = ("precision", "recall", "flag_rate", "caught")


def reference(y: np.ndarray, f: np.ndarray, w: np.ndarray) -> dict[str, float]:
    """The four figures, written out."""
    return {
        "precision": (w * y * f).sum() / (w * f).sum(),
        "recall": (w * y * f).sum() / (w * y).sum(),
        "flag_rate": (w * f).sum() / w.sum(),
        "caught": (w * y * f).sum() / w.sum(),
    }


def traffic(rng: np.random.Generator, n: int, *, drop: float = 0.0, shared: float = 0.8) -> tuple[np.ndarray, ...]:
    """Labels at 10%, and two noisy looks at the same trace, the second `drop` worse at telling a hallucination."""
    y = rng.random(n) < 0.1
    both = rng.normal(size=n)
    looks = [math.sqrt(shared) * both + math.sqrt(1 - shared) * rng.normal(size=n) for _ in range(2)]
    return y, looks[0] + 1.5 * y > 1.5, looks[1] + (1.5 - drop) * y > 1.5


def octave(rng: np.random.Generator, rank: np.ndarray, n: int) -> tuple[np.ndarray, Design]:
    """A draw that takes most from the top: the rows, and their design."""
    order = np.argsort(np.argsort(-rank))
    strata = np.minimum(np.log2(len(rank) / (order + 1)).astype(int), 6)
    population = np.bincount(strata, minlength=7)
    sizes = np.minimum(np.maximum(4, n * np.sqrt(population) / np.sqrt(population).sum()).astype(int), population)
    rows = np.concatenate([rng.choice(np.flatnonzero(strata == h), k, replace=False) for h, k in enumerate(sizes)])
    return rows, Design(strata[rows], population)


def test_figures_and_intervals_are_those_of_a_plain_bootstrap() -> None:
    rng = np.random.default_rng(3)
    y, a, b = traffic(rng, 20_000, drop=0.5)
    rows, design = octave(rng, rng.normal(size=20_000) + 2 * a + 2 * b, 600)
    y, a, b, w = y[rows], a[rows], b[rows], design.weights
    found = compare_flags(y, a, b, design=design)
    before, after = reference(y, a, w), reference(y, b, w)
    strata = [np.flatnonzero(design.strata == h) for h in range(7)]
    draws: dict[str, list[float]] = {name: [] for name in FIGURES}
    for _ in range(600):
        pick = np.concatenate([rng.choice(some, len(some)) for some in strata])
        first, second = reference(y[pick], a[pick], w[pick]), reference(y[pick], b[pick], w[pick])
        for name in FIGURES:
            draws[name].append(second[name] - first[name])
    for name in FIGURES:
        figure = getattr(found, name)
        assert figure.value == pytest.approx(after[name] - before[name])
        low, high = np.quantile(draws[name], [0.025, 0.975])
        # Two rows are added to what was seen, so ours is wider, by little where labels are many.
        assert 0.95 < (figure.high - figure.low) / (high - low) < 1.3, name


def test_groups_that_err_together_count_as_one() -> None:
    """Every label four times over is worth no more than once."""
    rng = np.random.default_rng(5)
    y, a, b = traffic(rng, 400, drop=0.5)
    once = compare_flags(y, a, b)
    groups = np.repeat(np.arange(400), 4).tolist()
    four = compare_flags(*(np.repeat(one, 4) for one in (y, a, b)), groups=groups)
    blind = compare_flags(*(np.repeat(one, 4) for one in (y, a, b)))
    width = [one.recall.high - one.recall.low for one in (once, four, blind)]  # type: ignore[operator]
    assert width[1] == pytest.approx(width[0], rel=0.15)
    assert width[2] < 0.6 * width[1]


def test_without_a_change_it_is_rarely_called_worse_and_with_a_large_one_nearly_always() -> None:
    """Precision and recall are both watched; each may be wrong 2.5% of the time on its side."""
    rng = np.random.default_rng(11)
    alarms = {0.0: 0, 1.5: 0}
    for drop in alarms:
        for trial in range(400):
            y, a, b = traffic(rng, 4000, drop=drop, shared=0.8 if trial % 2 else 0.3)
            rows, design = octave(rng, rng.normal(size=4000) + a + b, 300)
            alarms[drop] += bool(compare_flags(y[rows], a[rows], b[rows], design=design).worse)
    assert alarms[0.0] <= 28  # 5% of 400, and 2 standard errors
    assert alarms[1.5] >= 360


@pytest.mark.parametrize(("lost", "won", "worse"), [(4, 0, False), (6, 0, True), (7, 5, False), (14, 2, True)])
def test_few_labels_lost_are_no_proof(lost: int, won: int, worse: bool) -> None:
    """Of 40 hallucinated labels; the exact test of so many lost against won (McNemar's) says the same."""
    from scipy.stats import binomtest

    y = np.repeat([True, False], [40, 200])
    a, b = np.zeros(240, dtype=bool), np.zeros(240, dtype=bool)
    a[: 20 + lost], b[:20] = True, True
    b[39 - won : 39] = True
    assert worse == (binomtest(won, lost + won, alternative="less").pvalue < 0.025)
    assert worse == ("recall" in compare_flags(y, a, b).worse)


ROW = st.tuples(st.booleans(), st.booleans(), st.booleans())


@given(st.lists(ROW, max_size=40))
def test_it_is_total_and_turns_round(rows: Rows) -> None:
    y, a, b = (np.array([row[i] for row in rows], dtype=bool) for i in range(3))
    there, back = compare_flags(y, a, b), compare_flags(y, b, a)
    for name in FIGURES:
        one, other = getattr(there, name), getattr(back, name)
        if one.value is None:
            assert other.value is None
            continue
        assert -1 <= one.low <= one.value <= one.high <= 1
        assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low))
    same: Paired = compare_flags(y, a, a)
    assert same.worse == ()
    assert same.flag_rate.high in (0.0, None)


def test_rows_that_do_not_match_are_refused() -> None:
    with pytest.raises(BadInput, match="3 labels, 2 and 3 flags"):
        compare_flags(np.ones(3, dtype=bool), np.ones(2, dtype=bool), np.ones(3, dtype=bool))
