"""`seen`: the models in the traces, since when, how many, how often wrong."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.evidence import labels_lines
from calibrate.cli.output import table
from calibrate.report import numbers
from calibrate.report.sentences.labelling.labels import caution as caution_of
from calibrate.report.sentences.watching import models as sentences
from calibrate.report.tables.column import cells, right
from calibrate.report.tables.models import columns
from calibrate.sanitize import one_line
from calibrate.types import Interval
from calibrate.workflow.evidence import basis
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.upgrade import models_seen as step
from calibrate.workflow.upgrade.models_seen import Seen


@dataclass(frozen=True, slots=True)
class SeenDocument:
    """The values of an attribute, newest first. `traffic` counts each value's traces by the first day of a `per`."""

    by: str
    version: int | None
    sample: str | None
    values: Sequence[Seen]
    beyond: int
    per: str
    traffic: Mapping[str, Mapping[date, int]]
    step: Interval | None
    no_step: str | None
    caution: str | None
    evidence: LabelsAtHand


def run(args: Namespace) -> Answer:
    store = open_store(args)
    registry = step.registry(store, by=args.by, sample=args.sample)
    at_hand = labels_at_hand(store, basis.resolve_sample(store, args.sample))
    shown = columns(registry)
    lines = [*labels_lines(at_hand), table(cells(shown, registry.values), right=right(shown))]
    lines += [f"and {numbers.count(registry.beyond)} more with fewer traces"] if registry.beyond else []
    change, caution = registry.step, caution_of(registry.caution)
    if isinstance(change, step.Step):
        lines.append(one_line(sentences.step(change), 500))
    lines += [f"caution: {caution}"] if caution else []
    document = SeenDocument(
        by=registry.by,
        version=registry.version,
        sample=registry.sample,
        values=registry.values,
        beyond=registry.beyond,
        per=registry.per,
        traffic=registry.traffic,
        step=change.difference if isinstance(change, step.Step) else None,
        no_step=sentences.no_step(change) if isinstance(change, step.NoStep) else None,
        caution=caution,
        evidence=at_hand,
    )
    return Answer(document, "\n".join(lines))
