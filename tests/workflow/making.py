"""Labelled traces with known scores, put into a store the way an import and a run put them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import insert

from calibrate.stats.choosing.policy import parse
from calibrate.types import Label, Member, OperatingPoint, Record, Sample, Score, Source, Trace, TraceFilter
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import Basis, choose_basis
from calibrate.workflow.tuning import operating_points
from db import Store
from db.engine import writing
from db.points import SavedPoint
from db.scores import Config
from db.tables import PointRow

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DETECTOR = "token_overlap"  # flags below
ABOVE = "citation_validity"  # flags above


def draw(n: int = 60, seed: int = 7, *, ties: bool = True) -> tuple[list[bool], list[float | None]]:
    """Labels, and scores that know something of them; every 10th trace has none. A third is hallucinated."""
    rng = np.random.default_rng(seed)
    labels = [bool(one) for one in rng.random(n) < 1 / 3]
    scores = [float(rng.normal(0.35 if bad else 0.65, 0.15)) for bad in labels]
    rounded = [round(score, 2) if ties else score for score in scores]
    return labels, [None if place % 10 == 9 else score for place, score in enumerate(rounded)]


def fill(
    store: Store, labels: Sequence[bool | None], scores: Sequence[float | None], *, name: str = DETECTOR
) -> Config:
    """Traces t0, t1 … an hour apart, labelled (None: not) and scored; gives the configuration that scored them."""
    records = []
    for place, bad in enumerate(labels):
        trace = Trace(
            f"t{place}",
            answer=f"answer {place}",
            question=f"question {place}",
            sources=(Source("1", f"text {place // 5}"),),
            timestamp=NOW - timedelta(hours=place),
            model="a" if place % 3 else "b",
        )
        label = () if bad is None else (Label(trace.id, "", "hallucinated" if bad else "clean"),)
        records.append(Record(place + 1, trace, label))
    store.traces.add(records, labels_as="gold", now=NOW)
    return give_scores(store, [record.trace for record in records], scores, name=name)


def give_scores(
    store: Store, traces: Sequence[Trace], scores: Sequence[float | None], *, name: str = DETECTOR
) -> Config:
    config = store.scores.config(name, "1", {"variant": "default"}, "", now=NOW)
    pairs = []
    for trace, value in zip(traces, scores, strict=True):
        missing = Score(trace.id, None, "no context", "abstained")
        pairs.append((trace.content_hash(), missing if value is None else Score(trace.id, value)))
    store.scores.save(config.id, pairs, now=NOW)
    return config


def keep_sample(store: Store, strata: Sequence[str], population: dict[str, int], *, name: str = "w47") -> Sample:
    """A sample of t0, t1 … with these strata, drawn from strata of these sizes."""
    drawn = {stratum: strata.count(stratum) for stratum in population}
    members = []
    for place, stratum in enumerate(strata):
        pk = store.traces.find(f"t{place}")
        assert pk is not None
        members.append(Member(pk, drawn[stratum] / population[stratum], stratum))
    return store.samples.add(
        name,
        design="stratified",
        by="model",
        seed=1,
        pool=sum(population.values()),
        undated=0,
        where=TraceFilter(since=NOW - timedelta(days=14), until=NOW, undated=False),
        strata={stratum: (size, drawn[stratum]) for stratum, size in population.items()},
        members=members,
        now=NOW,
    )


def keep_old_point(store: Store, saved: SavedPoint, *, point: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """A point as an older version stored it: `point` and `data` as they lie in the database."""
    row = {"detector": saved.detector, "config_id": saved.config_id, "sample_id": saved.sample_id}
    with writing(store.engine) as connection:
        connection.execute(
            insert(PointRow), [{**row, "point": point, "data": data, "chosen_by": "a", "chosen_at": NOW}]
        )


def save(
    store: Store, policy: str, *, name: str = DETECTOR, sample: str | None = None, reason: str = "a test's few labels"
) -> OperatingPoint:
    # Without a sample the labels stand for the traffic, as where all of it is labelled.
    data = loading.load_evidence(store, name, basis=choose_basis(store, sample) if sample else Basis(None))
    point = operating_points.choose_point(data, parse(policy))
    operating_points.save_point(store, data, point, reason=reason, by="ann", now=NOW)
    return point
