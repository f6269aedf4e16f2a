"""The share of traffic that is hallucinated, with an interval that takes the sample's design into account."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import Interval


def prevalence_interval(
    labels: ArrayLike,
    *,
    inside: ArrayLike | None = None,
    design: Design | None = None,
    groups: Sequence[Hashable] | None = None,
) -> Interval:
    """Estimate the share of the traffic, or of a part of it, that is hallucinated, with its 95% interval.

    The share in a part equals the precision of a rule that flags this part and nothing else. So the interval of that
    precision is used.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    inside : array of bool, shape (labels,), optional
        True for the labels in the part; default: all labels.
    design : Design, optional
        How the labels were drawn; default: at random.
    groups : sequence of hashable, optional
        The source of each trace; traces of one source count as a cluster. Default: every trace has its own.

    Returns
    -------
    Interval
        A share from 0 to 1; all None without a label in the part.

    References
    ----------
    Cochran, Sampling Techniques, 3rd ed. (1977), sections 5A.14 and 6.11.
    """
    y = np.asarray(labels, dtype=bool)
    part = np.ones(len(y), dtype=bool) if inside is None else np.asarray(inside, dtype=bool)
    if not part.any():
        return Interval(None)
    return figures(sweep(y, part.astype(float), design=design, groups=groups), 1.0).precision
