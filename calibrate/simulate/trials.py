"""Replications of what a team does with its labels, on traffic whose truth is known, by the code that is shipped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.simulate.scenarios import FRESH, GROUP, TARGET, Bools, Floats, Ints, Traffic
from calibrate.stats.certification.forecast import labels_needed, plan_and_tell
from calibrate.stats.certification.ladder import Ladder, build_ladder, local_weights
from calibrate.stats.certification.readings import draw_rings
from calibrate.stats.certification.stage_a import STAGE_A_SHARE
from calibrate.stats.certification.walks import Walk
from calibrate.stats.intervals.exact_tests import binomial_p, level, walk_down
from calibrate.stats.sampling.designs import allocate
from calibrate.stats.sweep.clusters import first_of_each
from calibrate.stats.sweep.design import Design

DRAWS = 128  # of the posterior, per replication; the product takes more


@dataclass(frozen=True)
class Labelled:
    """Labels of every replication: rows of the traffic, verdicts, weights (0 for a place not used); (R, labels).

    `first`: those that are the first drawn of their sources; None where no trace shares them.
    """

    rows: Ints
    verdicts: Bools
    weights: Floats
    first: Bools | None = None


@dataclass(frozen=True)
class Outcome:
    """What certification made of every replication; all of shape (R,).

    `flagged`: how many traces of the traffic the certified cut flags, 0 without a certificate. `needed`: the labels
    that a failed attempt asked for, -1 for none; `followed`: whether labelling that many led to a certificate.
    """

    flagged: Ints
    chance: Floats
    labels: Ints
    needed: Ints
    followed: Ints

    @property
    def certified(self) -> Bools:
        return self.flagged > 0


def draw(traffic: Traffic, n: int, *, design: str, replications: int, rng: np.random.Generator) -> Labelled:
    """`n` labels a replication by the design `random`, or `octave` in its strata, with weights N_h / n_h."""
    if design == "random":
        rows = rng.integers(0, len(traffic.scores), (replications, n))
        return Labelled(rows, verdicts(traffic, rows, rng), np.ones((replications, n)))
    populations = {str(h): round(FRESH * len(rows) / len(traffic.scores)) for h, rows in enumerate(traffic.strata)}
    taken = allocate(populations, n)
    parts, weights = [], []
    for h, members in enumerate(traffic.strata):
        many = taken[str(h)]
        parts.append(members[rng.integers(0, len(members), (replications, many))])
        weights.append(np.full(many, populations[str(h)] / many))
    rows = np.concatenate(parts, axis=1)
    return Labelled(rows, verdicts(traffic, rows, rng), np.broadcast_to(np.concatenate(weights), rows.shape))


def verdicts(traffic: Traffic, rows: Ints, rng: np.random.Generator) -> Bools:
    """What the labeller says of rows: the truth, but for the scenario's misses and false calls."""
    truth = traffic.truth[rows]
    if not traffic.misses and not traffic.false_calls:
        return truth
    chance = rng.random(rows.shape)
    return np.where(truth, chance >= traffic.misses, chance < traffic.false_calls)


def design_of(traffic: Traffic, rows: Ints, design: str) -> Design:
    """The design of one replication's rows, as the estimates need to know it."""
    if design == "random":
        return Design(np.zeros(len(rows), dtype=np.int64), np.array([len(traffic.scores)]))
    return Design(traffic.stratum[rows], np.array([len(members) for members in traffic.strata]))


def certification(
    traffic: Traffic,
    *,
    labels: int,
    replications: int,
    rng: np.random.Generator,
    design: str = "octave",
    share_a: float = STAGE_A_SHARE,
    target: float = TARGET,
    follow: bool = False,
    attempt: int = 1,
) -> Outcome:
    """Both stages with `labels` in all, and with `follow` the further attempt that a failed one asks for. `attempt`:
    which one it is on this traffic."""
    rungs = build_ladder(traffic.scores)
    first = draw(traffic, round(labels * share_a), design=design, replications=replications, rng=rng)
    budget = labels - first.rows.shape[1]
    curves = _draw_curves(traffic, rungs, [first], rng)
    now = level(attempt)
    walk, prospect = plan_and_tell(rungs, curves, labels=budget, fresh=traffic.fresh, target=target, level=now, rng=rng)
    second = fresh_flagged(traffic, rungs, walk, rng)
    flagged = walked(traffic, rungs, _tested_cuts(rungs, walk), second, target=target, level=now)
    needed, followed = np.full(replications, -1), np.full(replications, -1)
    if follow:
        lost = np.flatnonzero(flagged == 0)
        curves = _draw_curves(traffic, rungs, [_take(first, lost), _take(second, lost)], rng)
        now = level(attempt + 1)
        again = labels_needed(rungs, curves, fresh=traffic.fresh, target=target, level=now, rng=rng)
        third = fresh_flagged(traffic, rungs, again, rng)
        flagged[lost] = walked(traffic, rungs, _tested_cuts(rungs, again), third, target=target, level=now)
        needed[lost] = np.where(again.labels > 0, again.labels, -1)
        followed[lost] = np.where(again.labels > 0, flagged[lost] > 0, -1)
    return Outcome(flagged, prospect.chance, first.rows.shape[1] + walk.labels, needed, followed)


def _draw_curves(traffic: Traffic, rungs: Ladder, samples: list[Labelled], rng: np.random.Generator) -> Floats:
    """The fitted curves' draws, from the scored labels of every sample."""
    features, verdict, weights = [], [], []
    for sample in samples:
        scores = traffic.scores[sample.rows]
        scored = ~np.isnan(scores) & (sample.weights > 0)
        filled = np.where(scored, scores, rungs.thresholds[-1])
        features.append(rungs.describe(filled))
        verdict.append(sample.verdicts.astype(np.float64))
        weights.append(local_weights(rungs.positions(filled), np.where(scored, sample.weights, 0.0)))
    return draw_rings(
        rungs,
        np.concatenate(features, axis=1),
        np.concatenate(verdict, axis=1),
        np.concatenate(weights, axis=1),
        draws=DRAWS,
        rng=rng,
    )


def fresh_flagged(traffic: Traffic, rungs: Ladder, walk: Walk, rng: np.random.Generator) -> Labelled:
    """Stage B: each replication's labels, uniformly from what its deepest cut flags of fresh traffic."""
    flagged = np.round(rungs.shares * len(traffic.scores)).astype(np.int64)[walk.deepest]
    if traffic.kind == "clusters":
        rows, used = _draw_from_windows(traffic, flagged, walk.labels, rng)
    else:
        used = np.arange(max(int(walk.labels.max(initial=0)), 1)) < walk.labels[:, None]
        frame = np.arange(len(traffic.scores)) if traffic.frame is None else traffic.frame
        rows = frame[np.floor(rng.random(used.shape) * np.searchsorted(frame, flagged)[:, None]).astype(np.int64)]
    first = None if traffic.groups is None else _find_first(traffic.groups[rows], used)
    return Labelled(rows, verdicts(traffic, rows, rng) & used, used.astype(np.float64), first)


def _find_first(groups: Ints, used: Bools) -> Bools:
    first = np.zeros(groups.shape, dtype=bool)
    for r, n in enumerate(used.sum(-1)):
        first[r, first_of_each(groups[r, :n].tolist(), int(n))] = True
    return first


def _draw_from_windows(traffic: Traffic, flagged: Ints, labels: Ints, rng: np.random.Generator) -> tuple[Ints, Bools]:
    """Fresh traffic in whole groups of answers that share sources."""
    assert traffic.groups is not None
    members = np.argsort(traffic.groups, kind="stable").reshape(-1, GROUP)
    rows = np.zeros((len(flagged), max(int(labels.max(initial=0)), 1)), dtype=np.int64)
    used = np.zeros(rows.shape, dtype=bool)
    for r in range(len(flagged)):
        window = members[rng.choice(len(members), traffic.fresh // GROUP, replace=False)].ravel()
        window = rng.permutation(window[window < flagged[r]])[: labels[r]]
        rows[r, : len(window)] = window
        used[r, : len(window)] = True
    return rows, used


def walked(
    traffic: Traffic, rungs: Ladder, tested: Bools, sample: Labelled, *, target: float, level: float, least: int = 0
) -> Ints:
    """How many traces the certified cut flags, 0 without one. `tested`: the cuts of each replication's walk, (R, cuts);
    those that flag fewer than `least` labels are passed over."""
    cuts = len(rungs.shares)
    flagged = np.round(rungs.shares * len(traffic.scores)).astype(np.int64)
    replications = len(sample.rows)
    # The strictest cut that flags each label; all looser ones flag it too.
    where = np.searchsorted(flagged, sample.rows, side="right") + cuts * np.arange(replications)[:, None]
    used = sample.weights > 0

    def count(labels: Bools) -> Ints:
        return np.cumsum(np.bincount(where[labels], minlength=cuts * replications).reshape(-1, cuts), axis=-1)

    m = count(used)
    p = binomial_p(count(used & sample.verdicts), m, target)
    if sample.first is not None:  # one label a source must pass, too
        p = np.maximum(p, binomial_p(count(sample.first & sample.verdicts), count(sample.first), target))
    last = walk_down(p, tested & (m >= least), level)
    return np.where(last >= 0, flagged[np.maximum(last, 0)], 0)


def _tested_cuts(rungs: Ladder, walk: Walk) -> Bools:
    """The cuts each plan tests; none where nothing can be labelled."""
    place = np.arange(len(rungs.shares))
    inside = (place >= walk.start[:, None]) & (place <= walk.deepest[:, None])
    return np.asarray(inside & (walk.labels > 0)[:, None])


def _take(sample: Labelled, rows: Ints) -> Labelled:
    first = None if sample.first is None else sample.first[rows]
    return Labelled(sample.rows[rows], sample.verdicts[rows], sample.weights[rows], first)
