"""The order of the week on real stores: what is open above is never passed over, and done means that nothing is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from calibrate import registry
from calibrate.types import Interval, Label, OperatingPoint, Record, Score, Trace, TraceFilter
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.sampling import sample as sampling
from calibrate.workflow.week.week import Week, week
from db import Store, open_store
from db.points import PointData, SavedPoint
from db.releases import ReleaseRequest
from db.scores import Config

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)  # a Thursday
KNOWN = Interval(0.8, 0.6, 0.9)
POINT = OperatingPoint(
    "token_overlap", "below", 0.4, "precision>=0.7", True, KNOWN, KNOWN, KNOWN, KNOWN, 40, 20, 16, 4, 4, 16, 1.0
)  # fmt: skip
DRAWN = NOW - timedelta(days=1)


@dataclass(frozen=True)
class Truth:
    """What is so in a store."""

    bad: bool
    disputed: bool
    left: bool
    unscored: bool
    unchosen: bool
    unreleased: bool


def states() -> Iterator[Truth]:
    """A random third of all states, the quiet one and the one with everything open among them."""
    every = [Truth(*facts) for facts in product((False, True), repeat=len(fields(Truth)))]
    chosen = np.random.default_rng(16).choice(len(every), 20, replace=False)
    yield from {every[0]: 0, every[-1]: 0, **{every[place]: 0 for place in chosen}}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with traces, a saved point and a first release, all of last week."""
    path = tmp_path_factory.mktemp("order") / "store.db"
    store = open_store(f"sqlite:///{path}")
    traces = [Trace(f"t{i}", f"Answer {i}.", model="m", timestamp=NOW - timedelta(days=2)) for i in range(6)]
    store.traces.add([Record(i, trace) for i, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    choose(store, NOW - timedelta(days=8))
    releasing.release(store, ReleaseRequest(by="ann"), now=NOW - timedelta(days=7))
    store.close()
    return path


def released(store: Store) -> Config:
    """The detector as it runs today: another would have changed since the release."""
    detector = registry.make("token_overlap")
    return store.scores.config(detector.name, detector.version, registry.config_of(detector), "", now=DRAWN)


def choose(store: Store, now: datetime) -> int:
    config = released(store)
    store.scores.save(config.id, [("a" * 32, Score("t0", 0.5))], now=now)
    labels = (("a" * 32, "clean"), ("b" * 32, "hallucinated"))
    data = PointData(("w",), "random", "", 40, 20, None, None, ("m",), labels)
    store.points.save(SavedPoint(0, "token_overlap", config.id, None, POINT, data, "ann", now))
    return config.id


def make(store: Store, truth: Truth) -> Week:
    drawn = sampling.draw(store, "w", size=4, design="random", by=None, where=TraceFilter(), seed=1, now=DRAWN)
    members = [member.trace_pk for member in store.samples.members(drawn.id)]
    for place, pk in enumerate(members):
        if not (truth.left and place == 3):
            store.labels.add(pk, Label("", "ann", "clean"), sample_id=drawn.id, now=NOW)
    if truth.disputed:
        other = next(pk for pk in range(1, 7) if pk not in members)
        for name, verdict in (("ann", "clean"), ("bob", "hallucinated")):
            store.labels.add(other, Label("", name, verdict), sample_id=None, now=NOW)  # type: ignore[arg-type]
    if not truth.unscored:
        run = store.runs.queue([{"name": "token_overlap", "params": {}}], {"sample": "w"}, now=NOW)
        store.runs.claim("here:1", now=NOW, run_id=run.id)
        tally = {"token_overlap": {"scored": 4, "reused": 0, "abstained": 0}}
        store.runs.progress(run.id, "here:1", total=4, done=4, counts=tally, now=NOW)
        store.runs.finish(run.id, "here:1", "done", now=NOW)
    config = released(store).id
    if not truth.unchosen:
        choose(store, DRAWN + timedelta(hours=1))
    if not truth.unreleased:
        releasing.release(store, ReleaseRequest(by="ann", note="again"), now=NOW)
    if truth.bad:
        newest = store.releases.list()[0].version
        plan = {"threshold": 0.4, "model": None, "where": {}, "target": 0.7, "alpha": 0.05, "flag_when": "below",
                "limit": "≤ 0.4", "batch": 4, "seed": 1}  # fmt: skip
        recheck = store.rechecks.begin(
            "token_overlap", version=newest, config_id=config, sample_id=drawn.id, plan=plan, by="ann", now=NOW
        )
        outcome = {"decision": "fell below", "labels": [(1, "hallucinated"), (2, "clean"), (3, "clean")]}
        store.rechecks.finish(recheck.id, outcome, now=NOW)
    return week(store, name="2026-W47", labeller="ann", now=NOW)


@pytest.mark.parametrize("truth", list(states()), ids=lambda truth: "-".join(k for k, v in vars(truth).items() if v))
def test_the_next_step_is_the_first_that_is_open(truth: Truth, empty: Path, tmp_path: Path) -> None:
    shutil.copy(empty, tmp_path / "store.db")
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    state = make(store, truth)
    store.close()
    order = (
        ("fix", truth.bad), ("settle", truth.disputed), ("label", truth.left), ("detect", truth.unscored),
        ("tune", truth.unchosen), ("release", truth.unreleased),
    )  # fmt: skip
    open_ones = [step for step, is_open in order if is_open]
    assert state.next == (open_ones[0] if open_ones else "done")
    assert ("done" in state.steps) == (not open_ones)
    assert [step for step in state.steps if step in ("fix", "settle")] == [
        step for step in open_ones if step in ("fix", "settle")
    ]
