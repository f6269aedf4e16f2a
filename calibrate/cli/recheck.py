"""`recheck`: label flagged traces until it is clear whether a threshold holds."""

from __future__ import annotations

from argparse import Namespace

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences import recheck as sentences
from calibrate.workflow.watching import recheck as rechecking
from db.attempts import Recheck


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
    text = f"{sentences.verdict(state)}\nnext: {sentences.next_step(state)}"
    return Answer({**sentences.document(state), "did": did}, text)


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
