"""`choose`: the operating point that a policy chooses."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.evidence import describe_params, load_labelled
from calibrate.errors import BadInput
from calibrate.report.sentences import certification, figures
from calibrate.report.sentences.labels import uneven
from calibrate.stats.choosing.chance_below_target import chance_below
from calibrate.stats.choosing.policy import parse
from calibrate.types import Guarantee, Interval, OperatingPoint
from calibrate.workflow.certification import attempts, certify
from calibrate.workflow.evidence import evidence, loading, traffic
from calibrate.workflow.tuning import operating_points
from db import Store


@dataclass(frozen=True)
class PointDocument:
    """An operating point, the parameters of its detector, and whether it was saved."""

    detector: str
    flag_when: str
    threshold: float
    policy: str
    feasible: bool
    why: str | None
    strength: str
    guarantee: Guarantee | None
    precision: Interval
    recall: Interval
    fpr: Interval
    flag_rate: Interval
    n: int
    positives: int
    coverage: float
    params: Mapping[str, object]
    saved: bool

    @classmethod
    def of(cls, point: OperatingPoint, **more: Any) -> Self:
        return cls(
            detector=point.detector,
            flag_when=point.flag_when,
            threshold=point.threshold,
            policy=point.policy,
            feasible=point.feasible,
            why=figures.why(point),
            strength=point.strength,
            guarantee=point.guarantee,
            precision=point.precision,
            recall=point.recall,
            fpr=point.fpr,
            flag_rate=point.flag_rate,
            n=point.n,
            positives=point.positives,
            coverage=point.coverage,
            **more,
        )


@dataclass(frozen=True)
class ChosenDocument(PointDocument):
    elbow: Mapping[str, object] | None
    caution: str | None


def run(args: Namespace) -> Answer:
    store = open_store(args)
    data = load_labelled(store, args)
    if args.strength == "certified":
        return _certified(store, data, args)
    policy = parse(args.policy)
    if data.sweep.missing and policy.kind != "manual":
        raise BadInput(f"{data.config.name}: {figures.missing(data.sweep)}")
    pool = traffic.scored_traffic(store, data) if policy.kind == "alerts" else None
    point = operating_points.choose_point(data, policy, strength=args.strength, pool=pool)
    save = args.save and point.feasible
    if save:
        operating_points.save_point(store, data, point, by=user(), now=now())
    per_day = traffic.traffic_per_day(store, data.sample)
    caution = uneven(loading.uneven_labels(store, data.sample))
    flags = None if per_day is None else (point.flag_rate.value or 0) * per_day
    if pool is not None:
        flags = pool.flags_a_day(point.threshold, point.flag_when)
    lines = [_headline(data, point)]
    measured = point.feasible and args.strength == "measured"
    chance = chance_below(data.sweep, policy, rng=np.random.default_rng(0)) if measured else None
    lines += [figures.sentence(point, flags, chance=chance)]
    elbow = operating_points.bootstrap_elbow(data) if policy.kind == "elbow" else None
    lines += [figures.elbow(elbow)] if elbow else []
    lines += figures.cautions(point)
    lines += [caution] if caution else []
    if save:
        lines.append("saved; `release` takes it into the next version")
    elif args.save:
        lines.append(f"not saved: to take it all the same, --policy manual:{point.threshold:.6g} --save")
    document = ChosenDocument.of(
        point,
        params=data.config.params,
        saved=save,
        elbow={**asdict(elbow), "knee": None} if elbow else None,
        caution=caution,
    )
    return Answer(document, "\n".join(lines), exit_code=2 if args.save and not save else 0)


def _certified(store: Store, data: evidence.Evidence, args: Namespace) -> Answer:
    """Report the point that is certified already; certifying takes labels, so `choose` alone cannot."""
    policy = parse(args.policy)
    newest = attempts.latest_status(store, data.config.name, config_id=data.config.id)
    if policy.kind != "precision":
        raise BadInput(f"the policy {policy} cannot be certified, only a precision can: write precision>=0.7")
    at = attempts.certified(store, data.config.name, data.config.id, policy.number)
    if at is None:
        stands = f" The newest attempt: {certification.status(newest)}" if newest else ""
        raise BadInput(
            f"no threshold of {data.config.name} is certified for {policy}: `certify {data.config.name} --target "
            f"{policy.number:g}` goes through its stages.{stands}"
        )
    point = certify.point_of(store, at.attempt)
    if args.save:
        certify.save(store, at.attempt, by=user(), now=now())
    lines = [_headline(data, point)]
    lines += [figures.sentence(point), *(["saved; `release` takes it into the next version"] if args.save else [])]
    return Answer(PointDocument.of(point, params=data.config.params, saved=args.save), "\n".join(lines))


def _headline(data: evidence.Evidence, point: OperatingPoint) -> str:
    # The threshold in so many digits that it can be typed in again.
    threshold = f"threshold {point.threshold:.6g}, flag {point.flag_when} ({point.policy})"
    return f"{point.detector}{describe_params(data)}: {threshold}"
