"""Certification in one scenario, many times over, against the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from calibrate.simulate.published import published
from calibrate.simulate.scenarios import SIZE, TARGET, Floats, Ints, Traffic
from calibrate.simulate.trials import certification

ENOUGH = 100
"""Traces of fresh traffic that the oracle flags at least in a cell whose recall counts: fewer cannot fill stage B."""

Method = Literal["shipped", "shipped, random stage A", "published"]


@dataclass(frozen=True)
class Cell:
    """Certification with `labels` in all: shares of replications.

    `violations`: certified cuts that are truly below the target. `recall_share`: of the oracle's recall, its mean with
    0 for no certificate or a wrong one; None where the oracle itself flags next to nothing. `chance` was predicted.
    `requests`: failed attempts that asked for more labels, `followed` of which led to a certificate.
    """

    name: str
    kind: str
    method: Method
    labels: int
    replications: int
    oracle_flags: float
    violations: float
    recall_share: float | None
    recall_error: float
    certified: float
    chance: float | None = None
    requests: int = field(default=0, metadata={"key": "asked"})  # its name in JSON
    followed: int = 0


def cell(
    traffic: Traffic,
    *,
    replications: int,
    labels: int,
    rng: np.random.Generator,
    method: Method = "shipped",
    follow: bool = False,
) -> Cell:
    """One scenario by one method; with `follow` a failed attempt labels what it asked for and tries once more."""
    chance, requests, followed = None, 0, 0
    if method == "published":
        flagged = published(traffic, labels=labels, replications=replications, rng=rng)
    else:
        design = "octave" if method == "shipped" else "random"
        outcome = certification(
            traffic, labels=labels, replications=replications, rng=rng, design=design, follow=follow
        )
        flagged, chance = outcome.flagged, float(outcome.chance.mean())
        requests, followed = int((outcome.needed > 0).sum()), int((outcome.followed > 0).sum())
    wrong, shares = against_truth(traffic, flagged)
    return Cell(
        name=traffic.name,
        kind=traffic.kind,
        method=method,
        labels=labels,
        replications=replications,
        oracle_flags=traffic.oracle() / SIZE,
        violations=wrong,
        recall_share=float(shares.mean()) if reachable(traffic) else None,
        recall_error=float(shares.std() / np.sqrt(replications)),
        certified=float((flagged > 0).mean()),
        chance=chance,
        requests=requests,
        followed=followed,
    )


def against_truth(traffic: Traffic, flagged: Ints, target: float = TARGET) -> tuple[float, Floats]:
    """The share of replications certified below `target`, and the share of the oracle's recall that each kept."""
    at = np.maximum(flagged, 1) - 1
    right = (flagged > 0) & (traffic.precision[at] >= target)
    most = traffic.oracle(target)
    shares = np.where(right, traffic.recall[at] / traffic.recall[most - 1], 0.0) if most else np.zeros(len(at))
    return float(((flagged > 0) & ~right).mean()), shares


def reachable(traffic: Traffic) -> bool:
    """Whether fresh traffic holds enough of what the oracle flags."""
    return traffic.oracle() / SIZE * traffic.fresh >= ENOUGH
