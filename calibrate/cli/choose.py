"""`choose`: the operating point that a policy chooses."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.evidence import describe_params, labels_lines, load_labelled
from calibrate.errors import BadInput
from calibrate.report.names import title_of
from calibrate.report.sentences.labelling import kinds
from calibrate.report.sentences.labelling.labels import caution as caution_of
from calibrate.report.sentences.labelling.labels import settled_point
from calibrate.report.sentences.releasing import recalibration
from calibrate.report.sentences.tuning import certification, figures
from calibrate.report.sentences.tuning import point_state as states
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.stats.labels.by_kind import KindRecall
from calibrate.stats.labels.undecided import Settled
from calibrate.types import Counted, Guarantee, Interval, OperatingPoint, PointState
from calibrate.workflow.certification import attempts, certify
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import evidence, loading, traffic
from calibrate.workflow.evidence.kinds import figures_by_kind
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.evidence.undecided import settled_at
from calibrate.workflow.labelling.guides import known_kinds
from calibrate.workflow.releasing import choosing
from calibrate.workflow.releasing.history import live_release
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.tuning.better_steps import BetterStep, find_better_steps
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
    flag_rate_from: str
    counted: Counted | None
    n: int
    positives: int
    coverage: float
    params: Mapping[str, object]
    saved: bool
    state: str
    state_sentence: str

    @classmethod
    def of(cls, point: OperatingPoint, state: PointState, **more: Any) -> Self:
        return cls(
            state=state.verdict,
            state_sentence=states.sentence(state, unmet=figures.why(point)),
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
            flag_rate_from=point.flag_rate_from,
            counted=point.counted,
            n=point.n,
            positives=point.positives,
            coverage=point.coverage,
            **more,
        )


@dataclass(frozen=True)
class ChosenDocument(PointDocument):
    elbow: Mapping[str, object] | None
    scope: Mapping[str, object] | None
    notes: Sequence[str]
    caution: str | None
    better: Sequence[str]
    evidence: LabelsAtHand
    settled: Settled | None
    by_kind: Sequence[KindRecall]


def run(args: Namespace) -> Answer:
    _check_looks(args)
    store = open_store(args)
    data = load_labelled(store, args)
    if args.strength == "certified":
        return _certified(store, data, args)
    policy = parse(args.policy)
    if data.sweep.missing and policy.kind != "manual":
        raise BadInput(f"{data.config.name}: {figures.missing(data.sweep, waiting=data.waiting, fitted=data.fitted)}")
    choice = choosing.choose(
        store,
        data,
        policy,
        strength=args.strength,
        looks=args.looks or 1,
        moved_from=args.moved_from,
        reason=args.reason,
        save=args.save,
        by=user(),
        now=now(),
    )
    point, state, save = choice.point, choice.state, choice.saved
    per_day = traffic.traffic_per_day(store, data.sample)
    caution = caution_of(data.caution)
    flags = None if per_day is None else (point.flag_rate.value or 0) * per_day
    lines = [_headline(data, point)]
    lines += [figures.sentence(point, flags, state_apart=point.feasible)]
    elbow = operating_points.bootstrap_elbow(data) if policy.kind == "elbow" else None
    scope = operating_points.bounded_scope(store, data, point, looks=args.looks or 1)
    notes = [*(figures.elbow(elbow) if elbow else []), *figures.scope(scope)]
    if args.strength == "bounded" and operating_points.octave_would_help(data, point):
        notes.append(figures.OCTAVE)
    lines += notes
    at_hand, settled = labels_at_hand(store, data.sample), settled_at(data, point.threshold)
    lines += [*labels_lines(at_hand), *filter(None, [settled_point(settled)])]
    lines += figures.cautions(point, not_run=data.not_run)
    lines += [caution] if caution else []
    lines += [f"{figures.fitted_labels(data.fitted)}."] if data.fitted else []
    of_kinds = figures_by_kind(store, data, point.threshold)
    kind_names = {kind.key: kind.name for kind in known_kinds(store)}
    lines += filter(None, [kinds.sentence(title_of(data.config.name), of_kinds, kind_names)])
    better = _better_steps(store, data, policy, point, state, args.sample) if state.known_bad else ()
    if point.feasible:
        lines += [f"{states.in_short(state)}"]
    lines += [_better_line(step, point) for step in better]
    live = live_release(store)
    entry = live.detectors.get(data.config.name) if live else None
    if entry is not None and entry.segments is not None:
        again = recalibration.choose_segments(data.config.name, entry.segments)
        lines.append(f"{recalibration.dropped(entry.segments)}; {again} chooses them again")
    if save:
        lines.append("saved; `release` takes it into the next version")
    elif args.save and choice.unheld and not state.known_bad:
        lines.append(
            "not saved: nothing says what it must reach, as no threshold with a target was saved or released before: "
            'name one (--moved-from "precision>=0.7"), or say why with --reason TEXT'
        )
    elif args.save and point.feasible:
        lines.append("not saved: to save it all the same, say why with --reason TEXT")
    elif args.save:
        by_hand = f'--policy manual:{point.threshold:.6g} --moved-from "{policy}" --reason TEXT --save'
        lines.append(f"not saved: to take it all the same, {by_hand}")
    document = ChosenDocument.of(
        point,
        state,
        better=[states.better(step) for step in better],
        params=data.config.params,
        saved=save,
        elbow={**asdict(elbow), "doubts": elbow.doubts, "knee": None} if elbow else None,
        scope=_scope_document(scope),
        notes=notes,
        caution=caution,
        evidence=at_hand,
        settled=settled,
        by_kind=of_kinds.kinds,
    )
    return Answer(document, "\n".join(lines), exit_code=2 if args.save and not save else 0)


def _check_looks(args: Namespace) -> None:
    """Raise BadInput for a number of looks that cannot be, or that nothing is shared among."""
    if args.looks is not None and args.looks < 1:
        raise BadInput(f"--looks {args.looks} is no number of detectors and looks: give 1 or more")
    if args.looks is not None and args.strength != "bounded":
        raise BadInput(f"--looks {args.looks} shares the error of a bound: add --strength bounded, or leave it out")


def _scope_document(scope: operating_points.BoundedScope | None) -> Mapping[str, object] | None:
    if scope is None:
        return None
    window = scope.window and {**asdict(scope.window), "share": scope.window.share, "differs": scope.window.differs}
    return {**asdict(scope), "window": window}


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
    point, state = certify.point_of(store, at.attempt), certify.state_of(store, at.attempt)
    lines = [_headline(data, point), figures.sentence(point)]
    save = args.save and (not state.known_bad or bool(args.reason.strip()))
    if state.known_bad:
        lines.append(states.in_short(state))
    if save:
        certify.save(store, at.attempt, reason=args.reason, by=user(), now=now())
        lines.append("saved; `release` takes it into the next version")
    elif args.save:
        lines.append("not saved: to save it all the same, say why with --reason TEXT")
    document = PointDocument.of(point, state, params=data.config.params, saved=save)
    return Answer(document, "\n".join(lines), exit_code=2 if args.save and not save else 0)


def _better_steps(
    store: Store, data: evidence.Evidence, policy: Policy, point: OperatingPoint, state: PointState, sample: Any
) -> tuple[BetterStep, ...]:
    """What to do instead, the best step first."""
    others = (
        loading.load_evidence(store, name, sample=sample, config=configs[-1])
        for name, configs in configurations.configs_by_detector(store).items()
        if name != data.config.name
    )
    return find_better_steps(data, policy, point, state, others)


def _better_line(step: BetterStep, point: OperatingPoint) -> str:
    command = states.command(step, point.detector, point.policy)
    return f"instead: {states.better(step)}" + (f" `{command}`" if command else "")


def _headline(data: evidence.Evidence, point: OperatingPoint) -> str:
    # The threshold in so many digits that it can be typed in again.
    threshold = f"threshold {point.threshold:.6g}, flag {point.flag_when} ({point.policy})"
    return f"{point.detector}{describe_params(data)}: {threshold}"
