"""Answers that share their sources err together: what the variances need of them at every threshold.

Whole clusters are taken as drawn, with replacement (the ultimate cluster: Hansen, Hurwitz and Madow 1953; Wolter 2007,
section 1.3). A cluster's flagged weights grow as the threshold loosens, so sums of their squares over clusters are
running sums over sorted rows, for all thresholds at the price of a sort.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.errors import BadInput
from calibrate.stats.sweep.design import Bools, Floats, Ints


@dataclass(frozen=True)
class Clusters:
    """Sums over `count` clusters of products of their weights: hallucinated and flagged `t`, clean and flagged `f`, at
    every point of a sweep, and all that is hallucinated `p`, clean `c`, or either `n`, scored or not."""

    count: int
    tt: Floats
    ff: Floats
    tf: Floats
    tp: Floats
    fc: Floats
    fn: Floats
    tn: Floats
    pp: float
    cc: float
    nn: float

    def at(self, points: NDArray[np.intp]) -> Clusters:
        """The same at some of the points."""
        taken: dict[str, Any] = {name: getattr(self, name)[points] for name in _RUNNING}
        return replace(self, **taken)

    def nothing(self) -> Clusters:
        """The same at a point that flags nothing."""
        none: dict[str, Any] = {name: np.zeros(1) for name in _RUNNING}
        return replace(self, **none)


_RUNNING = ("tt", "ff", "tf", "tp", "fc", "fn", "tn")


def cluster_codes(groups: Sequence[Hashable]) -> Ints | None:
    """Number each row's cluster. A group of None is a cluster of its own.

    Parameters
    ----------
    groups : sequence of hashable, length labels
        The sources that a trace shares with others, None for a trace of its own.

    Returns
    -------
    array of int, shape (labels,), or None
        Codes from 0; None where no two rows share a group.
    """
    named = [group for group in groups if group is not None]
    if len(set(named)) == len(named):
        return None
    numbers: dict[Hashable, int] = {}
    codes = np.array(
        [numbers.setdefault(("", i) if g is None else ("g", g), len(numbers)) for i, g in enumerate(groups)]
    )
    return codes.astype(np.int64)


def sum_clusters(
    keys: Floats, y: Bools, has_score: Bools, cluster: Ints, weights: Floats | None, distinct: Floats
) -> Clusters:
    """Sum products of cluster weights at every threshold.

    Parameters
    ----------
    keys : array of float, shape (scored,)
        Scores of the scored rows, turned so that the most suspicious is lowest.
    y : array of bool, shape (labels,)
        True for hallucinated.
    has_score : array of bool, shape (labels,)
        Which labels have a score.
    cluster : array of int, shape (labels,)
        The cluster of every label, from 0.
    weights : array of float, shape (labels,), or None
        What each label stands for; None: 1.
    distinct : array of float, shape (points,)
        The keys at which a threshold can stand, ascending.

    Returns
    -------
    Clusters
        Sums at every point.

    Raises
    ------
    BadInput
        For another number of clusters than labels.
    """
    if len(cluster) != len(y):
        raise BadInput(f"{len(cluster)} groups for {len(y)} labels: give one per label, None for a trace on its own")
    w = np.ones(len(y)) if weights is None else weights
    many = int(cluster.max(initial=-1)) + 1
    bad = np.bincount(cluster, weights=w * y, minlength=many)
    clean = np.bincount(cluster, weights=w * ~y, minlength=many)
    order = np.argsort(keys, kind="stable")
    c, hit = cluster[has_score][order], y[has_score][order]
    t = np.where(hit, w[has_score][order], 0.0)
    f = np.where(hit, 0.0, w[has_score][order])
    t_before, f_before = _sum_before(c, t), _sum_before(c, f)
    last = np.searchsorted(keys[order], distinct, side="right") - 1

    def run(steps: Floats) -> Floats:
        return np.asarray(np.cumsum(steps)[last])

    return Clusters(
        count=many,
        tt=run(t * (2 * t_before + t)),
        ff=run(f * (2 * f_before + f)),
        tf=run(t * f_before + f * t_before),
        tp=run(t * bad[c]),
        fc=run(f * clean[c]),
        fn=run(f * (bad + clean)[c]),
        tn=run(t * (bad + clean)[c]),
        pp=float(bad @ bad),
        cc=float(clean @ clean),
        nn=float((bad + clean) @ (bad + clean)),
    )


def _sum_before(cluster: Ints, steps: Floats) -> Floats:
    """What each row's cluster had gathered before the row came."""
    order = np.argsort(cluster, kind="stable")
    total = np.cumsum(steps[order]) - steps[order]
    first = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    sizes = np.diff(np.append(first, len(order)))
    before = np.empty(len(steps))
    before[order] = total - np.repeat(total[first], sizes)
    return before


def first_of_each(groups: Sequence[Hashable], n: int) -> list[int]:
    """The rows that are the first of their group; every row without a group counts.

    Parameters
    ----------
    groups : sequence of hashable, length labels
        The sources that a trace shares with others, None for a trace of its own.
    n : int
        How many labels there are.

    Returns
    -------
    list of int
        Rows, ascending.

    Raises
    ------
    BadInput
        For another number of groups than labels.
    """
    if len(groups) != n:
        raise BadInput(f"{len(groups)} groups for {n} labels: give one per label, None for a trace on its own")
    seen: set[Hashable] = set()
    rows = []
    for row, group in enumerate(groups):
        if group is None or group not in seen:
            rows.append(row)
            seen.add(group)
    return rows
