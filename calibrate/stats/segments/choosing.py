"""Thresholds per segment: one cut at P(hallucinated) for all segments, where the policy is met out of fold.

Flagging by P(hallucinated | score, segment) finds most at any given precision of all flags together (Neyman and
Pearson). So the segments' thresholds are where their curves cross one probability, and choosing it is as choosing one
threshold: one number, from the same labels, by the same policy. Where the curves are alike, the thresholds are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.segments.curves import SegmentCurves, fit_curves, odds_out_of_fold
from calibrate.stats.segments.rivals import Gain, Rival, measure_gain
from calibrate.stats.segments.rows import SegmentRows
from calibrate.stats.sweep.design import Bools, Floats

KINDS = ("precision", "recall", "f-beta", "cost")
POLICIES = ", ".join(("precision>=0.7", "recall>=0.9", "f1", "f-beta:BETA or cost:fa=1,miss=20"))
FEWEST = 2  # segments with enough labels
RESAMPLES = 1000


@dataclass(frozen=True)
class SegmentChoice:
    """What a policy chooses per segment, beside one threshold for all.

    `common` is the one threshold and `own` those of the segments that have enough labels, as suspicious scores.
    `common_flags` and `own_flags`, shape (labels,), are what they flag: the own ones out of fold, and in other segments
    as the common one. `odds` is the cut in log odds. `feasible`: whether both meet the policy.
    """

    common: float
    own: Floats
    odds: float
    common_flags: Bools
    own_flags: Bools
    feasible: bool
    curves: SegmentCurves
    gain: Gain

    @property
    def offered(self) -> bool:
        """Whether thresholds per segment gain beyond the interval of the gain."""
        return self.feasible and self.gain.shown


def choose_segments(
    rows: SegmentRows, policy: Policy, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> SegmentChoice:
    """Choose a threshold for each segment that has enough labels, and measure what they gain.

    Parameters
    ----------
    rows : SegmentRows
        At least two segments with enough labels.
    policy : Policy
        A precision, a recall, an F or a cost.
    rng : Generator
        Deals folds and draws resamples.
    resamples : int
        Of the interval of the gain.

    Returns
    -------
    SegmentChoice
        Thresholds, flags and gain.

    Raises
    ------
    BadInput
        For other policies, and for fewer segments with enough labels.

    References
    ----------
    Neyman and Pearson, Phil. Trans. R. Soc. A 231 (1933).
    """
    check_policy(policy)
    if rows.enough.sum() < FEWEST:
        raise BadInput("fewer than two segments have enough labels for a threshold of their own: label more traces")
    odds = odds_out_of_fold(rows, rng=rng)
    curves = fit_curves(rows)
    single = Rival.of(rows, rows.suspicious)
    point, feasible = single.choose(policy)
    common_flags = single.flags_at(point)
    # Other rows keep the common threshold: what that flags is flagged before any of them, the rest never is.
    own = Rival.of(rows, np.where(rows.modelled, odds, np.where(common_flags, np.inf, np.nan)))
    own_point, own_feasible = own.choose(policy)
    cut = own.value_at(own_point)
    target = policy.number if policy.kind == "precision" else float(single.curve.precision[0, point])
    return SegmentChoice(
        common=single.value_at(point),
        own=curves.cut_at(cut),
        odds=cut,
        common_flags=common_flags,
        own_flags=own.flags_at(own_point),
        feasible=feasible and own_feasible,
        curves=curves,
        gain=measure_gain(single, own, target, rng=rng, resamples=resamples),
    )


def check_policy(policy: Policy) -> None:
    """Refuse a policy that sets no thresholds per segment.

    Parameters
    ----------
    policy : Policy
        As asked for.

    Raises
    ------
    BadInput
        For a budget of alerts, the elbow and a threshold set by hand.
    """
    if policy.kind not in KINDS:
        raise BadInput(f"the policy {policy} has no thresholds per segment: take {POLICIES}")
