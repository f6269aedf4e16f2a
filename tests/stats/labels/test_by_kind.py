"""Recall by kind, against counting by hand, Jeffreys' interval from scipy, and a simulated traffic."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from calibrate.errors import BadInput
from calibrate.stats.labels.by_kind import recall_by_kind
from calibrate.stats.sweep.design import Design


def test_each_kind_is_counted_by_itself() -> None:
    """12 of 15 fabrications are flagged, 1 of 5 contradictions; 2 answers are both, and 1 has no kind."""
    kinds = [["fabrication"]] * 13 + [["fabrication", "contradiction"]] * 2 + [["contradiction"]] * 3 + [[]]
    scores = [1.0] * 11 + [0.0] * 2 + [1.0, 0.0] + [0.0] * 3 + [np.nan]
    labels = [True] * 19 + [False] * 30
    clean = [["fabrication"]] * 30  # kinds of a clean answer are nothing
    rows = recall_by_kind([*kinds, *clean], labels, [*scores, *[1.0] * 30], 0.5)
    assert [(row.kind, row.flagged, row.labels) for row in rows] == [
        ("fabrication", 12, 15),
        ("contradiction", 1, 5),
        (None, 0, 1),
    ]
    for row in rows:
        assert row.recall.value == pytest.approx(row.flagged / row.labels)
        k, n = row.flagged, row.labels
        low = beta.ppf(0.025, k + 0.5, n - k + 0.5) if k else 0.0
        assert row.recall.low == pytest.approx(low, abs=1e-6)
        assert row.recall.high == pytest.approx(beta.ppf(0.975, k + 0.5, n - k + 0.5), abs=1e-6)


def test_a_label_weighs_what_it_was_drawn_for() -> None:
    """One stratum holds 1,000 traces with 4 labels, the other 10 with 2: the rare one hardly counts."""
    design = Design(np.array([0, 0, 0, 0, 1, 1]), np.array([1000, 10]))
    kinds = [["odd"], ["odd"], [], [], ["odd"], ["odd"]]
    (row,) = recall_by_kind(kinds, [1, 1, 0, 0, 1, 1], [0.9, 0.1, 0.9, 0.1, 0.9, 0.9], 0.5, design=design)
    assert (row.labels, row.flagged) == (4, 3)
    assert row.recall.value == pytest.approx((250 + 2 * 5) / (2 * 250 + 2 * 5))


def test_a_detector_that_flags_below_finds_what_is_low() -> None:
    rows = recall_by_kind([["odd"], ["even"]], [True, True], [0.1, 0.9], 0.5, flag_when="below")
    assert {row.kind: row.recall.value for row in rows} == {"odd": 1.0, "even": 0.0}


def test_nothing_hallucinated_has_no_kinds() -> None:
    assert recall_by_kind([["odd"]], [False], [0.5], 0.1) == ()
    with pytest.raises(BadInput, match="1 lists of kinds for 2 labels"):
        recall_by_kind([[]], [True, False], [0.5, 0.5], 0.1)


def test_the_interval_holds_the_traffics_recall() -> None:
    """A traffic of two strata where a kind is caught 3 times in 5: at least 92% of 200 draws hold it (aim 95%)."""
    rng = np.random.default_rng(7)
    sizes, drawn = (4000, 1000), (150, 150)
    strata = np.repeat([0, 1], sizes)
    of_kind = rng.random(5000) < np.where(strata == 0, 0.15, 0.4)
    flagged = rng.random(5000) < np.where(strata == 0, 0.5, 0.8)
    truth = flagged[of_kind].mean()
    held = 0
    for _ in range(200):
        pks = np.concatenate([rng.choice(np.flatnonzero(strata == h), drawn[h], replace=False) for h in (0, 1)])
        design = Design(strata[pks], np.array(sizes))
        kinds = [["odd"] if is_odd else [] for is_odd in of_kind[pks]]
        labels = of_kind[pks] | (rng.random(len(pks)) < 0.1)
        rows = recall_by_kind(kinds, labels, flagged[pks].astype(float), 0.5, design=design)
        recall = next(row.recall for row in rows if row.kind == "odd")
        held += bool(recall.low is not None and recall.high is not None and recall.low <= truth <= recall.high)
    assert held >= 184
