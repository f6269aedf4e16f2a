"""An ensemble that flags too few labels to know anything is held as a single detector is."""

from __future__ import annotations

import pytest

from calibrate.errors import BadInput
from calibrate.report.sentences.tuning import ensembles as wording
from calibrate.stats.ensembles.combine import Recipe
from calibrate.types import StateReason
from calibrate.workflow.tuning import ensemble as step
from calibrate.workflow.tuning.point_state import judge_ensemble
from db import Store
from tests.workflow.making import NOW
from tests.workflow.tuning.test_ensemble import A, B, filled


@pytest.mark.parametrize(("budget", "few"), [(0.02, True), (0.3, False)])
def test_an_ensemble_that_flags_few_labels_takes_a_reason(store: Store, budget: float, few: bool) -> None:
    filled(store)
    report = step.build(store, Recipe("logistic"), [A, B], budget=budget)
    state = judge_ensemble(wording.document(report))
    assert (report.flagged < 5) == few
    assert (state.why == StateReason.FEW_FLAGGED) == few
    if few:
        assert state.flagged == round(report.flagged)
        with pytest.raises(BadInput, match="few flagged"):
            step.save(store, "pair", wording.document(report), by="ann", now=NOW)
