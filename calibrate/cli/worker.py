"""`worker`: carry out the runs that wait in the store."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.progress import progress
from calibrate.errors import BadInput
from calibrate.report.numbers import count
from calibrate.report.sentences import detection as sentences
from calibrate.workflow.detection import detect as step
from db import Store
from db.runs import Run


@dataclass(frozen=True, slots=True)
class RunDocument:
    run: int
    status: str


@dataclass(frozen=True, slots=True)
class WorkerDocument:
    """The runs that were carried out."""

    runs: Sequence[RunDocument]


def run(args: Namespace) -> Answer:
    store = open_store(args)
    named = None if args.run is None else _find_run(store, args.run)
    runs = []
    with progress(args, "scoring", "score") as advance:
        try:
            while (finished := step.work(store, run_id=args.run, on_progress=advance)) is not None:
                runs.append(RunDocument(finished.id, finished.status))
        except KeyboardInterrupt as stop:
            mine = (run for run in store.runs.recent() if run.worker == step.worker_name())
            ended = [sentences.stopped(run.id, run.done, run.total) for run in mine if run.status == "stopped"]
            raise type(stop)("; ".join(ended)) from None
    text = f"{count(len(runs), 'run')} carried out"
    if broken := [run for run in runs if run.status in ("failed", "incomplete")]:
        text += "; " + ", ".join(f"run {run.run} {run.status}" for run in broken)
    if named is not None and not runs:
        text += f": run {named.id} does not wait, it is {named.status}"
    return Answer(WorkerDocument(runs), text, exit_code=1 if broken else 0)


def _find_run(store: Store, run_id: int) -> Run:
    if (run := store.runs.find(run_id)) is not None:
        return run
    newest = next((run.id for run in store.runs.recent(1)), "none: nothing was queued yet")
    raise BadInput(f"there is no run {run_id}; the newest is {newest}")
