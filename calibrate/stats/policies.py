"""The rule that chooses a point on a sweep, and the point it chooses.

Everything here is `measured`: judged on the labels that chose it. Nothing is certified.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.design import Floats
from calibrate.stats.intervals import figures
from calibrate.stats.smooth import smoothed
from calibrate.stats.sweep import Sweep
from calibrate.types import OperatingPoint

POLICIES = "precision>=0.7, elbow, manual:0.42"
# A measured 0.7 summed in weights may come out as 0.6999999999999999.
SLACK = 1e-12


class NotEnoughLabels(BadInput):
    """The labels cannot choose a threshold; the message says what is missing and how to get it."""


@dataclass(frozen=True)
class Policy:
    """`precision` with its target (0 to 1], `elbow`, or `manual` with a threshold in the detector's units, or without.

    `str()` gives the text that `parse` reads.
    """

    kind: Literal["precision", "elbow", "manual"]
    value: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return self.kind
        return f"{self.kind}{'>=' if self.kind == 'precision' else ':'}{self.value:.12g}"


@dataclass(frozen=True)
class _Choice:
    threshold: float
    feasible: bool = True
    why: str | None = None


def parse(text: str) -> Policy:
    """The policy a user wrote: `precision>=0.7`, `elbow`, `manual` or `manual:0.42`."""
    compact = "".join(text.split()).lower()
    if compact in ("elbow", "manual"):
        return Policy("elbow" if compact == "elbow" else "manual")
    match = re.fullmatch(r"(precision>=|manual:)(.*)", compact)
    if not match:
        raise BadInput(f"no policy {text!r}: write one of {POLICIES}")
    value = _number(match[2], text)
    if match[1] == "manual:":
        return Policy("manual", value)
    if not 0 < value <= 1:
        hint = f": write precision>={value / 100:g} for {value:g}%" if 1 < value <= 100 else ""
        raise BadInput(f"policy {text!r} asks for a precision of {value:g}; it must be above 0 and at most 1{hint}")
    return Policy("precision", value)


def choose(sweep: Sweep, policy: Policy, *, detector: str = "", threshold: float | None = None) -> OperatingPoint:
    """The operating point `policy` picks on `sweep`. `threshold` is for `manual` without a number in its text.

    When no threshold meets the policy the point is the nearest one, `feasible` is False and `why` says so. Raises
    NotEnoughLabels where the labels cannot choose: a class without a scored label.
    """
    # A threshold set by hand needs no labels; what they cannot measure is then None, and `why` says so.
    if policy.kind != "manual" and sweep.missing:
        raise NotEnoughLabels(f"{detector}: {sweep.missing}" if detector else sweep.missing)
    if policy.kind == "manual" and threshold is not None:
        policy = Policy("manual", threshold)
    choice = _CHOOSERS[policy.kind](sweep, policy.value)
    measured = figures(sweep, choice.threshold)
    return OperatingPoint(
        detector=detector,
        flag_when=sweep.flag_when,
        threshold=choice.threshold,
        policy=str(policy),
        feasible=choice.feasible,
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
        why=choice.why,
    )


def _number(digits: str, text: str) -> float:
    try:
        value = float(digits)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise BadInput(f"policy {text!r}: {digits!r} is no number; write one of {POLICIES}")
    return value


def _by_precision(sweep: Sweep, target: float | None) -> _Choice:
    """Most recall among the points whose measured precision is at least `target`; of equals the strictest."""
    if target is None:
        raise BadInput("the policy precision needs a target: write precision>=0.7")
    enough = sweep.precision >= target - SLACK
    if enough.any():
        return _Choice(_threshold(sweep, _first_highest(np.where(enough, sweep.tp, -1.0))))
    # The nearest: highest precision, then most recall, then strictest.
    top = sweep.precision >= sweep.precision.max() - SLACK
    best = _first_highest(np.where(top, sweep.tp, -1.0))
    flagged = int(sweep.tp_count[best] + sweep.fp_count[best])
    why = (
        f"no threshold reaches precision {target:.2f}; the best is {_below(sweep.precision[best], target)} "
        f"at {sweep.thresholds[best]:.4g} ({flagged} {'label' if flagged == 1 else 'labels'} flagged)"
    )
    return _Choice(_threshold(sweep, best), feasible=False, why=why)


def _by_elbow(sweep: Sweep, _: float | None) -> _Choice:
    """The observed score at which the smoothed curve's F1 is highest; of equals the strictest."""
    return _Choice(_threshold(sweep, _first_highest(smoothed(sweep).f1)))


def _by_hand(sweep: Sweep, threshold: float | None) -> _Choice:
    if threshold is None:
        raise BadInput("the policy manual needs a threshold: write manual:0.42, in the detector's units")
    return _Choice(float(threshold), why=sweep.missing)


_CHOOSERS: dict[str, Callable[[Sweep, float | None], _Choice]] = {
    "precision": _by_precision,
    "elbow": _by_elbow,
    "manual": _by_hand,
}


def _threshold(sweep: Sweep, index: int) -> float:
    return float(sweep.thresholds[index])


def _first_highest(values: Floats) -> int:
    """Points run strict to loose, so the first of equals is the strictest."""
    return int(np.argmax(values))


def _below(value: float, target: float) -> str:
    """`value` with two digits, or as many as it takes not to read like the `target` it misses."""
    for digits in range(2, 12):
        if f"{value:.{digits}f}" != f"{target:.{digits}f}":
            return f"{value:.{digits}f}"
    return f"{value}"
