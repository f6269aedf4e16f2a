"""The bootstrap: how far a figure would move had other traces been labelled.

Traces that share their sources err together, so whole groups are drawn (the cluster bootstrap, Field and Welsh 2007);
a trace without a group is a group of its own. A resample is a row of weights: how often each trace was drawn.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from calibrate.types import FlagWhen, Interval

Floats = NDArray[np.float64]
RESAMPLES = 1000


def resamples(groups: Sequence[Hashable], *, rng: np.random.Generator, count: int = RESAMPLES) -> Floats:
    """Weights of `count` resamples, shape (count, traces): each draws as many groups as there are, with replacement.

    `groups`: a trace's group, None for a group of its own.
    """
    known: dict[Hashable, int] = {}
    members = np.array([known.setdefault(("", i) if g is None else ("g", g), len(known)) for i, g in enumerate(groups)])
    drawn = rng.multinomial(len(known), np.full(len(known), 1 / len(known)), size=count) if known else None
    return np.zeros((count, 0)) if drawn is None else drawn[:, members].astype(float)


def auroc(labels: NDArray[np.bool_], scores: Floats, weights: Floats, *, flag_when: FlagWhen = "above") -> Floats:
    """Area under the ROC curve for each row of `weights`, shape (rows,); NaN where a row holds one class only.

    The chance that a hallucinated trace is scored nearer to the flagged side than a clean one, ties counting half.
    `scores` are finite.
    """
    signed = scores if flag_when == "above" else -scores
    order = np.argsort(signed, kind="stable")
    ranked = signed[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.zeros(0, dtype=int)
    hit = labels[order]
    positive = np.add.reduceat(weights[:, order] * hit, starts, axis=1)
    negative = np.add.reduceat(weights[:, order] * ~hit, starts, axis=1)
    below = np.cumsum(negative, axis=1) - negative
    pairs = positive.sum(axis=1) * negative.sum(axis=1)
    won = (positive * (below + negative / 2)).sum(axis=1)
    areas: Floats = np.divide(won, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)
    return areas


def auroc_interval(
    labels: NDArray[np.bool_],
    scores: Floats,
    *,
    groups: Sequence[Hashable],
    flag_when: FlagWhen,
    rng: np.random.Generator,
) -> Interval:
    """AUROC with its 95% percentile interval over resampled groups. Traces without a score (NaN) are left out; no value
    without both classes."""
    there = np.isfinite(scores)
    labels, scores = labels[there], scores[there]
    if not labels.any() or labels.all():
        return Interval(None)
    kept = [group for group, here in zip(groups, there, strict=True) if here]
    value = auroc(labels, scores, np.ones((1, len(labels))), flag_when=flag_when)[0]
    drawn = auroc(labels, scores, resamples(kept, rng=rng), flag_when=flag_when)
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    return Interval(float(value), float(low), float(high))
