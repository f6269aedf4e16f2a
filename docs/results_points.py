"""The part of docs/results.md about thresholds: chosen on one half of the labels, judged on the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrate import registry
from calibrate.flagging import SIGNS
from calibrate.stats.bootstrap import Units
from calibrate.stats.intervals import figures, wilson
from calibrate.stats.policies import choose, parse
from calibrate.stats.reliability import folds
from calibrate.stats.replicates import bootstrap
from calibrate.stats.sweep import sweep
from calibrate.steps import tune
from calibrate.steps.scoreboard import scoreboard
from calibrate.steps.scoreboard_text import sentences
from calibrate.types import Interval
from db import Store

POLICIES = ("precision>=0.7", "elbow")
ENOUGH = 20  # scored labels of either verdict, to be halved
HEAD = """\
**Thresholds**, chosen on one half of the labels and judged on the other, which had no say in it; traces that share
their sources are in one half. Intervals are 95%, from resampled groups of such traces; recall is end to end: a trace
without a score is missed."""


@dataclass(frozen=True)
class Halved:
    """A threshold chosen on one half: the precision measured there, and what the other half says of it."""

    detector: str
    policy: str
    threshold: str
    chosen_with: float | None
    precision: Interval
    recall: Interval
    flagged: int
    labels: int


def part(store: Store, seed: int) -> str:
    """Who leads and by how much, then the thresholds; the data set's store holds labels and scores."""
    board = scoreboard(store, seed=seed)
    said = " ".join(sentences(board))
    found = [one for line in board.lines if line.name in registry.names() for one in halved(store, line.name, seed)]
    if not found:
        return said
    rows = ["| detector | policy | threshold | precision where chosen | precision | recall | flagged |"]
    rows.append("|---|---|--:|--:|---|---|--:|")
    for one in found:
        where = "none flagged" if one.chosen_with is None else f"{one.chosen_with:.2f}"
        rows.append(
            f"| {one.detector} | {one.policy} | {one.threshold} | {where} | {_figure(one.precision)} "
            f"| {_figure(one.recall)} | {one.flagged:,} of {one.labels:,} |"
        )
    return "\n\n".join([said, HEAD, "\n".join(rows)])


def halved(store: Store, name: str, seed: int) -> Iterator[Halved]:
    """Each policy on a detector; nothing of one that scored too few labels to be halved, or too few groups."""
    data = tune.labelled(store, name)
    there = np.isfinite(data.scores)
    units = Units.among(data.groups).of
    for kind in (True, False):
        here = units[there & (data.labels == kind)]
        if len(here) < ENOUGH or len(np.unique(here)) < ENOUGH // 2:
            return
    half = folds(data.labels, units, 2, np.random.default_rng(seed))
    first, second = half == 0, half == 1
    fitted = sweep(data.labels[first], data.scores[first], flag_when=data.flag_when)
    judge = sweep(data.labels[second], data.scores[second], flag_when=data.flag_when)
    if fitted.missing or judge.missing:
        return
    groups = [group for group, here in zip(data.groups, second, strict=True) if here]
    for policy in POLICIES:
        point = choose(fitted, parse(policy))
        if not point.feasible:
            sign = "none reaches it"
            yield Halved(name, policy, sign, point.precision.value, Interval(None), Interval(None), 0, judge.n)
            continue
        yield _judged(name, policy, point.threshold, point.precision.value, data, second, groups, seed)


def _judged(
    name: str,
    policy: str,
    threshold: float,
    chosen_with: float | None,
    data: tune.Labelled,
    here: np.ndarray,
    groups: list[str | None],
    seed: int,
) -> Halved:
    labels, scores = data.labels[here], data.scores[here]
    found = figures(sweep(labels, scores, flag_when=data.flag_when), threshold)
    draws = bootstrap(
        labels,
        scores,
        rng=np.random.default_rng(seed),
        groups=groups,
        flag_when=data.flag_when,
        thresholds=[threshold],
        count=1000,
    )
    units = Units.among(groups).of
    flagged = scores >= threshold if data.flag_when == "above" else scores <= threshold
    return Halved(
        name,
        policy,
        f"{SIGNS[data.flag_when]} {threshold:.3g}",
        chosen_with,
        widened(found.precision, draws.precision[:, 0], flagged, units),
        widened(found.recall, draws.recall[:, 0], labels, units),
        int(flagged.sum()),
        len(labels),
    )


def widened(
    figure: Interval, draws: NDArray[np.float64], rows: NDArray[np.bool_], units: NDArray[np.int64]
) -> Interval:
    """A share of some `rows` with Wilson's interval at the size that its resampled values, shape (draws,), are worth.

    Where no resample differs, each group of rows counts as one label; `units` numbers every row's group.
    """
    if figure.value is None or not rows.any():
        return figure
    spread = float(np.nanvar(draws))
    most = float(np.count_nonzero(rows) if spread > 0 else len(np.unique(units[rows])))
    inner = figure.value * (1 - figure.value)
    worth = min(inner / spread, most) if spread > 0 and inner > 0 else most
    reach = wilson(np.array([figure.value]), np.array([worth]))
    return Interval(figure.value, float(reach.low[0]), float(reach.high[0]))


def _figure(found: Interval) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "–"
    return f"{found.value:.2f} ({found.low:.2f}–{found.high:.2f})"
