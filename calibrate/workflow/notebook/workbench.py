"""The workbench of a notebook: the steps of the loop as methods, with frames in and frames out."""

from __future__ import annotations

from calibrate import settings
from calibrate.workflow.notebook.steps import Steps
from calibrate.workflow.notebook.traces_and_labels import TracesAndLabels
from db import open_store
from db.audit import Actor, identify_by


class Workbench(TracesAndLabels, Steps):
    """A store to work on in a notebook or a script.

    Everything is checked as it is by the pages and the command line, and every figure is theirs. Rows that cannot be
    taken come back with the reason, and the others are kept. `calibrate.open` opens one.

    Parameters
    ----------
    store : Store
        An open store. The workbench closes it.

    Examples
    --------
    >>> import calibrate
    >>> import pandas as pd
    >>> bench = calibrate.open("sqlite:///touchstone.db")
    >>> answers = pd.DataFrame({
    ...     "trace_id": [f"t{n}" for n in range(60)],
    ...     "reply": ["Grass is purple." if n % 3 == 0 else "The sky is blue." for n in range(60)],
    ...     "sources": [[f"Note {n}: the sky is blue."] for n in range(60)],
    ...     "label": ["hallucinated" if n % 3 == 0 else "clean" for n in range(60)],
    ... })
    >>> done = bench.add(answers, columns={"answer": "reply"}, labels_as="ann", name="may")
    >>> done.imported, done.labels, len(done.rejected)
    (60, 60, 0)
    >>> bench.detect("token_overlap")[["detector", "scored", "failed"]].values.tolist()
    [['token_overlap', 60, 0]]
    >>> sweep = bench.sweep("token_overlap")
    >>> sweep[["threshold", "precision", "recall", "flagged"]].values.tolist()[0]
    [0.0, 1.0, 1.0, 20.0]
    >>> choice = bench.choose("token_overlap", "precision>=0.7", save=True)
    >>> choice.saved, choice.point.precision.low > 0.8
    (True, True)
    >>> bench.release("thresholds.json", note="The first.").version
    1
    >>> bench.close()
    """


def open_workbench(url: str | None = None, *, create: bool = True) -> Workbench:
    """Open a store in the name of the user, as `calibrate.open` describes."""
    identify_by(_actor)
    return Workbench(open_store(url or settings.read().store, create=create))


def _actor() -> Actor:
    given = settings.read()
    return Actor(given.user, "login" if given.is_login else "environment")
