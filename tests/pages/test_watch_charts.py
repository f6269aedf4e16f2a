"""The parts of the Watch pages that need no server: names of models in a chart, counts of labels."""

from __future__ import annotations

from datetime import date

from calibrate.thresholds.model import Metrics
from calibrate.types import Interval
from calibrate.workflow.upgrade.models_seen import NoStep, Registry
from db.tables.filters import NONE
from pages.watch.model_traffic import traffic
from pages.watch.recheck_screen import when_released

DAY = date(2026, 11, 20)


def test_models_show_as_they_are_written() -> None:
    names = ("a<b>c</b>", "abc", "%{y}", NONE)
    counts = {name: {DAY: place + 1} for place, name in enumerate(names)}
    found = Registry("model", (), 0, "day", counts, None, None, None, NoStep("too few labelled"))
    bars = traffic(found, names).data
    assert [bar.name for bar in bars] == ["a&lt;b&gt;c&lt;/b&gt;", "abc", "%{y}", "not given"]
    assert [bar.y[0] for bar in bars] == [0.1, 0.2, 0.3, 0.4]
    assert not any(name in bar.hovertemplate for name in names for bar in bars), "a template's %{} is its own"


def test_the_labels_behind_a_precision_are_not_said_to_be_flagged() -> None:
    nothing = Interval(None)
    found = Metrics(Interval(0.72, 0.58, 0.83), nothing, nothing, nothing, 340, 61)
    assert when_released(found) == (
        "its precision was 72% (58–83%), measured on 340 labels, 61 of them hallucinated, flagged or not"
    )
    assert when_released(Metrics(nothing, nothing, nothing, nothing, 1, 0)) == (
        "its precision was unknown, from 1 label, 0 of them hallucinated"
    )
