"""`worker`."""

from __future__ import annotations

from argparse import Namespace

from calibrate.cli import Answer
from calibrate.cli.common import store
from calibrate.errors import BadInput
from calibrate.workflow.detection import detect as step
from db import Store
from db.runs import Run


def run(args: Namespace) -> Answer:
    found = store(args)
    asked = None if args.run is None else _known(found, args.run)
    done = []
    while (finished := step.work(found, run_id=args.run)) is not None:
        done.append({"run": finished.id, "status": finished.status})
    text = f"{len(done)} runs carried out"
    if asked is not None and not done:
        text += f": run {asked.id} does not wait, it is {asked.status}"
    return Answer({"runs": done}, text)


def _known(found: Store, run_id: int) -> Run:
    if (run := found.runs.find(run_id)) is not None:
        return run
    newest = next((run.id for run in found.runs.recent(1)), "none: nothing was queued yet")
    raise BadInput(f"there is no run {run_id}; the newest is {newest}")
