"""`demo`: fill an empty store with the demo that comes with Touchstone, or with its sample traces alone."""

from __future__ import annotations

from argparse import Namespace

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store
from calibrate.cli.import_traces import add_up
from calibrate.cli.progress import progress
from calibrate.report.numbers import count
from calibrate.workflow.demo import shop, story
from calibrate.workflow.traces import demo as traces_only
from calibrate.workflow.traces.import_labelled import Imported
from calibrate.workflow.traces.membership import NO_LABELS


def run(args: Namespace) -> Answer:
    store = open_store(args, create=True)
    if args.traces_only:
        path, report = traces_only.TRACES, traces_only.fill(store, now=now())
        text = f"{report.imported} sample traces with {report.labels} labels are in the store"
    else:
        with progress(args, "filling", "step") as advance:
            path, report = shop.TRACES, story.fill(store, now=now(), on_progress=advance)
        text = (
            f"the demo is in the store: {count(report.imported, 'trace')} of a made-up shop's assistant, "
            f"{count(report.labels, 'label')} by {' and '.join(story.LABELLERS)}, "
            f"{count(store.releases.count(), 'release')}; this week is left to do"
        )
    return Answer(add_up({str(path): Imported(report, None, NO_LABELS, format="jsonl")}), text)
