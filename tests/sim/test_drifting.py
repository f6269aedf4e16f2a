"""What drift and recheck promise: few replications, wide bounds. The table: `python -m calibrate simulate --drift`."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import pytest
from scipy.stats import binom

from calibrate.cli import simulate
from calibrate.errors import BadInput
from calibrate.simulate import drifting, rechecking
from calibrate.simulate.targets import Row


@pytest.fixture(scope="module")
def sequential() -> list[Row]:
    rng = np.random.default_rng(1)
    return [*drifting._sequential(60, rng), *drifting._false_alarms(60, rng)]


def test_rechecks_take_the_labels_promised_and_are_seldom_wrong(sequential: list[Row]) -> None:
    for row, most in zip(sequential[:4], (40, 160, 120, 27), strict=True):
        assert row.measured <= 1.15 * most
    for row in sequential[4:]:
        assert row.measured * 300 <= binom.isf(0.001, 300, 0.05)


def test_mixed_weeks_and_busy_sources_make_few_wrong_rechecks() -> None:
    rng = np.random.default_rng(4)
    rows = [*rechecking.mixed_periods(60, rng), *rechecking.busy_sources(60, rng)]
    kept = [row for row in rows if row.target]
    assert len(kept) == 7
    for row in kept:
        assert row.measured * 60 <= binom.isf(0.001, 60, 0.05), row.name
    # What they were before: all weeks pooled, the first of each source alone.
    assert [row.measured > 0.1 for row in rows if not row.target] == [True] * 4


def test_quiet_weeks_are_quiet_and_moved_scores_are_seen() -> None:
    rng = np.random.default_rng(2)
    weeks = [drifting._compared(shape, 300, rng=rng, tests=3) for shape in drifting.SHAPES for _ in range(15)]
    false = sum(drifting.judge_shifts([one])[0].any for one in weeks)
    assert false <= binom.isf(0.001, 60, 0.05)
    seen = [drifting._hit(drifting._compared(drifting.SHAPES[0], 300, rng=rng, tests=3, away=0.3)) for _ in range(20)]
    assert sum(seen) >= 17


def test_the_prevalence_is_within_its_error() -> None:
    (row,) = drifting._prevalence(60, np.random.default_rng(3))
    assert row.measured <= 0.024


def test_the_verb_measures_the_same_with_the_same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LABELS": 60, "REFERENCE": 60, "SIZES": (40,), "DETECTORS": 2}.items():
        monkeypatch.setattr(drifting, name, value)
    monkeypatch.setattr(simulate, "FEWEST_REPLICATIONS", 3)
    args = Namespace(replications=3, labels=300, seed=4, drift=True, json=False)
    first = simulate.run(args)
    assert first.document == simulate.run(args).document
    assert "wrong" in first.text
    with pytest.raises(BadInput, match="a seed"):
        simulate.run(Namespace(replications=50, labels=300, seed=-1, drift=True, json=False))
