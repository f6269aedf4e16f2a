"""The state of the week follows the loop, and says what comes next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from calibrate import registry
from calibrate.ingest import Record
from calibrate.types import Interval, Label, OperatingPoint, Score, Trace, TraceFilter
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.sampling import sample as sampling
from calibrate.workflow.week.week import Week, monday, week
from db import Store
from db.points import PointData, SavedPoint
from db.releases import ReleaseRequest

NOW = datetime.now(UTC)
KNOWN = Interval(0.8, 0.6, 0.9)
POINT = OperatingPoint(
    "token_overlap", "below", 0.4, "precision>=0.7", True, KNOWN, KNOWN, KNOWN, KNOWN, 40, 20, 16, 4, 4, 16, 1.0
)  # fmt: skip


@pytest.fixture
def at(store: Store) -> Callable[[], Week]:
    return lambda: week(store, name="2026-W47", labeller="ann", now=NOW)


@pytest.mark.both_databases
def test_each_step_leads_to_the_next(store: Store, at: Callable[[], Week]) -> None:
    assert at().next == "import"
    log(store, "old-model", 6, NOW - timedelta(days=2))
    state = at()
    assert (state.next, state.traces, state.sample) == ("sample", 6, None)

    drawn = sampling.draw(store, "w", size=4, design="random", by=None, where=TraceFilter(), seed=1, now=NOW)
    assert at().next == "label"
    pks = [member.trace_pk for member in store.samples.members(drawn.id)]
    for n, pk in enumerate(pks):
        label = Label("", "ann", "clean" if n % 2 else "hallucinated", seconds=10.0)
        store.labels.add(pk, label, sample_id=drawn.id, now=NOW)
        assert at().labelled == n + 1
    assert at().gold == {"clean": 2, "hallucinated": 2}
    assert at().next == "detect"

    run = store.runs.queue([{"name": "token_overlap", "params": {}}], {"sample": "w"}, now=NOW)
    assert at().next == "detect"
    store.runs.claim("here:1", now=NOW, run_id=run.id)
    tallies = {
        "token_overlap": {"scored": 4, "reused": 0, "abstained": 0},
        "schema": {"scored": 0, "reused": 0, "abstained": 4},
    }
    store.runs.progress(run.id, "here:1", total=8, done=8, counts=tallies, now=NOW)
    store.runs.finish(run.id, "here:1", "done", now=NOW)
    state = at()
    assert (state.next, state.scored_detectors, state.silent_detectors) == (
        "tune", ("schema", "token_overlap"), ("schema",)
    )  # fmt: skip

    save_point(store, ["old-model"])
    assert (at().next, at().saved_points) == ("release", ("token_overlap",))
    releasing.release(store, ReleaseRequest(by="ann"), now=NOW)
    state = at()
    assert state.release is not None
    assert (state.next, state.release.version) == ("done", 1)
    later = week(store, name="2026-W48", labeller="ann", now=NOW + timedelta(days=7))
    assert later.next == "sample"  # another week
    later = week(store, name="2026-W52", labeller="ann", now=NOW + timedelta(days=29))
    assert (later.next, [row.name for row in later.checks_due]) == ("check", ["token_overlap"])
    store.labels.add(pks[0], Label("", "bob", "clean"), sample_id=drawn.id, now=NOW)
    assert (at().next, at().disputes) == ("settle", 1)
    store.labels.add(pks[0], Label("", "ann", "clean", adjudicates=True), sample_id=None, now=NOW)
    assert at().next == "done"

    sampling.draw(
        store, "w2", size=2, design="random", by=None, where=TraceFilter(), seed=1, now=NOW + timedelta(minutes=1)
    )
    state = at()
    assert state.scored_detectors == state.saved_points == ()


def test_a_model_without_labels_in_the_release_is_named(store: Store, at: Callable[[], Week]) -> None:
    log(store, "old-model", 3, NOW - timedelta(days=5))
    log(store, "rare-model", 1, NOW - timedelta(days=5))
    config = save_point(store, ["old-model"])
    assert config
    releasing.release(store, ReleaseRequest(by="ann"), now=NOW - timedelta(days=3))
    (rare,) = at().unknown_models  # on the newest day there is, however fresh the release
    assert (rare.name, rare.traces, rare.share) == ("rare-model", 1, 1 / 4)
    log(store, "old-model", 6, NOW - timedelta(days=1))
    log(store, "rare-model", 1, NOW - timedelta(days=1))
    log(store, "new-model", 3, NOW - timedelta(days=1))
    log(store, None, 5, NOW - timedelta(days=1))
    new, rare = at().unknown_models
    assert (new.name, new.traces, new.share) == ("new-model", 3, 3 / 15)
    assert new.appeared == (NOW - timedelta(days=1)).date()
    assert (rare.name, rare.appeared) == ("rare-model", None)
    releasing.release(store, ReleaseRequest(tiers={"token_overlap": "page"}, note="again", by="ann"), now=NOW)
    assert {one.name for one in at().unknown_models} == {"new-model", "rare-model"}  # not put out of sight by it


def test_a_live_threshold_that_a_recheck_found_wanting_comes_first(store: Store, at: Callable[[], Week]) -> None:
    log(store, "old-model", 6, NOW - timedelta(days=2))
    drawn = sampling.draw(store, "w", size=4, design="random", by=None, where=TraceFilter(), seed=1, now=NOW)
    config = save_point(store, ["old-model"])
    releasing.release(store, ReleaseRequest(by="ann"), now=NOW)
    assert (at().next, at().known_bad) == ("label", ())
    plan = {"threshold": 0.4, "model": None, "where": {}, "target": 0.7, "alpha": 0.05, "flag_when": "below",
            "limit": "≤ 0.4", "batch": 4, "seed": 1}  # fmt: skip
    recheck = store.rechecks.begin(
        "token_overlap", version=1, config_id=config, sample_id=drawn.id, plan=plan, by="ann", now=NOW
    )
    outcome = {"decision": "fell below", "labels": [(1, "hallucinated"), (2, "clean"), (3, "clean")]}
    store.rechecks.finish(recheck.id, outcome, now=NOW)
    (judged,) = at().known_bad
    assert (at().steps[:2], judged.name, judged.state.why) == (("fix", "label"), "token_overlap", "recheck fell")
    assert (judged.state.hits, judged.state.flagged) == (1, 3)


def test_the_week_begins_on_monday() -> None:
    assert monday(datetime(2026, 11, 22, 23, tzinfo=UTC)) == datetime(2026, 11, 16, tzinfo=UTC)
    assert monday(datetime(2026, 11, 16, tzinfo=UTC)) == datetime(2026, 11, 16, tzinfo=UTC)


def log(store: Store, model: str | None, n: int, when: datetime) -> None:
    first = store.traces.count(TraceFilter())
    traces = [Trace(f"t{first + i}", f"Answer {first + i}.", model=model, timestamp=when) for i in range(n)]
    store.traces.add([Record(i, trace) for i, trace in enumerate(traces, 1)], labels_as=None, now=NOW)


def save_point(store: Store, models: list[str]) -> int:
    detector = registry.make("token_overlap")  # as it runs today: another would have changed since the release
    config = store.scores.config(detector.name, detector.version, registry.config_of(detector), "", now=NOW)
    store.scores.save(config.id, [("a" * 32, Score("t0", 0.5))], now=NOW)  # what never scored is not released
    labels = (("a" * 32, "clean"), ("b" * 32, "hallucinated"))
    data = PointData(("w",), "random", "", 4, 2, None, None, tuple(models), labels)
    store.points.save(SavedPoint(0, "token_overlap", config.id, None, POINT, data, "ann", NOW))
    return config.id
