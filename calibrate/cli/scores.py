"""`scores`: export every score to a file."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import open_store, parse_pairs, unwritten
from calibrate.cli.progress import progress
from calibrate.cli.signals import when_stopped
from calibrate.ingest.scores import SCORES, ScoreRecord, write_scores, writer_for
from calibrate.report.numbers import count
from calibrate.targets import check_target
from calibrate.workflow.evidence import score_export

SHOW_EVERY = 1000  # rows


@dataclass(frozen=True, slots=True)
class ExportedConfiguration:
    """What was written of one configuration: how many rows of each status."""

    detector: str
    version: str
    params: Mapping[str, Any]
    rows: int
    statuses: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ExportedScores:
    path: str
    rows: int
    configurations: Sequence[ExportedConfiguration]


def run(args: Namespace) -> Answer:
    writer_for(args.file)
    store = open_store(args)
    check_target(args.file, SCORES, store=store.file, replace=args.force)
    configs = score_export.chosen_configs(store, args.detector or (), parse_pairs(args.param, "--param"))
    written: Counter[tuple[str, str]] = Counter()
    records = score_export.records(store, configs, sample=args.sample)
    with when_stopped(unwritten(args.file)), progress(args, "exporting", "row") as advance:
        total = score_export.count(store, configs, sample=args.sample)
        write_scores(_counted(records, written, lambda done: advance(done, total)), args.file)
    exported = [
        ExportedConfiguration(config.name, config.version, config.params, sum(statuses.values()), statuses)
        for config in configs
        for statuses in [{status: n for (name, status), n in sorted(written.items()) if name == config.name}]
    ]
    document = ExportedScores(args.file, written.total(), exported)
    lines = [f"{count(document.rows, 'row')} written to {args.file}"]
    for each in exported:
        states = ", ".join(f"{count(n)} {status}" for status, n in each.statuses.items())
        lines.append(f"  {each.detector}: {states or 'no traces'}")
    return Answer(document, "\n".join(lines))


def _counted(
    records: Iterable[ScoreRecord], written: Counter[tuple[str, str]], show: Callable[[int], None]
) -> Iterator[ScoreRecord]:
    for done, record in enumerate(records):
        if done % SHOW_EVERY == 0:
            show(done)
        written[record.detector, record.status] += 1
        yield record
