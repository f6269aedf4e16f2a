"""The weekly page is one document, and shows no chart where nothing was compared."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from calibrate.report import weekly_html
from calibrate.report.sentences.watching import week
from calibrate.report.sentences.watching import weekly as sentences
from calibrate.stats.monitoring.drift import Moved, Shift, Side
from calibrate.types import Interval, Sample, TraceFilter
from calibrate.workflow.evidence.label_counts import LabelCounts
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand
from calibrate.workflow.evidence.prevalence import Prevalence
from calibrate.workflow.watching.drift_report import Bins, DetectorDrift, DriftState, Gap, Report
from calibrate.workflow.week.rates import Rates
from calibrate.workflow.week.standing import Standing
from calibrate.workflow.week.week import Week
from calibrate.workflow.week.weekly import NotRun, Scored, Weekly

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SAMPLE = Sample(1, "2026-W47", "octave", None, 20, 1, 60, 0, TraceFilter(), {}, NOW)
BEFORE, LATER = Side(300, 300, 9, 0.61, 0.3, 0.9, 300), Side(200, 200, 8, 0.53, 0.2, 0.8, 200)
COMPARED = DetectorDrift(
    detector="word_overlap",
    model="m<1>",
    tier="signal",
    threshold=0.5,
    flag_when="below",
    limit="≤ 0.5",
    state=DriftState.MOVED,
    unseen=False,
    traces=200,
    scored=200,
    compared=200,
    compared_before=300,
    shift=Shift(BEFORE, LATER, 0.1, 0.0001, 0.5, 1.0, 0.1),
    moved=Moved(scores=True),
    bins=Bins(np.array([0.0, 0.5, 1.0]), np.array([0.4, 0.6]), np.array([0.6, 0.4])),
    gap=None,
    baseline=None,
    prevalence=None,
    promised=None,
)
WAITING = replace(
    COMPARED, state=DriftState.NOT_SCORED, scored=0, compared=0, compared_before=0, shift=None, moved=None, bins=None,
    gap=Gap(DriftState.NOT_SCORED),
)  # fmt: skip

RATES = Rates(None, (), 0, 0, None, None)
NO_LABELS = LabelsAtHand(LabelCounts(0, 20, 0, 0, 0, 0, 0), Prevalence(Interval(None)))


def weekly(*lines: DetectorDrift, **changed: Any) -> Weekly:
    report = Report(1, NOW, ("m",), TraceFilter(), TraceFilter(), 200, (), lines, 2000, 0, 0.05)
    state = Week(
        "2026-W47", 900, 60, True, SAMPLE, None, {}, NO_LABELS, None, None, ("word_overlap",), (), (), None, (),
        ("label",), Standing(1, (), report),
    )  # fmt: skip
    scored = (Scored("word_overlap", 60, 2),)
    return Weekly("2026-W47", NOW, 1, scored, SAMPLE, True, NO_LABELS, replace(state, **changed), RATES)


def test_it_is_one_document_with_a_chart_for_each_comparison() -> None:
    page = weekly_html.page(weekly(WAITING, COMPARED))
    body = page.partition("<body>")[2]
    assert page.count("<html") == page.count("</html>") == body.count("</body>") == 1
    assert body.count("Plotly.newPlot(") == body.count("<table>") == 1
    assert ">None" not in body
    assert "None<" not in body


def test_what_asks_for_something_comes_first_and_names_are_escaped() -> None:
    body = weekly_html.page(weekly(WAITING, COMPARED)).partition("<body>")[2]
    assert body.index("<small>moved</small>") < body.index("<small>not scored</small>")
    assert "m&lt;1&gt;" in body
    assert "m<1>" not in body
    assert "<td>4%</td>" in body  # 8 of 200 flagged
    assert "2026, 12:00 UTC" in body


def test_what_is_to_do_is_said_as_the_home_page_says_it() -> None:
    quiet = weekly(replace(COMPARED, state=DriftState.HOLDS, moved=Moved()))
    assert sentences.next_steps(quiet) == ["20 traces of 2026-W47 left to label. (the Label page)"]
    assert sentences.next_steps(weekly(COMPARED, steps=("done",))) == ["Nothing to do until Monday."]
    both = weekly(COMPARED, steps=("settle", "label"), disputes=2)
    assert sentences.next_steps(both) == [
        "2 labels are disputed: they are in no figure until settled. (the Disputes page, or `agreement adjudicate`)",
        "20 traces of 2026-W47 left to label. (the Label page)",
    ]
    assert [week.todo(both.state, step).sentence in weekly_html.page(both) for step in both.state.steps] == [True] * 2
    disputed = LabelsAtHand(LabelCounts(20, 20, 17, 1, 0, 2, 0), Prevalence(Interval(0.06)))
    assert "<li>20 of 20 labelled · 2 disputed · about 6%" in weekly_html.page(replace(quiet, at_hand=disputed))


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (Scored("nli", 60, 2), "60 new traces scored, 2 could not be scored"),
        (Scored("nli", 1), "1 new trace scored"),
        (
            Scored("nli", not_run=NotRun.ASKS_CHAT),
            "not run: it asks a chat endpoint: `detect nli --sample NAME",
        ),
        (Scored("nli", not_run=NotRun.SAMPLED, detail="5% of all traces"), "not run: production runs it on 5% of all"),
        (Scored("nli", not_run=NotRun.UNAVAILABLE, detail="no model"), "not run: no model"),
    ],
)
def test_a_detector_says_what_it_did(row: Scored, text: str) -> None:
    assert sentences.scored(row).startswith(text)


def test_only_a_page_with_a_chart_carries_the_library_that_draws_it() -> None:
    assert len(weekly_html.page(weekly(live=Standing()))) < 50_000
    assert len(weekly_html.page(weekly(COMPARED))) > 1_000_000
