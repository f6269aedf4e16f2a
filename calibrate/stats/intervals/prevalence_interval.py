"""How well the share of hallucinated traffic is known: the interval of a share from the sample's design."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import Interval


def prevalence_interval(
    labels: ArrayLike, *, design: Design | None = None, groups: Sequence[Hashable] | None = None
) -> Interval:
    """Estimate the share of the traffic that is hallucinated, with its 95% interval.

    It is the precision of what flags everything, so the interval is that of a sweep at its only point.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    design : Design, optional
        How the labels were drawn; default: at random.
    groups : sequence of hashable, optional
        The sources that a trace shares with others; default: none shares any.

    Returns
    -------
    Interval
        A share from 0 to 1; all None without a label.

    References
    ----------
    Cochran, Sampling Techniques, 3rd ed. (1977), sections 5A and 6.11.
    """
    y = np.asarray(labels, dtype=bool)
    if not len(y):
        return Interval(None)
    return figures(sweep(y, np.zeros(len(y)), design=design, groups=groups), 0.0).precision
