"""What the gate promises: few replications, wide bounds. The table: `python -m calibrate simulate --gate`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from calibrate.simulate import gating
from calibrate.simulate.gating import World
from calibrate.simulate.scenarios import SIZE, at_threshold
from calibrate.simulate.targets import Row

WORLDS = (World(0.2, "octave", 0.6, 0.75), World(0.2, "random", 0.85, 0.9))
RUNS = 40


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gating, "MARGINS", (0.15,))
    monkeypatch.setattr(gating, "OFTENER", 1)


def allowed(target: float, cells: int) -> float:
    """The worst share of several cells that a true share of `target` passes but once in a thousand."""
    return float(binom.isf(0.001 / cells, RUNS, target)) / RUNS


def rows_of(part: object, seed: int, *, labels: tuple[int, ...] = (400,)) -> list[Row]:
    return [*part(WORLDS, labels, RUNS, np.random.default_rng(seed))]  # type: ignore[operator]


def test_the_traffic_has_the_figures_it_is_made_for() -> None:
    traffic = at_threshold(0.05, 0.7, 0.8)
    flagged = int((traffic.scores >= 0).sum())
    assert traffic.truth.mean() == pytest.approx(0.05, abs=1 / SIZE)
    assert traffic.recall[flagged - 1] == pytest.approx(0.7, abs=1e-4)
    assert traffic.precision[flagged - 1] == pytest.approx(0.8, abs=1e-4)


def test_what_fell_by_the_margin_seldom_passes() -> None:
    rows = rows_of(gating._false_passes, 1)
    assert len(rows) == 8
    for row in rows:
        assert row.measured <= allowed(0.05, 2), row.name


def test_what_did_not_fall_further_is_seldom_said_to() -> None:
    rows = [*rows_of(gating._false_alarms, 2), *rows_of(gating._several, 3)]
    for row in rows:
        assert row.measured <= allowed(0.05, 2), row.name


def test_the_planned_labels_and_those_follow_requests_for_tell() -> None:
    held, fallen, *_ = rows_of(gating._power, 4, labels=(1000,))
    assert held.measured > 0.65
    assert fallen.measured > 0.5
    (followed,) = rows_of(gating._follow_requests, 5, labels=(150,))
    assert followed.measured > 0.6


def test_requests_of_every_cell_are_in_the_share_and_in_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """18 requests of one cell, and 44 of cells that have fewer than 17 each."""
    monkeypatch.setattr(gating, "FEWEST", 17)
    (followed,) = rows_of(gating._follow_requests, 5, labels=(150, 600))
    assert followed.low < followed.measured < followed.high
