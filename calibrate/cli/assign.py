"""`assign`: who labels a sample, and what each of them holds."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.numbers import count
from calibrate.report.sentences.labelling import drawing
from calibrate.sanitize import one_line
from calibrate.types import Sample
from calibrate.workflow.detection.detect import no_sample
from calibrate.workflow.labelling import assignment
from calibrate.workflow.labelling.assignment import Hand
from db import Store


@dataclass(frozen=True, slots=True)
class AssignDocument:
    """How a sample is shared, who has what of it, and how many traces this call gave back."""

    sample: str
    mode: str
    overlap: float
    set_by: str | None
    labellers: Sequence[Hand]
    given_back: int


def run(args: Namespace) -> Answer:
    for option, action in (("mode", "set"), ("overlap", "set"), ("seed", "set"), ("labeller", "give-back")):
        if getattr(args, option) is not None and args.action != action:
            raise BadInput(f"--{option} is for `assign {action}`")
    for option, action in (("mode", "set"), ("labeller", "give-back")):
        if args.action == action and getattr(args, option) is None:
            raise BadInput(f"`assign {action}` needs --{option}; `assign --help` shows how")
    store = open_store(args)
    sample = _sample(store, args.sample)
    given_back = 0
    if args.action == "set":
        wanted = assignment.sharing_of(args.mode, args.overlap)
        assignment.assign(store, sample, wanted.mode, overlap=wanted.overlap, seed=args.seed, by=user(), now=now())
    elif args.action == "give-back":
        given_back = assignment.give_all_back(store, sample, args.labeller, now=now())
    shared, hands = assignment.assignment_of(store, sample), assignment.hands(store, sample, now=now())
    lines = [f"{one_line(sample.name, 80)}: {drawing.shared(shared.mode, shared.overlap)}"]
    if given_back:
        lines.append(f"{count(given_back, 'trace')} of {one_line(args.labeller, 80)} left to others")
    if hands:
        rows = [(one_line(hand.labeller, 40), count(hand.labelled), count(hand.held)) for hand in hands]
        lines.append(table([("labeller", "labelled", "holds now"), *rows], right=(1, 2)))
    document = AssignDocument(sample.name, shared.mode, shared.overlap, shared.set_by, hands, given_back)
    return Answer(document, "\n".join(lines))


def _sample(store: Store, name: str | None) -> Sample:
    if name is not None:
        sample = store.samples.get(name)
        if sample is None:
            raise no_sample(store, name)
        return sample
    newest = next(iter(store.samples.list()), None)
    if newest is None:
        raise BadInput("no sample is drawn yet, so there is nothing to share: `sample` draws one")
    return newest
