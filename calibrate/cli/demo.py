"""`demo`."""

from __future__ import annotations

from argparse import Namespace

from calibrate.cli import Answer
from calibrate.cli.common import now, store


def run(args: Namespace) -> Answer:
    from calibrate.workflow.traces.demo import fill

    report = fill(store(args, create=True), now=now())
    return Answer(report.as_json(), f"{report.imported} sample traces with {report.labels} labels are in the store")
