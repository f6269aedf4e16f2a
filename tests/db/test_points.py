"""Saved ensembles come back as they were, also those that older versions wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import insert

from calibrate.types import EnsembleCut, EnsembleMember, Interval, Member, TraceFilter
from db import Store
from db.engine import writing
from db.tables import EnsembleRow
from tests.db.make import NOW, ensemble, records

# As the first version with ensembles wrote it: samples by one name.
HALF = {"value": 0.5, "low": 0.4, "high": 0.6}
CUT = {"threshold": 2.0, "share": 0.05, "strength": "bounded", "target": 0.7, "bound": 0.72, "why": None}
OLD = {
    "kind": "any",
    "rule": {"form": "fixed", "k": 1, "thresholds": {"a": ["below", 0.4]}},
    "detectors": {"a": {"version": "1", "params": {"n": 2}, "revision": "r"}},
    "budget": 0.2,
    "cuts": {"page": {**CUT, "threshold": None, "why": "too few labels"}, "signal": CUT},
    "figures": {
        "recall": HALF,
        "precision": HALF,
        "flag_rate": HALF,
        "auroc": {"value": None, "low": None, "high": None},
    },
    "best_single": {"detector": "a", "figures": {"recall": HALF, "precision": HALF, "flag_rate": HALF}},
    "difference": {"value": 0.1, "low": None, "high": None},
    "sentence": "Flags 20% of traffic.",
    "notes": ["few labels"],
    "data": {"sample": "W46 + W47", "n": 60, "positives": 20, "traffic": 900, "label_set_digest": "d"},
}


@pytest.mark.both_databases
def test_an_ensemble_is_read_as_it_was_saved_and_the_newest_counts(store: Store) -> None:
    older, newer = ensemble(), ensemble(budget=0.1, notes=())
    for saved in (older, newer):
        store.ensembles.save("both", saved, by="ann", now=NOW)
    row = store.ensembles.latest()["both"]
    assert (row.ensemble, row.saved_by, row.saved_at) == (newer, "ann", NOW)
    assert [saved.ensemble for saved in store.ensembles.of("both", until=NOW)] == [newer, older]


@pytest.mark.both_databases
def test_a_row_of_an_older_version_is_read(store: Store) -> None:
    row = {"name": "old", "document": OLD, "saved_by": "ann", "saved_at": NOW}
    with writing(store.engine) as connection:
        connection.execute(insert(EnsembleRow), [row])
    saved = store.ensembles.latest()["old"].ensemble
    assert (saved.kind, saved.budget, saved.sentence, saved.notes) == (
        "any",
        0.2,
        "Flags 20% of traffic.",
        ("few labels",),
    )
    assert saved.rule == OLD["rule"]
    assert saved.detectors == {"a": EnsembleMember("1", {"n": 2}, "r")}
    assert saved.cuts.page == replace(saved.cuts.signal, threshold=None, why="too few labels")
    assert saved.cuts.signal == EnsembleCut(2.0, 0.05, "bounded", 0.7, 0.72)
    assert (saved.figures.recall, saved.figures.auroc) == (Interval(0.5, 0.4, 0.6), Interval(None))
    assert (saved.best_single.detector, saved.difference) == ("a", Interval(0.1))
    assert (saved.data.sample, saved.data.samples, saved.data.n) == ("W46 + W47", ("W46", "W47"), 60)
    store.traces.add(records(1), labels_as=None, now=NOW)
    store.samples.add(
        "W46 + W47", where=TraceFilter(), strata={"all": (1, 1)}, members=[Member(1, 1.0, "all")], now=NOW,
        design="random", by=None, seed=1, pool=1, undated=0,
    )  # fmt: skip
    assert store.ensembles.latest()["old"].ensemble.data.samples == ("W46 + W47",)
