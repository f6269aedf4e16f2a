"""`segments`: a threshold for each segment of the traffic, beside one for all."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.evidence import labels_lines, load_labelled
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.names import title_of
from calibrate.report.numbers import limit
from calibrate.report.sentences.tuning import figures
from calibrate.report.sentences.tuning import segments as sentences
from calibrate.report.sentences.tuning.certification import certified_segments
from calibrate.report.tables import column
from calibrate.report.tables.segments import COLUMNS
from calibrate.stats.choosing.policy import parse
from calibrate.stats.segments.choosing import POLICIES
from calibrate.stats.segments.rivals import Gain
from calibrate.types import Interval
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.releasing import known_bad
from calibrate.workflow.tuning import segments as step
from calibrate.workflow.tuning.segments import SegmentRow, SegmentVerdict


@dataclass(frozen=True, slots=True)
class SegmentsDocument:
    """Thresholds per segment beside one for all, whether they are offered, and whether they were saved.

    `precision`, `recall` and `flag_rate` are of all traffic by the segments' thresholds, out of fold.
    """

    detector: str
    by: str
    policy: str
    params: Mapping[str, object]
    verdict: SegmentVerdict
    sentence: str
    threshold: float
    gain: Gain | None
    precision: Interval | None
    recall: Interval | None
    flag_rate: Interval | None
    segments: Sequence[SegmentRow]
    outside: int
    saved: bool
    evidence: LabelsAtHand


def run(args: Namespace) -> Answer:
    store = open_store(args)
    data = load_labelled(store, args)
    policy = parse(args.policy, POLICIES)
    if data.sweep.missing:
        raise BadInput(f"{data.config.name}: {figures.missing(data.sweep, waiting=data.waiting)}")
    segmented = step.segment_labels(store, data, policy, by=args.by)
    save = args.save and segmented.offered
    if save:
        state = known_bad.state_of_segments(store, data, segmented)
        step.save(store, data, segmented, state=state, reason=args.reason, by=user(), now=now())
    at_hand, point, own = labels_at_hand(store, data.sample), segmented.point, segmented.own_point
    lines = [
        f"{title_of(data.config.name)}: one threshold for all {limit(point.threshold, point.flag_when)} ({policy})",
        table(column.cells(COLUMNS, segmented.rows), right=column.right(COLUMNS)),
        f"{sentences.verdict(segmented)}.",
        *(
            f"{line}."
            for line in (sentences.fallback(segmented), segmented.own_point and sentences.OUT_OF_FOLD)
            if line
        ),
        *labels_lines(at_hand),
    ]
    saved = store.points.latest().get(data.config.name)
    if saved is not None and saved.config_id == data.config.id:
        lines += [f"saved: {line}." for line in certified_segments(saved.data.segments, point.flag_when)]
    if save:
        lines.append("saved; `release` takes it into the next version")
    elif args.save:
        lines.append(f"not saved: `{_choose_command(args)}` saves one threshold for all")
    document = SegmentsDocument(
        detector=data.config.name,
        by=segmented.by,
        policy=str(policy),
        params=data.config.params,
        verdict=segmented.verdict,
        sentence=sentences.verdict(segmented),
        threshold=point.threshold,
        gain=segmented.gain,
        precision=own.precision if own else None,
        recall=own.recall if own else None,
        flag_rate=own.flag_rate if own else None,
        segments=segmented.rows,
        outside=segmented.outside,
        saved=save,
        evidence=at_hand,
    )
    return Answer(document, "\n".join(lines), exit_code=1 if args.save and not save else 0)


def _choose_command(args: Namespace) -> str:
    """The command that saves one threshold, chosen on the same labels by the same policy."""
    options = [f"--sample {shlex.quote(name)}" for name in args.sample or ()]
    options += [f"--param {shlex.quote(param)}" for param in args.param]
    return " ".join(["choose", shlex.quote(args.detector), "--policy", shlex.quote(args.policy), *options, "--save"])
