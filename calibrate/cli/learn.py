"""`learn`: a head on the detectors' findings, fitted to the labels, beside the best single detector."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.evidence import labels_lines
from calibrate.errors import BadInput
from calibrate.report.sentences.tuning import learning as sentences
from calibrate.types import Interval
from calibrate.workflow.evidence import basis
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.tuning import learn as step


@dataclass(frozen=True, slots=True)
class LearnDocument:
    """A head and its figures out of fold. `auroc` and `best_auroc` are compared in `difference`; `gains`: its whole
    interval is above 0. `revision` is what scores of `learned` are kept under. `left_out` says why by detector;
    `left` labels are left to choose its threshold."""

    detectors: Sequence[str]
    revision: str
    n: int
    positives: int
    left: int
    groups: int
    coverage: float
    auroc: Interval
    best: str
    best_auroc: Interval
    difference: Interval
    gains: bool
    penalty: float
    left_out: Mapping[str, str]
    sentence: str
    notes: Sequence[str]
    saved: bool
    evidence: LabelsAtHand


def run(args: Namespace) -> Answer:
    store, at = open_store(args), now()
    if args.seed < 0:
        raise BadInput(f"--seed {args.seed} is below 0: give a whole number from 0 on")
    learning = step.learn(store, args.detectors, sample=args.sample, now=at, seed=args.seed)
    save = args.save and (learning.gains or bool(args.reason.strip()))
    at_hand = labels_at_hand(store, basis.resolve_sample(store, args.sample))
    sentence, notes = sentences.answer(learning), sentences.notes(learning)
    lines = [sentence, *labels_lines(at_hand), *notes, sentences.cost(learning)]
    if save:
        step.save(store, learning, reason=args.reason, by=user(), now=at)
        lines.append("saved; `detect learned --all` scores with it")
    elif args.save:
        lines.append("not saved: to save it all the same, say why with --reason TEXT")
    document = LearnDocument(
        detectors=[base.name for base in learning.head.bases],
        revision=learning.head.digest,
        n=learning.n,
        positives=learning.positives,
        left=learning.left,
        groups=learning.groups,
        coverage=learning.coverage,
        auroc=learning.auroc,
        best=learning.best,
        best_auroc=learning.best_auroc,
        difference=learning.difference,
        gains=learning.gains,
        penalty=learning.penalty,
        left_out={name: str(why) for name, why in learning.left_out.items()},
        sentence=sentence,
        notes=notes,
        saved=save,
        evidence=at_hand,
    )
    return Answer(document, "\n".join(lines), exit_code=2 if args.save and not save else 0)
