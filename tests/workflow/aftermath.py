"""A store with a release and the traffic after it, whose scores and truth are as a test wants them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np

from calibrate.stats.choosing.policy import parse
from calibrate.types import Label, Record, Trace
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import release
from calibrate.workflow.tuning import operating_points
from db import Store
from db.releases import Release, ReleaseRequest
from tests.workflow.making import ABOVE, NOW, give_scores

RELEASED = NOW - timedelta(days=7)
THRESHOLD = 1.5


def scores_of(n: int, *, away: float = 0.0, seed: int = 1) -> list[float | None]:
    """Scores near normal, standard deviation 1; every 50th trace has none."""
    drawn = away + np.random.default_rng(seed).standard_normal(n)
    return [None if place % 50 == 49 else float(score) for place, score in enumerate(drawn)]


def add(
    store: Store,
    name: str,
    scores: Sequence[float | None],
    *,
    start: datetime,
    model: str = "m1",
    labels: Sequence[bool] | None = None,
    detector: str | None = ABOVE,
    group: int | None = None,
    sample: bool = False,
) -> list[Trace]:
    """Traces name-0, name-1 … a minute apart, scored by the detector (None: not)."""
    traces = [
        Trace(
            f"{name}-{place}",
            answer=f"{name} answer {place}",
            question="?",
            timestamp=start + timedelta(minutes=place),
            model=model,
            group=f"{name} {place // group}" if group else None,
        )
        for place in range(len(scores))
    ]
    records = [
        Record(line, trace, (Label(trace.id, "", "hallucinated" if labels[line - 1] else "clean"),) if labels else ())
        for line, trace in enumerate(traces, 1)
    ]
    store.traces.add(records, labels_as="gold", now=start)
    if detector:
        give_scores(store, traces, scores, name=detector)
    return traces


def released(store: Store, *, n: int = 600, policy: str = f"manual:{THRESHOLD}", seed: int = 1) -> Release:
    """A release of one detector on n labelled traces of model m1, a fortnight before it."""
    scores = scores_of(n, seed=seed)
    labels = [score is not None and score > 1.2 and place % 5 != 0 for place, score in enumerate(scores)]
    add(store, "old", scores, start=RELEASED - timedelta(days=14), labels=labels)
    data = loading.load_evidence(store, ABOVE)
    operating_points.save_point(store, data, operating_points.choose_point(data, parse(policy)), by="ann", now=RELEASED)
    return release.release(store, ReleaseRequest(note="first", by="ann"), now=RELEASED)
