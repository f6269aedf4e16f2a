"""A sweep with 2,000 resamples against the same loop over scikit-learn, numpy's argsort, and its own growth.

Everything in one run, every ratio to a baseline measured beside it. Memory is the peak that tracemalloc sees (numpy
reports its arrays to it) in the sweep and the resamples, beyond the labels and scores themselves.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from calibrate.stats.choosing.bootstrap_curves import Replicates, bootstrap_curves
from calibrate.stats.sweep.sweep import sweep

FEW, MANY, MOST = 500, 1_000_000, 10_000_000
RESAMPLES = 2000
LOOP = 20  # resamples that the loop is timed on
THRESHOLDS = (0.5, 1.0, 2.0)


def traces(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(20261116)
    labels = rng.random(rows) < 0.05
    return labels, rng.normal(size=rows) + 1.5 * labels


def seconds(run: Callable[[], object], repeats: int = 5) -> float:
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def ours(labels: np.ndarray, scores: np.ndarray) -> Replicates:
    found = sweep(labels, scores)
    _ = found.precision, found.recall
    return bootstrap_curves(labels, scores, thresholds=THRESHOLDS, count=RESAMPLES, rng=np.random.default_rng(1))


def loop(labels: np.ndarray, scores: np.ndarray) -> float:
    """Seconds that RESAMPLES curves of scikit-learn take, extrapolated from LOOP, their rows drawn for free."""
    from sklearn.metrics import precision_recall_curve

    rng = np.random.default_rng(1)
    drawn = rng.integers(len(labels), size=(LOOP, len(labels)))
    resampled = [(labels[rows], scores[rows]) for rows in drawn]

    def some() -> None:
        for labels, scores in resampled:
            precision_recall_curve(labels, scores)

    return seconds(some, 1 if len(labels) > FEW else 5) * RESAMPLES / LOOP


def peak(labels: np.ndarray, scores: np.ndarray) -> float:
    """The peak of memory, in sizes of the score array."""
    tracemalloc.start()
    ours(labels, scores)
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return highest / scores.nbytes


def main() -> dict[str, float]:
    few, many, most = traces(FEW), traces(MANY), traces(MOST)
    small, large, huge = (seconds(lambda one=one: ours(*one)) for one in (few, many, most))
    sort = seconds(lambda: np.argsort(many[1]))
    tiny = seconds(lambda: ours(*traces(10_000)))
    n_log_n = MOST * np.log(MOST) / (10_000 * np.log(10_000))
    figures = {
        "few_seconds": small,
        "few_ratio_to_loop": loop(*few) / small,
        "many_seconds": large,
        "many_ratio_to_loop": loop(*many) / large,
        "many_argsorts": large / sort,
        "growth_over_n_log_n": huge / tiny / n_log_n,
        # From 10^6 on the fixed cost of the resamples no longer hides the growth.
        "late_growth_over_n_log_n": huge / large / (MOST * np.log(MOST) / (MANY * np.log(MANY))),
        "peak_score_arrays": max(peak(*many), peak(*most)),
    }
    fast, grown = figures["many_ratio_to_loop"], figures["late_growth_over_n_log_n"]
    print(
        f"{FEW} labels: {small:.3f} s, {figures['few_ratio_to_loop']:.0f} x faster than the loop over scikit-learn; "
        f"{MANY:,} scores: {large:.3f} s, {fast:,.0f} x faster, {figures['many_argsorts']:.1f} "
        f"argsorts; {MOST:,} scores: {huge:.2f} s, growth from 10,000 {figures['growth_over_n_log_n']:.3f} and from "
        f"{MANY:,} {grown:.2f} of n log n; peak {figures['peak_score_arrays']:.1f} score arrays"
    )
    return figures


if __name__ == "__main__":
    figures = main()
    if figures["few_ratio_to_loop"] < 40 or figures["many_ratio_to_loop"] < 500:
        raise SystemExit("too slow beside scikit-learn")
    if figures["many_argsorts"] > 12:
        raise SystemExit("slower than twice six argsorts")
    if figures["growth_over_n_log_n"] > 1 or figures["late_growth_over_n_log_n"] > 1.2:
        raise SystemExit("grows faster than n log n")
    if figures["peak_score_arrays"] >= 12:
        raise SystemExit("takes more memory than 12 score arrays")
