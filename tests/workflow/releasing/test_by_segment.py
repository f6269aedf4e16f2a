"""A release with thresholds per segment, on stored traces: every figure is of each trace at its own threshold."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from sqlalchemy import update

from calibrate.errors import BadInput
from calibrate.thresholds import ThresholdsFile, from_json, to_json
from calibrate.types import Interval, Segments, SegmentThreshold
from calibrate.workflow.releasing import regression_guard
from calibrate.workflow.releasing.by_segment import as_released
from calibrate.workflow.releasing.impact import impact
from calibrate.workflow.watching import drift
from calibrate.workflow.watching.gate import judge
from calibrate.workflow.watching.live import live_thresholds
from calibrate.workflow.watching.recheck_plan import look
from db import Store, open_store
from db.engine import writing
from db.tables import ReleaseRow
from tests.thresholds.make import entry, release
from tests.workflow.aftermath import RELEASED, add, released, scores_of
from tests.workflow.making import ABOVE, DETECTOR, NOW, draw, fill, keep_sample, save

N, COMMON, OWN = 400, 0.5, 0.3
LATER = RELEASED + timedelta(hours=1)


def segments(**thresholds: float) -> Segments:
    nothing = Interval(None)
    return Segments(
        "model", {name: SegmentThreshold(own, 50, 20, nothing, nothing) for name, own in thresholds.items()}
    )


def thresholds(own: Segments | None) -> ThresholdsFile:
    return release({DETECTOR: entry(COMMON, policy="elbow", segments=own)})


def flagged_by_hand(scores: list[float | None]) -> np.ndarray:
    """Model a, of two traces in three, has the threshold OWN; model b the common one."""
    limits = [OWN if place % 3 else COMMON for place in range(N)]
    return np.array([score is not None and score <= limit for score, limit in zip(scores, limits, strict=True)])


@pytest.fixture
def lite(sqlite_url: str) -> Store:
    return open_store(sqlite_url)


@pytest.fixture
def data(store: Store) -> tuple[np.ndarray, np.ndarray]:
    """Labels and flags of a sample w47, drawn whole."""
    labels, scores = draw(N)
    assert OWN in scores  # a tie with a segment's threshold
    fill(store, labels, scores)
    keep_sample(store, ["all"] * N, {"all": N})
    return np.array(labels), flagged_by_hand(scores)


def test_the_gate_counts_each_trace_at_its_own_threshold(store: Store, data: tuple[np.ndarray, np.ndarray]) -> None:
    labels, flagged = data
    recall, precision = (
        each.now.value for each in judge(store, thresholds(segments(a=OWN)), ["w47"]).judged[0].figures
    )
    assert recall == pytest.approx((labels & flagged).sum() / labels.sum())
    assert precision == pytest.approx((labels & flagged).sum() / flagged.sum())


def test_a_release_is_compared_with_the_one_before_by_what_each_flags(
    store: Store, data: tuple[np.ndarray, np.ndarray]
) -> None:
    _, flagged = data
    save(store, f"manual:{COMMON}", sample="w47")
    before, after = thresholds(None), thresholds(segments(a=OWN))
    assert not regression_guard.same_point(before.detectors[DETECTOR], after.detectors[DETECTOR])
    changes = impact(store, before, after)
    (row,) = changes.rows
    assert row.check is not None
    assert row.check.paired is not None
    assert changes.flags is not None
    for pair in (row.check.paired, changes.flags):
        assert pair.second.flagged == flagged.sum() < pair.first.flagged


def test_evidence_flags_at_0_what_the_release_flags(store: Store, data: tuple[np.ndarray, np.ndarray]) -> None:
    save(store, f"manual:{COMMON}", sample="w47")
    evidence = regression_guard.chosen_on(store, store.points.latest()[DETECTOR])
    shifted, threshold = as_released(store, entry(COMMON, segments=segments(a=OWN)), evidence)
    assert threshold == 0
    assert (shifted.scores <= threshold).tolist() == data[1].tolist()
    assert as_released(store, entry(COMMON), evidence) == (evidence, COMMON)


def with_segments(store: Store, own: Segments) -> None:
    """Give the live release's detector these segments, as if it had been released with them."""
    (row,) = store.releases.list()
    file = from_json(json.loads(row.document))
    file = replace(file, detectors={ABOVE: replace(file.detectors[ABOVE], segments=own)})
    with writing(store.engine) as connection:
        connection.execute(update(ReleaseRow).values(document=json.dumps(to_json(file))))


def test_drift_expects_the_flags_of_the_segments(lite: Store) -> None:
    released(lite)
    new = scores_of(300, seed=2)
    add(lite, "new", new, start=LATER)
    with_segments(lite, segments(m1=0.5, m2=9.0))
    report = drift.drift(lite, now=NOW)
    (line,) = report.lines
    assert line.shift is not None
    sides = [(line.shift.before, scores_of(600)), (line.shift.now, new)]
    assert [side.flagged for side, _ in sides] == [sum(s is not None and s >= 0.5 for s in each) for _, each in sides]
    assert line.limit == "≥ 1.5 (model m1 0.5, m2 9)"
    (row,) = live_thresholds(lite, judged=(), report=report, now=NOW, changes={})
    assert row.limit == line.limit


def test_a_recheck_of_one_threshold_says_what_to_do_instead(lite: Store) -> None:
    released(lite)
    with pytest.raises(BadInput, match="one threshold for all"):
        look(lite, ABOVE, segment="m1", now=NOW)
    with_segments(lite, segments(m1=0.5))
    with pytest.raises(BadInput, match=r"thresholds for segments \(model m1 0\.5\).*--segment.*`gate`"):
        look(lite, ABOVE, now=NOW)
    with pytest.raises(BadInput, match=r"no threshold of its own for 'm9'.*`gate`"):
        look(lite, ABOVE, segment="m9", now=NOW)
