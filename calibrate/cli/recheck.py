"""`recheck`: label flagged traces until it is clear whether a threshold holds."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences import recheck as sentences
from calibrate.types import Interval
from calibrate.workflow.watching import recheck as rechecking
from db.attempts import Recheck


@dataclass(frozen=True, slots=True)
class RecheckDocument:
    """Where a recheck stands, and what this call did."""

    recheck: int
    detector: str
    version: int
    model: str | None
    sample: str
    drawn: int
    pool: int
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
    log_e_holds: float
    log_e_fell: float
    log_e_needed: float
    more: int | None
    verdict: str
    next: str
    did: str | None


def run(args: Namespace) -> Answer:
    registry.get(args.detector)
    store, at = open_store(args), now()
    latest = rechecking.newest(store, args.detector, version=args.release, model=args.model)
    did = None
    if latest is None or rechecking.state(store, latest, now=at).exhausted or (latest.outcome and args.again):
        previous = latest
        latest = rechecking.begin(
            store,
            args.detector,
            version=args.release,
            target=args.target,
            labels=rechecking.LABELS if args.labels is None else args.labels,
            model=args.model,
            seed=args.seed,
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
    document = _document(state, did)
    return Answer(document, f"{document.verdict}\nnext: {document.next}")


def _document(state: rechecking.State, did: str | None) -> RecheckDocument:
    recheck, plan, standing = state.recheck, state.plan, state.standing
    return RecheckDocument(
        recheck=recheck.id, detector=recheck.detector, version=recheck.version, model=plan.model,
        sample=state.sample.name, drawn=state.sample.size, pool=state.pool, target=plan.target, alpha=plan.alpha,
        decision=state.decision, labels=state.counted, hallucinated=state.hallucinated, clean=state.clean,
        unsure=state.unsure, repeats=state.repeats, waiting=state.waiting, left=state.left,
        precision=standing.estimate, log_e_holds=standing.log_holds, log_e_fell=standing.log_fell,
        log_e_needed=standing.log_needed, more=standing.more, verdict=sentences.verdict(state),
        next=sentences.next_step(state), did=did,
    )  # fmt: skip


def _check_terms(args: Namespace, latest: Recheck) -> None:
    """Raise BadInput where other terms are asked for than those that were fixed before the first label."""
    target = rechecking.plan_of(latest).target
    if args.target not in (None, target):
        state = "is under way" if latest.outcome is None else "has decided (--again begins a new one)"
        raise BadInput(
            f"a recheck of {latest.detector} against {numbers.exact_share(target)} {state}: "
            f"leave out --target {args.target:g}"
        )
    if args.labels is not None and args.labels < 1:
        raise BadInput(f"--labels {args.labels} draws nothing: ask for at least 1")
