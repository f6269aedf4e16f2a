"""`worker`: carry out the runs that wait in the store."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate import settings
from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.progress import progress
from calibrate.cli.signals import exit_code, raise_if_stopped
from calibrate.engines.choice import choose_engine
from calibrate.errors import BadInput, StoreError, StoreReplaced
from calibrate.report.numbers import count
from calibrate.report.sentences.detection import detection as sentences
from calibrate.workflow.detection import detect as step
from db import Store
from db.runs import Run

EVERY = 2.0  # seconds between two looks of a worker that waits


@dataclass(frozen=True, slots=True)
class RunDocument:
    run: int
    status: str


@dataclass(frozen=True, slots=True)
class WorkerDocument:
    """The runs that were carried out."""

    runs: Sequence[RunDocument]


def run(args: Namespace) -> Answer:
    if args.wait and args.run is not None:
        raise BadInput("--run is for one run and --wait for every run that comes: leave one of them out")
    choose_engine()  # raises for settings that are wrong, before a run fails for them
    settings.devices()
    store = open_store(args)
    return _wait(store) if args.wait else _carry_out_all(args, store)


def _carry_out_all(args: Namespace, store: Store) -> Answer:
    """Carry out the runs that wait now, or the one that is named."""
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


def _wait(store: Store) -> Answer:
    """Carry out every run that comes, one after another, until Ctrl-C or SIGTERM: the run at hand then waits again."""
    runs: list[RunDocument] = []
    at_hand, problem = None, ""
    _say(f"waiting for runs of {store.name}; Ctrl-C ends it, and gives its run to another worker")
    try:
        while True:
            raise_if_stopped()
            try:
                at_hand = step.claim(store)
                if at_hand is not None:
                    ended = step.carry_out(store, at_hand, gives_back=True)
                    runs.append(RunDocument(ended.id, ended.status))
                    _say(sentences.ended(ended.id, ended.status, ended.done, ended.total, ended.error))
                problem = ""
            except StoreReplaced:  # it would not come right by itself
                raise
            except StoreError as error:
                if str(error) != problem:
                    _say(f"{error}; tried again every {EVERY:g} s")
                problem = str(error)
            if at_hand is None or problem:
                time.sleep(EVERY)
    except KeyboardInterrupt as stop:
        text = f"{count(len(runs), 'run')} carried out"
        if at_hand is not None and (left := store.runs.get(at_hand.id)).status == "queued":
            text += f"; {sentences.given_back(left.id, left.done, left.total)}"
        return Answer(WorkerDocument(runs), text, exit_code=exit_code(stop))


def _say(line: str) -> None:
    print(f"touchstone: {line}", file=sys.stderr, flush=True)


def _find_run(store: Store, run_id: int) -> Run:
    if (run := store.runs.find(run_id)) is not None:
        return run
    newest = next((run.id for run in store.runs.recent(1)), "none: nothing was queued yet")
    raise BadInput(f"there is no run {run_id}; the newest is {newest}")
