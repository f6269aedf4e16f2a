"""What was rolled back to is watched on all its traffic: what came since it was first live, not since the roll back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from calibrate.report.sentences.watching import drift as sentences
from calibrate.report.sentences.watching import recheck as recheck_sentences
from calibrate.stats.choosing.policy import parse
from calibrate.types import Label
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import Basis
from calibrate.workflow.releasing import release
from calibrate.workflow.releasing.unknown_models import unknown_models
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.watching import drift, recheck
from db import Store
from db.releases import ReleaseRequest
from tests.workflow.aftermath import RELEASED, add, released, scores_of
from tests.workflow.making import ABOVE, NOW

HOUR = timedelta(hours=1)


@pytest.fixture
def back(store: Store) -> Store:
    """v1, 500 traces and a new model's 100, v2 at another threshold, and v1 again as v3 with no traffic after it."""
    released(store)
    add(store, "new", scores_of(500, seed=2), start=RELEASED + HOUR)
    add(store, "odd", scores_of(100, seed=3), start=RELEASED + HOUR, model="m2")
    add(store, "newest", scores_of(10, seed=4), start=RELEASED + timedelta(days=3))
    data = loading.load_evidence(store, ABOVE, basis=Basis(None))  # as when all of the traffic was labelled
    operating_points.save_point(
        store,
        data,
        operating_points.choose_point(data, parse("manual:0.5")),
        by="bob",
        now=RELEASED + timedelta(days=4),
    )
    release.release(store, ReleaseRequest(reason="a test", by="bob"), now=RELEASED + timedelta(days=5))
    release.rollback(store, 1, by="cid", now=RELEASED + timedelta(days=6))
    return store


def test_drift_compares_what_came_since_it_was_first_live(back: Store) -> None:
    report = drift.drift(back, now=NOW)
    assert (report.version, report.traces) == (3, 610)
    assert {line.model: line.state for line in report.lines} == {"m1": "holds", "m2": "recalibrate"}
    assert [one.name for one in unknown_models(back, back.releases.list()[0])] == ["m2"]
    assert sentences.verdict(drift.drift(back, version=2, now=NOW)).startswith("No dated traces since release v2")


def test_a_recheck_draws_from_it_and_leaves_out_what_was_rechecked_before(back: Store) -> None:
    given = {"target": 0.7, "seed": 5, "by": "ann", "now": NOW}
    one = recheck.begin(back, ABOVE, version=1, labels=20, **given)  # type: ignore[arg-type]
    drawn = {member.trace_pk for member in back.samples.members(one.sample_id)}
    traces = back.traces.load(sorted(drawn))
    back.labels.add_many([Label(trace.id, "ann", "hallucinated") for trace in traces], now=NOW)
    assert recheck_sentences.verdict(recheck.state(back, one, now=NOW))
    other = recheck.begin(back, ABOVE, **given)  # type: ignore[arg-type]
    assert other.version == 3
    again = {member.trace_pk for member in back.samples.members(other.sample_id)}
    assert again
    assert not drawn & again
