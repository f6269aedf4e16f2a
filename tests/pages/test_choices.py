"""What the controls of the pages offer, and what they ask for."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from calibrate.report.sentences.labelling.drawing import precision_known
from calibrate.stats.choosing.policy import Policy
from calibrate.types import TraceFilter
from calibrate.workflow.sampling.sizing import Plan
from db import open_store
from db.tables.filters import NONE
from pages.components.evidence_choice import gain
from pages.label.pool import PoolView, between, last_days, shares_of
from pages.label.sample_plan import _threshold_of
from pages.shell.bar.at_hand import EVERYTHING, TOGETHER, offered_labels, usual_labels
from pages.thresholds.policy_controls import NUMBERS, changed
from pages.thresholds.tune_setting import FIRST, Setting
from pages.traces.trace_filter import read


def test_samples_are_taken_together_only_where_two_have_labels() -> None:
    assert offered_labels(["b", "a"], ["b", "a"], census=False) == ["b", "a", TOGETHER]
    assert offered_labels(["b", "a"], ["b"], census=False) == ["b", "a"]
    assert offered_labels(["b", "a"], [], census=False) == ["b", "a", EVERYTHING]
    assert offered_labels(["b", "a"], ["b", "a"], census=True) == ["b", "a", EVERYTHING]


def test_the_newest_sample_with_labels_is_meant_unless_chosen() -> None:
    assert usual_labels(["b", "a"]) == "b"
    assert usual_labels([]) == EVERYTHING
    assert usual_labels(["b", "a"], telling=False) == TOGETHER


def test_a_detector_that_scores_little_is_not_offered_first() -> None:
    assert gain(0.8, 0.9) > gain(1.0, 0.1) > gain(0.5, 1.0) == gain(None, 1.0) == gain(0.9, None) == 0.0
    assert gain(0.3, 1.0) < 0


def test_a_pool_is_drawn_by_label_and_by_every_facet_that_says_something() -> None:
    pool = PoolView(5, 0, {"model": {"a": 3, NONE: 2}, "operation": {NONE: 5}}, {"clean": 1, "unlabelled": 4}, {})
    assert shares_of(pool) == {"By label": {"clean": 1, "unlabelled": 4}, "By model": {"a": 3, NONE: 2}}


def test_a_window_holds_both_its_days_whole() -> None:
    first, last = date(2026, 11, 7), date(2026, 11, 20)
    midnight = datetime(2026, 11, 7, tzinfo=UTC)
    assert last_days(last) == TraceFilter(since=midnight, undated=False)
    whole = TraceFilter(since=midnight, until=datetime(2026, 11, 21, tzinfo=UTC), undated=False)
    assert between((first, last)) == whole
    assert between((first,)) == TraceFilter(since=midnight, undated=False), "open while only one day is picked"
    assert between(None) == TraceFilter(undated=False)


def filled(**values: Any) -> TraceFilter:
    empty: dict[str, Any] = {"text": "", "models": [], "operations": [], "label": None, "attribute": "",
                             "since": None, "until": None}  # fmt: skip
    return read({**empty, **values})


def test_the_filter_means_what_its_widgets_say() -> None:
    assert filled() == TraceFilter()
    window = filled(since=date(2026, 11, 7), until=date(2026, 11, 7))
    assert (window.since, window.until) == (datetime(2026, 11, 7, tzinfo=UTC), datetime(2026, 11, 8, tzinfo=UTC))
    assert not window.undated
    assert not filled(until=date(2026, 11, 7)).undated
    assert filled(attribute=" prompt = v=2 ").attributes == {"prompt": "v=2"}
    assert filled(attribute="prompt").attributes == filled(attribute="=x").attributes == {}
    assert filled(attribute="prompt=").attributes == {"prompt": ""}
    assert (filled(text="  ").text, filled(text=" a ").text) == (None, "a")
    assert filled(models=["m"], operations=["o"], label="clean") == TraceFilter(
        models=("m",), operations=("o",), label="clean"
    )


SETTING = Setting((1, None), Policy("cost", 1.0, 20.0), "bounded", False, 0.4)


def test_a_number_on_the_page_is_of_the_policy_that_it_stands_beside() -> None:
    dearer = changed(SETTING, "cost", "bounded", {"value": 2.0})
    assert (dearer.rule, dearer.by_hand) == (Policy("cost", 2.0, 20.0), False)
    other = changed(SETTING, "recall", "measured", {"value": 2.0})
    assert (other.rule, other.strength) == (FIRST["recall"], "measured")


def test_by_hand_keeps_the_rule_and_the_threshold() -> None:
    by_hand = changed(SETTING, "manual", "measured", {})
    assert by_hand.by_hand
    assert (by_hand.rule, by_hand.threshold, by_hand.policy) == (SETTING.rule, 0.4, Policy("manual", 0.4))
    assert not changed(by_hand, "cost", "bounded", {}).by_hand


def test_only_a_precision_is_more_than_measured() -> None:
    assert SETTING.strength_in_force == "measured"
    assert changed(SETTING, "precision", "certified", {}).strength_in_force == "certified"


def test_targets_are_typed_in_percent_and_costs_as_they_are() -> None:
    assert NUMBERS["precision"][0].shown(Policy("precision", 0.7)) == 70.0
    assert [number.shown(Policy("cost", 1.5, 20.0)) for number in NUMBERS["cost"]] == [1.5, 20.0]


PLAN = Plan({}, {"random": 0.12, "octave": 0.08}, 0.05, "rouge_l", None)


def test_a_plan_says_what_it_is_for_and_what_it_stands_on() -> None:
    """A rate that labels tell is not assumed."""
    start = "for a threshold of ROUGE-L that flags 5% of the window, "
    assert _threshold_of(PLAN) == f"{start}the share assumed hallucinated."
    told = Plan(PLAN.labels, PLAN.halfwidth, 0.05, "rouge_l", "w46")
    assert _threshold_of(told) == f"{start}by the labels of w46."


def test_a_width_is_said_in_points_and_never_too_small() -> None:
    assert precision_known(0.09) == "then precision is known to about ±9 points"
    assert precision_known(0.091) == "then precision is known to about ±10 points"


def ensemble_controls() -> None:
    import os

    import streamlit as st

    from db import open_store
    from pages.thresholds.ensemble_report import choose

    names = ["bleu", "rouge_l", "token_overlap"]
    st.session_state["choice"] = choose(open_store(os.environ["STORE_AT_HAND"]), names)


def test_the_controls_of_an_ensemble_ask_for_shares_of_the_traffic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_AT_HAND", f"sqlite:///{tmp_path / 'store.db'}")
    open_store(os.environ["STORE_AT_HAND"]).close()
    page = AppTest.from_function(ensemble_controls, default_timeout=30).run()
    assert not page.exception
    first = page.session_state["choice"]
    assert (first.names, first.kind, first.budget) == ((), "logistic", 0.05)
    page.multiselect[0].set_value(["bleu", "rouge_l"]).run()
    assert page.session_state["choice"].names == ("bleu", "rouge_l")
    page.session_state["ensemble_kind"] = "cascade"
    page.run()
    page.selectbox[0].set_value("bleu")
    page.number_input[1].set_value(40).run()
    cascade = page.session_state["choice"]
    assert (cascade.kind, cascade.expensive, cascade.pass_share) == ("cascade", "bleu", 0.4)
    page.session_state["ensemble_kind"] = "k_of_n"
    page.run()
    assert page.session_state["choice"].k == 2
    assert page.number_input[1].max == 2, "no more can be asked for than there are"
    assert not page.toggle, "no threshold is saved that they could flag at"
