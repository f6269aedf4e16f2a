"""What thresholds per segment promise: few replications, wide bounds. The table: `simulate --segments`."""

from __future__ import annotations

import numpy as np
import pytest

from calibrate.simulate.segments import World, measure, run_world


def test_like_segments_lose_nothing_and_are_rarely_offered() -> None:
    world = World.of("alike", (30, 60, 100, 300), 0.3)
    outcome = run_world(world, replications=8, rng=np.random.default_rng(0))
    assert outcome.gained > -0.015
    assert outcome.offered <= 0.25


def test_a_segment_apart_gains() -> None:
    outcome = run_world(World.of("one apart", (100,) * 4, 0.3), replications=5, rng=np.random.default_rng(1))
    assert outcome.gained > 0.15


def test_truth_is_that_of_the_draws() -> None:
    world = World.of("other rates", (50_000, 50_000), 0.3)
    rows = world.draw(np.random.default_rng(2))
    thresholds = np.array([1.0, 0.4])
    flagged = rows.suspicious >= thresholds[rows.segment]
    precision, recall = world.truth(thresholds)
    assert rows.labels[flagged].mean() == pytest.approx(float(precision), abs=0.01)
    assert flagged[rows.labels].mean() == pytest.approx(float(recall), abs=0.01)


def test_the_table_names_the_worst_cell() -> None:
    report = measure(3, cells=[World.of("alike", (30, 30), 0.3), World.of("one apart", (60, 60), 0.3)])
    assert report.rows[0].met is not None
    assert report.rows[0].where in ("alike, 30%, 30/30 labels", "one apart, 30%, 60/60 labels")
