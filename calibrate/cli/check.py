"""`check`: whether the store is sound."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing

from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.progress import progress
from calibrate.report.sentences.traces.upkeep import looked_at, wrong
from calibrate.workflow.upkeep.checking import check


def run(args: Namespace) -> Answer:
    with closing(open_store(args)) as store, progress(args, "checking") as advance:
        checked = check(store, on_progress=advance)
    if not checked.findings:
        return Answer(checked, f"{store.name} is sound: {looked_at(checked)}")
    lines = [f"{store.name} is not sound:", *(f"  {wrong(finding)}" for finding in checked.findings)]
    lines.append("  keep this store as it is, and restore a backup: docs/how-to/keep-and-move.md")
    return Answer(checked, "\n".join(lines), exit_code=1)
