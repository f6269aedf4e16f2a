"""`recheck`: label flagged traces until it is clear whether a threshold holds."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.evidence import labels_lines
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences.watching import recheck as sentences
from calibrate.stats.sampling.designs import parse_since
from calibrate.types import Interval
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.watching import recheck as rechecking
from calibrate.workflow.watching.recheck_plan import RECENT, plan_of
from db.attempts import Recheck


@dataclass(frozen=True, slots=True)
class RecheckDocument:
    """Where a recheck stands, and what this call did."""

    recheck: int
    detector: str
    version: int
    model: str | None
    by: str | None
    segment: str | None
    sample: str
    since: datetime | None
    until: datetime | None
    drawn: int
    pool: int
    flagged_since_release: int | None
    target: float
    alpha: float
    decision: rechecking.Decision
    labels: int
    hallucinated: int
    clean: int
    unsure: int
    repeats: int
    waiting: int
    left: int
    precision: Interval
    sources: int
    hallucinated_sources: int
    log_e_holds: float
    log_e_rows: float
    log_e_sources: float
    log_e_fell: float
    log_e_needed: float
    more: int | None
    verdict: str
    few: str | None
    next: str
    did: str | None
    evidence: LabelsAtHand


def run(args: Namespace) -> Answer:
    registry.get(args.detector)
    store, at = open_store(args), now()
    latest = rechecking.newest(store, args.detector, version=args.release, model=args.model, segment=args.segment)
    did = None
    since = RECENT if args.since is None else parse_since(args.since)
    if latest is None or args.again or rechecking.state(store, latest, now=at).exhausted:
        previous = latest
        latest = rechecking.begin(
            store,
            args.detector,
            version=args.release,
            target=args.target,
            labels=rechecking.LABELS if args.labels is None else args.labels,
            since=since,
            model=args.model,
            segment=args.segment,
            seed=args.seed,
            again=args.again,
            by=user(),
            now=at,
        )
        did = "drawn" if previous is None or previous.id != latest.id else None
    else:
        _check_terms(args, latest)
        state = rechecking.state(store, latest, now=at)
        if not state.done and not state.left:
            latest, did = rechecking.more(store, latest, labels=args.labels, now=at), "drawn more"
    state = rechecking.state(store, latest, now=at)
    at_hand = labels_at_hand(store, state.sample)
    document = _document(state, did, at_hand)
    few = f"({document.few})" if document.few else None
    lines = [document.verdict, few, *labels_lines(at_hand), f"next: {document.next}"]
    return Answer(document, "\n".join(line for line in lines if line))


def _document(state: rechecking.State, did: str | None, at_hand: LabelsAtHand) -> RecheckDocument:
    recheck, plan, standing = state.recheck, state.plan, state.standing
    return RecheckDocument(
        recheck=recheck.id, detector=recheck.detector, version=recheck.version, model=plan.model,
        by=plan.by, segment=plan.segment, sample=state.sample.name,
        since=plan.where.since, until=plan.where.until, drawn=state.sample.size,
        pool=state.pool, flagged_since_release=plan.since_release, target=plan.target, alpha=plan.alpha,
        decision=state.decision, labels=state.counted, hallucinated=state.hallucinated, clean=state.clean,
        unsure=state.unsure, repeats=state.repeats, waiting=state.waiting, left=state.left,
        precision=standing.estimate, sources=standing.sources, hallucinated_sources=standing.hallucinated_sources,
        log_e_holds=standing.log_holds, log_e_rows=standing.log_rows, log_e_sources=standing.log_sources,
        log_e_fell=standing.log_fell, log_e_needed=standing.log_needed, more=standing.more,
        verdict=sentences.verdict(state), few=sentences.few(state), next=sentences.next_step(state), did=did,
        evidence=at_hand,
    )  # fmt: skip


def _check_terms(args: Namespace, latest: Recheck) -> None:
    """Raise BadInput where other terms are asked for than those that were fixed before the first label."""
    plan = plan_of(latest)
    target = plan.target
    if args.since is not None:
        state = "is under way" if latest.outcome is None else "has decided"
        raise BadInput(
            f"a recheck of {latest.detector} in the traffic of {sentences.period(plan)} {state}: leave out --since "
            f"{args.since}, or begin another with --again"
        )
    if args.target not in (None, target):
        state = "is under way" if latest.outcome is None else "has decided (--again begins a new one)"
        raise BadInput(
            f"a recheck of {latest.detector} against {numbers.exact_share(target)} {state}: "
            f"leave out --target {args.target:g}"
        )
    if args.labels is not None and args.labels < 1:
        raise BadInput(f"--labels {args.labels} draws nothing: ask for at least 1")
