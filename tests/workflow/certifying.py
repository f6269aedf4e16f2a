"""A store with traffic whose truth is known, and a labeller who tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from calibrate.types import Label, Record, Sample, Source, Trace, TraceFilter
from calibrate.workflow.evidence import evidence, loading
from calibrate.workflow.sampling import sample
from db import Store
from tests.workflow.making import ABOVE, NOW, give_scores

WINDOW = TraceFilter(since=NOW - timedelta(days=14))


@dataclass(frozen=True)
class Traffic:
    """3,000 traces over two days, 12% of them hallucinated; `truth` by trace id."""

    store: Store
    truth: Mapping[str, bool]

    def label(self, drawn: Sample, *, leave: int = 0, verdicts: Mapping[int, str] | None = None) -> None:
        """Labels a sample truly but for the last `leave`; `verdicts` by place says otherwise."""
        members = self.store.samples.members(drawn.id)
        traces = self.store.traces.load([member.trace_pk for member in members])
        said = {place: "hallucinated" if self.truth[trace.id] else "clean" for place, trace in enumerate(traces)}
        said.update(verdicts or {})
        some = list(enumerate(traces))[: len(traces) - leave]
        labels = [Label(trace.id, "ann", said[place]) for place, trace in some]  # type: ignore[arg-type]
        self.store.labels.add_many(labels, now=NOW)

    def first(self, n: int = 120, name: str = "w47", seed: int = 1) -> evidence.Evidence:
        """A labelled sample of the whole traffic."""
        drawn = sample.draw(self.store, name, size=n, design="octave", where=WINDOW, seed=seed, now=NOW)
        self.label(drawn)
        return loading.load_evidence(self.store, ABOVE, sample=name)


def traffic(store: Store, *, good: bool = True, n: int = 3000, seed: int = 3, grouped: bool = False) -> Traffic:
    """Scores of a detector that flags above: one that knows a good deal, or (`good` False) next to nothing."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.12
    scores = np.where(truth & good, 1.9 + 1.4 * rng.standard_normal(n), rng.standard_normal(n))
    order = np.argsort(-scores)
    groups = {int(place): f"g{rank // 2}" for rank, place in enumerate(order)} if grouped else {}
    traces = [
        Trace(
            f"t{place}",
            answer=f"answer {place}",
            question=f"question {place}",
            sources=(Source("1", f"text {place}"),),
            timestamp=NOW - timedelta(minutes=place),
            model="m",
            group=groups.get(place),
        )
        for place in range(n)
    ]
    store.traces.add([Record(line, trace, ()) for line, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    give_scores(store, traces, [float(score) for score in scores], name=ABOVE)
    return Traffic(store, {trace.id: bool(bad) for trace, bad in zip(traces, truth, strict=True)})
