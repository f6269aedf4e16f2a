"""Labels of all traffic and labels drawn among what a cut flags, weighted as one sample: a dual-frame design.

The flagged traffic is a domain of known size. Within it both samples speak, each for a share that no verdict decides
(Hartley 1962); beyond it the first alone. Its weights are post-stratified to the two counted sizes.
"""

from __future__ import annotations

import numpy as np

from calibrate.stats.sweep.design import Bools, Design


def combine_frames(first: Design, flagged: Bools, *, traffic_flagged: float, fresh: int) -> Design:
    """One design for the rows of the first sample followed by fresh rows drawn among what is flagged.

    Parameters
    ----------
    first : Design
        How the first labels were drawn from all traffic.
    flagged : array of bool, shape (labels,)
        Which of them lie in the domain: flagged at the cut that the fresh ones were drawn at.
    traffic_flagged : float
        How many traces of the traffic that cut flags.
    fresh : int
        How many were drawn among them, uniformly, the first sample's members left out.

    Returns
    -------
    Design
        Rows of a stratum share one weight; the weights sum to the traffic.

    References
    ----------
    Hartley, Proceedings of the Social Statistics Section, ASA (1962). Lohr, Handbook of Statistics 29A (2009).
    """
    weights, inside = first.weights.copy(), int(flagged.sum())
    total = float(weights.sum())
    share = 1.0
    if inside:
        kish = float(weights[flagged].sum() ** 2 / (weights[flagged] ** 2).sum())
        share = fresh / (fresh + kish)
        weights[flagged] *= traffic_flagged / weights[flagged].sum()
        weights[flagged] = share + (1 - share) * weights[flagged]
    if not flagged.all():
        weights[~flagged] *= max(total - traffic_flagged, 0.0) / weights[~flagged].sum()
    each = np.append(weights, np.full(fresh, share * max(traffic_flagged - inside, 0.0) / max(fresh, 1)))
    cells = np.append(2 * first.strata + flagged, np.full(fresh, 2 * len(first.population)))
    strata = np.unique(cells, return_inverse=True)[1].astype(np.int64)
    rows = np.bincount(strata)
    stands_for = np.bincount(strata, weights=each) / rows
    return Design(strata, rows.astype(np.int64), stands_for)
