"""The part of docs/reference/results.md about thresholds: chosen on one half of the labels, judged on the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrate import registry
from calibrate.orientation import SIGNS
from calibrate.stats.choosing.choose import choose
from calibrate.stats.choosing.policy import parse
from calibrate.stats.fitting.folds import deal_folds
from calibrate.stats.intervals.bootstrap import Units
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.sweep import Sweep, sweep
from calibrate.types import Interval
from calibrate.workflow.evidence import loading
from calibrate.workflow.tuning.scoreboard import Scoreboard
from db import Store

TARGETS = (0.7, 0.9)  # precision; the second where the first is hardly more than the prevalence
ABOVE = 0.1  # what a target must exceed the prevalence by: flagging everything reaches less
ENOUGH = 20  # scored labels of either verdict, to be halved
CHANCE = 0.5  # the AUROC that a detector must be shown to exceed
HEAD = "**Thresholds**, chosen on one half of the labels and judged on the other."


@dataclass(frozen=True)
class Halved:
    """A threshold chosen on one half: the precision it has there, and what the other half says of it."""

    detector: str
    policy: str
    threshold: str
    chosen_with: str
    precision: Interval
    recall: Interval
    flagged: str


def part(store: Store, board: Scoreboard, seed: int) -> str:
    """A table of thresholds, the best detector's first; empty where labels are too few. The store holds labels and
    scores."""
    able = [line.name for line in board.lines if line.name in registry.names() and (line.auroc.low or 0) > CHANCE]
    lines = [line for name in able for line in halved(store, name, seed)]
    if not lines:
        return ""
    rows = ["| detector | policy | threshold | precision where chosen | precision | recall | flagged |"]
    rows.append("|---|---|--:|---|---|---|--:|")
    rows += [
        f"| {line.detector} | {line.policy} | {line.threshold} | {line.chosen_with} | {figure(line.precision)} "
        f"| {figure(line.recall)} | {line.flagged} |"
        for line in lines
    ]
    return "\n\n".join([HEAD, "\n".join(rows)])


def halved(store: Store, name: str, seed: int) -> Iterator[Halved]:
    """Each policy on a detector; nothing of one that scored too few labels to be halved, or too few groups."""
    data = loading.load_evidence(store, name)
    has_score = np.isfinite(data.scores)
    units = Units.among(data.groups).of
    for kind in (True, False):
        members = units[has_score & (data.labels == kind)]
        if len(members) < ENOUGH or len(np.unique(members)) < ENOUGH // 2:
            return
    half = deal_folds(data.labels, units, folds=2, rng=np.random.default_rng(seed))
    first, second = half == 0, half == 1
    fitted = sweep(data.labels[first], data.scores[first], flag_when=data.flag_when)
    groups = [group for group, judged in zip(data.groups, second, strict=True) if judged]
    judge = sweep(data.labels[second], data.scores[second], groups=groups, flag_when=data.flag_when)
    if fitted.missing or judge.missing:
        return
    target = next((target for target in TARGETS if target >= data.labels.mean() + ABOVE), TARGETS[-1])
    for policy in (f"precision>={target}", "elbow"):
        point = choose(fitted, parse(policy))
        where = f"{decimals(point.precision.value or 0.0)} of {point.true_positives + point.false_positives:,}"
        if point.feasible:
            yield _judged(name, policy, point.threshold, where, judge)
        else:
            yield Halved(name, policy, "none reaches it", f"at most {where}", Interval(None), Interval(None), "–")


def _judged(name: str, policy: str, threshold: float, chosen_with: str, judge: Sweep) -> Halved:
    point = figures(judge, threshold)
    flagged = point.true_positives + point.false_positives
    return Halved(
        name,
        policy,
        f"{SIGNS[judge.flag_when]} {threshold:.3g}".replace("-", "−"),
        chosen_with,
        point.precision,
        point.recall,
        f"{_count(flagged, judge.n)} {judge.n:,}",
    )


def _count(flagged: int, labels: int) -> str:
    return "all" if flagged == labels else f"{flagged or 'none'} of"


def figure(interval: Interval, unknown: str = "–") -> str:
    if interval.value is None or interval.low is None or interval.high is None:
        return unknown
    return f"{decimals(interval.value)} ({decimals(interval.low)}–{decimals(interval.high)})"


def decimals(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if value < 0.995 else f"{value:.2f}"
