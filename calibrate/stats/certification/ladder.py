"""The ladder of cuts that a certificate may use, laid through the unlabelled scores of the traffic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.errors import BadInput
from calibrate.orientation import suspicion
from calibrate.stats.fitting.ridge import hinge
from calibrate.stats.sweep.design import Floats
from calibrate.types import FlagWhen

# Cuts lie at shares of traffic that grow by 2^(1/6); a plan looks at every second of them, the walk at all.
STEPS_PER_OCTAVE, OCTAVES = 6, 10
KNOTS = np.arange(9.0)
"""Where the fit may bend, in halvings of the traffic: 0 is everything, 8 the top 1/256, as the octave design draws."""

NODES = 6  # scores at which the fitted curve is read within each ring between two cuts


@dataclass(frozen=True)
class Ladder:
    """The cuts a plan may use, strict to loose, and the traffic between them.

    `thresholds` in the detector's units; `shares` of all traffic flagged at each, 0 to 1; `features` of the traffic in
    the ring that each cut adds, shape (cuts, NODES, features). `ordered`: the pool's scores, ascending, as positive
    where suspicious; `total` traces in the pool, scored or not.
    """

    thresholds: Floats
    shares: Floats
    features: Floats
    ordered: Floats
    total: int
    centre: float
    spread: float
    flag_when: FlagWhen

    @property
    def rings(self) -> Floats:
        """Share of all traffic that each cut adds to the stricter ones."""
        return np.diff(self.shares, prepend=0.0)

    def positions(self, scores: Floats) -> Floats:
        """The share of traffic that is at least as suspicious, ties halved, above 0 and at most 1."""
        signed = suspicion(scores, self.flag_when)
        above = len(self.ordered) - np.searchsorted(self.ordered, signed, side="right")
        tied = len(self.ordered) - above - np.searchsorted(self.ordered, signed, side="left")
        return np.clip((above + tied / 2) / self.total, 0.5 / self.total, 1.0)

    def describe(self, scores: Floats) -> Floats:
        """The features of scores, on a new last axis: the standardised score and its hinge, and a hat at every knot."""
        return _features((suspicion(scores, self.flag_when) - self.centre) / self.spread, self.positions(scores))


def build_ladder(pool: Floats, *, flag_when: FlagWhen = "above") -> Ladder:
    """Lay cuts through a pool of unlabelled scores.

    Parameters
    ----------
    pool : array of float, shape (traces,)
        Unlabelled scores in the detector's units, NaN where it has none.
    flag_when : {"above", "below"}
        The detector's suspicious side.

    Returns
    -------
    Ladder
        Cuts at shares of traffic that grow by 2^(1/6), strict to loose.

    Raises
    ------
    BadInput
        For infinite scores, and where there is nothing to cut.
    """
    scored = pool[~np.isnan(pool)]
    if not np.isfinite(scored).all():
        raise BadInput(f"{np.isinf(scored).sum()} scores are infinite: a detector that cannot score must abstain")
    if len(scored) < 2 or scored.min() == scored.max():
        raise BadInput(
            (f"all {len(scored)} scores are {scored[0]:.4g}" if len(scored) else "no trace has a score")
            + ": there is nothing to cut; see why the detector gave them"
        )
    ordered = np.sort(suspicion(scored, flag_when))
    halvings = np.arange(OCTAVES * STEPS_PER_OCTAVE, -1, -1) / STEPS_PER_OCTAVE
    flagged_counts = np.clip(np.round(len(pool) * 2.0**-halvings), 1, len(scored)).astype(np.int64)
    # Ties share one cut: the looser rank of equal scores is what the cut flags.
    cuts = np.unique(ordered[len(ordered) - flagged_counts])[::-1]
    flagged = len(ordered) - np.searchsorted(ordered, cuts, side="left")
    shares = flagged / len(pool)
    centre, spread = float(ordered.mean()), float(ordered.std())
    before = np.append(0, flagged[:-1])
    ranks = before[:, None] + (flagged - before)[:, None] * (np.arange(NODES) + 0.5) / NODES
    at = ordered[len(ordered) - 1 - np.minimum(ranks.astype(np.int64), len(ordered) - 1)]
    features = _features((at - centre) / spread, np.maximum(ranks, 0.5) / len(pool))
    return Ladder(suspicion(cuts, flag_when) + 0.0, shares, features, ordered, len(pool), centre, spread, flag_when)


def local_weights(positions: Floats, weights: Floats) -> Floats:
    """Make weights 1 on average within every octave of the detector's own ranking.

    The fit asks how often traces of one score are hallucinated. How often such scores were drawn does not matter to it
    and would drown the few labels at the top; who was drawn among them does, where strata are not this detector's.

    Parameters
    ----------
    positions : array of float, shape (..., labels)
        The share of traffic that is at least as suspicious as each label, above 0 and up to 1.
    weights : array of float, shape (..., labels)
        How many traces each label stands for.

    Returns
    -------
    array of float, shape (..., labels)
        The weights, scaled.
    """
    octave = np.minimum(-np.log2(positions), KNOTS[-1]).astype(np.int64)
    scaled = np.empty(np.broadcast_shapes(positions.shape, weights.shape))
    weights = np.broadcast_to(weights, scaled.shape)
    for k in range(len(KNOTS)):
        here = octave == k
        mean = (weights * here).sum(-1) / np.maximum(here.sum(-1), 1)
        scaled = np.where(here, weights / np.where(mean > 0, mean, 1.0)[..., None], scaled)
    return scaled


def _features(z: Floats, positions: Floats) -> Floats:
    halvings = np.clip(-np.log2(positions), 0.0, KNOTS[-1])
    return np.concatenate([hinge(z), np.maximum(0.0, 1 - np.abs(halvings[..., None] - KNOTS))], axis=-1)
