"""Choose the operating point of a policy on a sweep, and state what guarantee it has.

`choose` is `measured`: judged on the labels that chose it. `choose_bounded` holds a lower bound of the precision, on
the same labels, against the target. A certified point comes from `certify`.
"""

from __future__ import annotations

from dataclasses import replace

from calibrate.errors import BadInput
from calibrate.stats.choosing.bounded import Bounded, bounded
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.choosing.pool import Pool
from calibrate.stats.choosing.rules import Cut, place_cut
from calibrate.stats.intervals.exact_tests import ALPHA
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.sweep import Sweep
from calibrate.types import Guarantee, OperatingPoint


class NotEnoughLabels(BadInput):
    """The labels cannot choose a threshold; the message says what is missing and how to get it."""


def choose(
    sweep: Sweep, policy: Policy, *, detector: str = "", threshold: float | None = None, pool: Pool | None = None
) -> OperatingPoint:
    """The operating point that a policy picks on a sweep, `measured`.

    When no threshold meets the policy the point is the nearest one, `feasible` is False and `why` says so.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    policy : Policy
        The rule that chooses a point.
    detector : str
        Named in errors and in the point.
    threshold : float, optional
        For `manual` without a number, in the detector's units.
    pool : Pool, optional
        The traffic, for `alerts`: flags are counted there.

    Returns
    -------
    OperatingPoint
        The point chosen; the nearest one, not `feasible`, where no threshold meets the policy.

    Raises
    ------
    NotEnoughLabels
        Where a class has no scored label.
    """
    # A threshold set by hand needs no labels; what they cannot measure is then None.
    if policy.kind != "manual":
        _refuse_one_class(sweep, detector)
    elif threshold is not None:
        policy = Policy("manual", threshold)
    return _measure_point(sweep, policy, place_cut(sweep, policy, pool), detector)


def choose_bounded(sweep: Sweep, policy: Policy, *, detector: str = "", alpha: float = ALPHA) -> OperatingPoint:
    """The loosest threshold whose lower bound on precision still meets the target of a `precision` policy.

    Without one the point is where the walk began, without a guarantee, `feasible` False and with a `why`.

    Parameters
    ----------
    sweep : Sweep
        Figures at every threshold.
    policy : Policy
        A `precision` policy.
    detector : str
        Named in errors and in the point.
    alpha : float
        One-sided error of the bound, between 0 and 1.

    Returns
    -------
    OperatingPoint
        With a `bounded` guarantee, or not `feasible`.

    Raises
    ------
    BadInput
        For another policy, and for a target of 1.
    NotEnoughLabels
        Where a class has no scored label.
    """
    if policy.kind != "precision":
        raise BadInput(
            f"the policy {policy} cannot be bounded, only a precision can: write precision>=0.7, or measure it"
        )
    _refuse_one_class(sweep, detector)
    walk = bounded(sweep, policy.number, alpha=alpha)
    if not isinstance(walk, Bounded):
        # Where nothing flags enough labels to be tested, the nearest is what flags most.
        nearest = walk.thresholds[0] if len(walk.thresholds) else sweep.thresholds[-1]
        return _measure_point(sweep, policy, Cut(float(nearest), walk.unmet), detector)
    point = _measure_point(sweep, policy, Cut(walk.threshold), detector)
    guarantee = Guarantee("bounded", walk.target, 1 - alpha, walk.bound, walk.labels, point.true_positives)
    return replace(point, guarantee=guarantee)


def _refuse_one_class(sweep: Sweep, detector: str) -> None:
    if sweep.missing:
        raise NotEnoughLabels(
            f"{detector}{': ' if detector else ''}a threshold needs hallucinated and clean labels with a score: of "
            f"{sweep.n} labels {sweep.positives} are hallucinated, and {sweep.scored} have a score, "
            f"{sweep.scored_positives} of them hallucinated. Label more traces, or see why the detector abstained"
        )


def _measure_point(sweep: Sweep, policy: Policy, cut: Cut, detector: str) -> OperatingPoint:
    measured = figures(sweep, cut.threshold)
    return OperatingPoint(
        detector=detector,
        flag_when=sweep.flag_when,
        threshold=cut.threshold,
        policy=str(policy),
        feasible=cut.unmet is None,
        precision=measured.precision,
        recall=measured.recall,
        fpr=measured.fpr,
        flag_rate=measured.flag_rate,
        n=sweep.n,
        positives=sweep.positives,
        true_positives=measured.true_positives,
        false_positives=measured.false_positives,
        false_negatives=measured.false_negatives,
        true_negatives=measured.true_negatives,
        coverage=sweep.coverage or 0.0,
        why=cut.unmet,
    )
