"""`demo`: fill an empty store with the sample traces that come with Touchstone."""

from __future__ import annotations

from argparse import Namespace

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store
from calibrate.cli.import_traces import add_up
from calibrate.workflow.traces.demo import TRACES, fill
from calibrate.workflow.traces.import_labelled import Imported
from calibrate.workflow.traces.membership import NO_LABELS


def run(args: Namespace) -> Answer:
    report = fill(open_store(args, create=True), now=now())
    text = f"{report.imported} sample traces with {report.labels} labels are in the store"
    return Answer(add_up({str(TRACES): Imported(report, None, NO_LABELS)}), text)
