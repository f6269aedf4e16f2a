"""`recheck`."""

from __future__ import annotations

from argparse import Namespace

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.errors import BadInput
from calibrate.report.sentences import recheck as recheck_sentences
from calibrate.workflow.watching import recheck as rechecking
from db.attempts import Recheck


def run(args: Namespace) -> Answer:
    registry.get(args.detector)
    found, at = open_store(args), now()
    one = rechecking.newest(found, args.detector, version=args.release, model=args.model)
    did = None
    if one is None or rechecking.state(found, one, now=at).exhausted or (one.outcome and args.again):
        before = one
        one = rechecking.begin(
            found,
            args.detector,
            version=args.release,
            target=args.target,
            labels=rechecking.LABELS if args.labels is None else args.labels,
            model=args.model,
            seed=args.seed,
            by=user(),
            now=at,
        )
        did = "drawn" if before is None or before.id != one.id else None
    else:
        _as_it_was_begun(args, one)
        state = rechecking.state(found, one, now=at)
        if not state.done and not state.left:
            one, did = rechecking.more(found, one, labels=args.labels, now=at), "drawn more"
    state = rechecking.state(found, one, now=at)
    text = f"{recheck_sentences.verdict(state)}\nnext: {recheck_sentences.next_step(state)}"
    return Answer({**recheck_sentences.document(state), "did": did}, text)


def _as_it_was_begun(args: Namespace, one: Recheck) -> None:
    """Raises BadInput where other terms are asked for than those fixed before the first label."""
    held = rechecking.plan_of(one).target
    if args.target not in (None, held):
        stands = "is under way" if one.outcome is None else "has decided (--again begins a new one)"
        raise BadInput(
            f"a recheck of {one.detector} against {100 * held:.10g}% {stands}: leave out --target {args.target:g}"
        )
    if args.labels is not None and args.labels < 1:
        raise BadInput(f"--labels {args.labels} draws nothing: ask for at least 1")
