"""A rollback lasts: what the version was made from is on offer again, so that the next release starts from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from calibrate.errors import TouchstoneError
from calibrate.report.sentences.releasing import release as sentences
from calibrate.stats.choosing.policy import parse
from calibrate.thresholds import diff
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import EnsembleCut, EnsembleCuts, EnsembleMember
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import history
from calibrate.workflow.releasing import release as step
from calibrate.workflow.releasing.entries import on_offer
from calibrate.workflow.tuning import operating_points
from db import Store
from db.releases import ReleaseRequest
from tests.db.make import ensemble
from tests.workflow.making import ABOVE, DETECTOR, NOW, draw, fill, give_scores, keep_sample, save

LATER = NOW + timedelta(hours=1)
TWO = "both of them"


def chosen(store: Store, policy: str, name: str, at: datetime, *, sample: str | None = None, by: str = "ann") -> None:
    data = loading.load_evidence(store, name, sample=sample)
    point = operating_points.choose_point(data, parse(policy))
    operating_points.save_point(store, data, point, reason="a test's few labels", by=by, now=at)


def combined(store: Store, k: int) -> None:
    """An ensemble of the two as it is saved: `k` of them flag."""
    rule = {"form": "fixed", "k": k, "thresholds": {DETECTOR: ["below", 0.4], ABOVE: ["above", 0.6]}}
    member = EnsembleMember("1", {"variant": "default"}, "")
    cuts = EnsembleCuts(EnsembleCut(2.0, 0.05), EnsembleCut(float(k), 0.2))
    saved = ensemble(rule=rule, detectors={DETECTOR: member, ABOVE: member}, cuts=cuts)
    store.ensembles.save(TWO, saved, by="ann", now=NOW)


def release(store: Store, *, at: datetime = LATER, ensembles: Sequence[str] = (TWO,), **given: Any) -> ThresholdsFile:
    request = ReleaseRequest(ensembles=ensembles, by="ann", reason="a test", **given)
    row = step.release(store, request, now=at)
    return history.read_release(row)


@pytest.fixture
def ready(store: Store) -> Store:
    """Two detectors and an ensemble of them are live as v1, and all of them otherwise as v2."""
    labels, scores = draw()
    fill(store, labels, scores)
    traces = store.traces.load([row.pk for row in loading.load_evidence(store, DETECTOR).rows])
    give_scores(store, traces, [None if s is None else 1 - s for s in scores], name=ABOVE)
    keep_sample(store, ["all"] * 30, {"all": 600})
    combined(store, 1)
    chosen(store, "manual:0.5", DETECTOR, NOW)
    chosen(store, "manual:0.5", ABOVE, NOW)
    release(store, at=NOW, tiers={TWO: "signal"})
    combined(store, 2)
    chosen(store, "manual:0.5", DETECTOR, LATER, sample="w47", by="bob")  # the same threshold, on other labels
    chosen(store, "manual:0.9", ABOVE, LATER, by="bob")
    release(store)
    return store


def test_the_next_release_starts_from_the_version_that_came_back(ready: Store) -> None:
    row = step.rollback(ready, 1, by="cid", now=LATER, reason="Pages all night.")
    assert row.note == "Back to v1.\nReason: Pages all night."
    for name in (DETECTOR, ABOVE):
        saved = ready.points.latest()[name]
        assert (saved.point.threshold, saved.data.samples, saved.chosen_by, saved.chosen_at) == (
            0.5, (), "ann", NOW,
        )  # fmt: skip
    back = history.read_release(row)
    assert sentences.on_offer(1, on_offer(ready, back)) == [
        "v1's points and ensembles are on offer again: the next release starts from them"
    ]
    changed = diff(back, release(ready, tiers={ABOVE: "off"}))
    assert [(one.detector, one.field) for one in changed] == [(ABOVE, "tier")]


def test_a_rollback_can_be_rolled_back(ready: Store) -> None:
    second = ready.points.latest()
    step.rollback(ready, 1, by="cid", now=LATER)
    back = history.read_release(step.rollback(ready, 2, by="cid", now=LATER + timedelta(hours=1)))
    now = ready.points.latest()
    assert {name: (one.point, one.data) for name, one in now.items()} == {
        name: (one.point, one.data) for name, one in second.items()
    }  # the threshold of the detector is that of v1, but not what was measured of it
    assert ready.ensembles.latest()[TWO].ensemble.rule["k"] == 2
    assert diff(back, release(ready, tiers={ABOVE: "page"}))[0].field == "tier"


@pytest.mark.both_databases
def test_what_is_newer_or_more_than_the_version_is_said(ready: Store) -> None:
    with ready.engine.begin() as connection:
        connection.execute(text("DELETE FROM operating_points WHERE chosen_by = 'ann' AND detector = :a"), {"a": ABOVE})
    save(ready, "elbow")
    back = history.read_release(step.rollback(ready, 1, by="cid", now=LATER))
    assert sentences.on_offer(1, on_offer(ready, back)) == [
        "Citation validity: what is saved is newer than the live release, whose own is no longer in the "
        "store; the next release would bring it, unless another is chosen and saved"
    ]
    alone = release(ready, detectors=[DETECTOR], ensembles=())
    assert sentences.on_offer(alone.version, on_offer(ready, alone))[1:] == [
        f"v{alone.version} has no Citation validity, on offer with a saved point: leave out what shall not come back"
    ]


def test_a_rollback_that_fails_offers_nothing_either(ready: Store, tmp_path: Path) -> None:
    before = ready.points.latest(), ready.ensembles.latest()
    with pytest.raises(TouchstoneError, match="there is no folder"):
        step.rollback(ready, 1, by="cid", now=LATER, out=tmp_path / "no such folder" / "t.json")
    assert (ready.points.latest(), ready.ensembles.latest()) == before
    assert ready.releases.count() == 2
