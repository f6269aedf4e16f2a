"""What the threshold chart gets from Python, and what it takes from the browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from calibrate.stats.choosing.policy import Policy
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.evidence import MOST_STEPS, Evidence
from calibrate.workflow.tuning.operating_points import choose_point
from calibrate.workflow.tuning.point_state import chance_of, count_disputed, judge_point
from calibrate.workflow.tuning.states_along import points_along, states_along
from db import Store, open_store
from pages.components.threshold_chart.arrays import arrays, beside
from pages.components.threshold_chart.chart import SCRIPTS, joined, threshold_of
from pages.thresholds.detector_rail.rail import overlaid_in
from tests.workflow.making import ABOVE, DETECTOR, draw, fill, give_scores


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    yield opened
    opened.close()


@pytest.fixture(params=[DETECTOR, ABOVE])
def data(store: Store, request: pytest.FixtureRequest) -> Evidence:
    fill(store, *draw(120), name=request.param)
    return loading.load_evidence(store, request.param)


def test_every_step_has_the_figures_of_the_point_set_by_hand_there(data: Evidence) -> None:
    along = list(points_along(data))
    assert [point.threshold for point in along] == data.sweep.thresholds.tolist()
    for point in along:
        assert point == choose_point(data, Policy("manual", point.threshold))


def test_every_step_has_the_state_of_the_point_set_by_hand_there(data: Evidence) -> None:
    asked = "precision>=0.7"
    chance = chance_of(data, choose_point(data, Policy("precision", 0.7)))
    states = states_along(data, chance=chance, moved_from=asked)
    for point, state in zip(points_along(data), states, strict=True):
        assert state == judge_point(point, chance=chance, disputed=count_disputed(data, point), moved_from=asked)
    assert len({state.verdict for state in states}) == (
        2 if data.config.name == DETECTOR else 1
    )  # the other one ranks the wrong way round


def test_bars_stand_for_what_the_sweep_sums(data: Evidence) -> None:
    weights, sweep = data.score_weights, data.sweep
    assert weights.hallucinated.sum() == pytest.approx(sweep.tp[-1])
    assert weights.clean.sum() == pytest.approx(sweep.fp[-1])
    strict = weights.edges[20]
    flagged = sweep.thresholds >= strict if data.flag_when == "above" else sweep.thresholds < strict
    side = slice(20, None) if data.flag_when == "above" else slice(None, 20)
    assert weights.hallucinated[side].sum() == pytest.approx(np.diff(sweep.tp, prepend=0.0)[flagged].sum())


def test_what_is_sent_is_plain_json_with_a_text_for_every_step(data: Evidence) -> None:
    states = states_along(data, chance=None, moved_from=None)
    sent = arrays(data, points_along(data), states, per_day=None, title="T", unit="share", span=(0.0, 1.0))
    again = json.loads(json.dumps(sent, allow_nan=False))
    steps = len(data.sweep)
    assert steps <= MOST_STEPS
    assert {len(again[name]) for name in ("thresholds", "texts", "figures", "verdicts", "whys")} == {steps}
    assert {len(values) for values in again["values"].values()} == {steps}
    few = [place for place, (large, _) in enumerate(figure[0] for figure in again["figures"]) if "–" in large]
    flagged = np.array(data.sweep.tp_count) + np.array(data.sweep.fp_count)
    assert few == np.flatnonzero(flagged < 30).tolist()


@pytest.mark.parametrize(
    "told",
    [None, 3, {}, {"name": "other", "threshold": 1.0, "turn": 1}, {"name": "mine", "turn": 1},
     {"name": "mine", "threshold": "x", "turn": 1}, {"name": "mine", "threshold": float("nan"), "turn": 1},
     {"name": "mine", "threshold": "inf", "turn": 1}, {"name": "mine", "threshold": 1.0}],
)  # fmt: skip
def test_what_the_browser_tells_of_another_chart_or_no_number_is_passed_over(told: object) -> None:
    assert threshold_of(told, "mine") is None


def test_what_the_browser_tells_of_this_chart_is_taken() -> None:
    assert threshold_of({"name": "mine", "threshold": 0.1 + 0.2, "turn": 1}, "mine") == 0.1 + 0.2


def test_beside_are_the_figures_at_no_more_flags(store: Store) -> None:
    """Held against a search through every threshold of the other detector."""
    fill(store, *draw(120))
    traces = store.traces.load([row.pk for row in loading.load_evidence(store, DETECTOR).rows])
    give_scores(store, traces, draw(120, seed=9)[1], name="rouge_l")
    data, other = (loading.load_evidence(store, name) for name in (DETECTOR, "rouge_l"))
    shown = beside(data, other, title="ROUGE-L", colour="#000")
    most = max(other.sweep.flag_rate)
    for step, rate in enumerate(data.steps.sweep.flag_rate):
        able = [place for place, one in enumerate(other.sweep.flag_rate) if one <= rate + 1e-9]
        if not able or rate > most + 1e-9:
            assert (shown.precision[step], shown.recall[step]) == (None, None)
            continue
        assert shown.precision[step] == pytest.approx(other.sweep.precision[able[-1]], abs=1e-6)
        assert shown.recall[step] == pytest.approx(other.sweep.recall[able[-1]], abs=1e-6)
    assert any(value is not None for value in shown.recall)


@pytest.mark.parametrize(
    ("text", "names"),
    [(None, []), ("", []), ("b", ["b"]), ("b,b,a", ["b"]), ("b,c,<b>,d,e", ["b", "c", "d"]), (",,", [])],
)
def test_an_address_overlays_what_has_scores_once_each(text: str | None, names: list[str]) -> None:
    assert overlaid_in(text, ["a", "b", "c", "d", "e"], "a") == names


def test_scripts_are_joined_into_one_module() -> None:
    script = joined(*SCRIPTS)
    assert script.count("export") == script.count("export default") == 1
    assert "\nimport " not in script
