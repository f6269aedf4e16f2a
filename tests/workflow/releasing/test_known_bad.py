"""Nothing that is known to be bad goes out without a reason, and the reason goes with it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.tuning import point_state
from calibrate.runtime import load
from calibrate.stats.choosing.policy import parse
from calibrate.thresholds.model import ThresholdsFile, from_json, to_json
from calibrate.thresholds.states import states_in
from calibrate.types import Label, Record, StateReason, Trace
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import approval, history, known_bad
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.releasing.entries import points_of
from calibrate.workflow.tuning import operating_points
from db import Store, open_store
from db.points import SavedPoint
from db.releases import ReleaseRequest
from tests.workflow.making import DETECTOR, NOW, fill, save


def scored(hits: int, alarms: int, *, rest: int = 60) -> tuple[list[bool], list[float | None]]:
    """Labels of which the threshold 0.3 flags `hits` hallucinated and `alarms` clean ones; the rest score higher."""
    labels = [True] * hits + [False] * alarms + [place % 4 == 0 for place in range(rest)]
    flagged = [0.1 + place / 1000 for place in range(hits + alarms)]
    return labels, [*flagged, *(0.5 + place / 1000 for place in range(rest))]


def put(store: Store, policy: str) -> SavedPoint:
    """Save a point as an older store had it: nobody asked what is known against it."""
    data = loading.load_evidence(store, DETECTOR)
    point = operating_points.choose_point(data, parse(policy))
    saved = operating_points.saved_point(store, data, point, by="ann", now=NOW)
    store.points.save(replace(saved, data=replace(saved.data, state=None)))
    return store.points.latest()[DETECTOR]


def release(store: Store, **given: str) -> ThresholdsFile:
    return history.read_release(releasing.release(store, ReleaseRequest(by="ann", **given), now=NOW))  # type: ignore[arg-type]


@pytest.mark.both_databases
def test_a_threshold_on_three_flags_is_not_saved_or_released_without_a_reason(store: Store) -> None:
    fill(store, *scored(3, 0))
    data = loading.load_evidence(store, DETECTOR)
    point = operating_points.choose_point(data, parse("manual:0.3"))
    with pytest.raises(BadInput, match=f"^{DETECTOR}: what is known of it says do not release this"):
        operating_points.save_point(store, data, point, by="ann", now=NOW)
    assert store.points.latest() == {}
    put(store, "manual:0.3")
    with pytest.raises(BadInput, match=r"^token_overlap is known to be bad \(few flagged: 3 of 3 flagged labels"):
        release(store)
    assert store.releases.list() == []
    entry = release(store, reason="a pilot of a week").detectors[DETECTOR]
    assert entry.extra["x-state"]["verdict"] == "do not release"
    assert (entry.extra["x-state"]["why"], entry.extra["x-state"]["reason"]) == ("few flagged", "a pilot of a week")


def test_a_reason_saved_with_the_point_lets_it_out_and_goes_into_the_file(store: Store) -> None:
    fill(store, *scored(3, 0))
    save(store, "manual:0.3", reason="a pilot")
    file = release(store)
    (judged,) = states_in(file)
    assert (judged.name, judged.state.why, judged.reason) == (DETECTOR, StateReason.FEW_FLAGGED, "a pilot")
    assert from_json(to_json(file)) == file
    assert list(points_of(store, file, until=NOW)) == [DETECTOR]  # its state does not make it another point


def test_a_threshold_nudged_away_from_its_target_stays_known_to_be_bad(store: Store) -> None:
    """No threshold reaches 95%. The nearest, taken by hand, is no better for that: saved, it is judged as when it was
    set, and a release takes it only with the reason."""
    fill(store, *scored(14, 6))
    data = loading.load_evidence(store, DETECTOR)
    by_hand = operating_points.choose_point(data, parse("manual:0.3"))
    state = known_bad.state_of_choice(store, data, by_hand, moved_from="precision>=0.95")
    assert (state.why, state.target) == (StateReason.BELOW_TARGET, 0.95)
    with pytest.raises(BadInput, match="says do not release this"):
        operating_points.save_point(store, data, by_hand, state=state, by="ann", now=NOW)
    operating_points.save_point(store, data, by_hand, state=state, reason="a pilot", by="ann", now=NOW)
    assert known_bad.state_of_saved(store, store.points.latest()[DETECTOR]) == state
    assert [judged.reason for judged in states_in(release(store))] == ["a pilot"]


def test_a_reason_is_for_what_was_known_then(store: Store) -> None:
    """Saved on three flags; then labels change and it finds nothing at all: that takes a reason of its own."""
    fill(store, *scored(3, 0))
    save(store, "manual:0.3", reason="a pilot")
    for place in range(3):
        pk = store.traces.find(f"t{place}")
        assert pk is not None
        store.labels.add(pk, Label("", "lead", "clean", adjudicates=True), sample_id=None, now=NOW)
    state = known_bad.state_of_saved(store, store.points.latest()[DETECTOR])
    assert (state.why, state.hits, state.flagged) == (StateReason.FINDS_NOTHING, 0, 3)
    with pytest.raises(BadInput, match="is known to be bad"):
        release(store)


def test_labels_that_change_turn_a_threshold_that_held(store: Store) -> None:
    fill(store, *scored(30, 2))
    save(store, "precision>=0.8", reason="")
    assert not known_bad.state_of_saved(store, store.points.latest()[DETECTOR]).known_bad
    for place in range(12):
        pk = store.traces.find(f"t{place}")
        assert pk is not None
        store.labels.add(pk, Label("", "lead", "clean", adjudicates=True), sample_id=None, now=NOW)
    saved = store.points.latest()[DETECTOR]
    state = known_bad.state_of_saved(store, saved)
    assert (state.why, state.target) == (StateReason.BELOW_TARGET, 0.8)
    assert state.hits / state.flagged < 0.8


def test_labels_of_every_trace_do_not_speak_for_traffic_that_came_after(store: Store) -> None:
    fill(store, *scored(30, 2))
    save(store, "precision>=0.8", reason="")
    more = [Record(place, Trace(f"new{place}", answer=f"new answer {place}"), ()) for place in range(1, 201)]
    store.traces.add(more, labels_as=None, now=NOW)
    state = known_bad.state_of_saved(store, store.points.latest()[DETECTOR])
    assert (state.why, state.unlabelled, state.traces) == (StateReason.UNSTATED, 200, 292)
    assert "200 of 292 have none now, and nobody has said how" in point_state.sentence(state)
    with pytest.raises(BadInput, match="200 of 292 have none now"):
        release(store)
    assert states_in(release(store, reason="a pilot"))[0].state == state


def test_in_tier_off_nothing_flags_and_nothing_needs_a_reason(store: Store) -> None:
    fill(store, *scored(3, 0))
    put(store, "manual:0.3")
    request = ReleaseRequest(by="ann", tiers={DETECTOR: "off"})
    assert releasing.release(store, request, now=NOW).version == 1


def test_a_release_that_waits_for_a_second_person_is_held_too(store: Store) -> None:
    fill(store, *scored(3, 0))
    put(store, "manual:0.3")
    with pytest.raises(BadInput, match="is known to be bad"):
        approval.propose(store, ReleaseRequest(by="ann"), now=NOW)
    proposal = approval.propose(store, ReleaseRequest(by="ann", reason="a pilot"), now=NOW)
    row = approval.approve(store, proposal.id, by="bob", now=NOW)
    (judged,) = states_in(history.read_release(row))
    assert judged.reason == "a pilot"


def test_a_foreign_state_in_a_file_is_passed_over(store: Store) -> None:
    fill(store, *scored(30, 2))
    save(store, "manual:0.3", reason="")
    file = release(store)
    for foreign in ("mine", {}, {"verdict": "green"}, [1], None, {"verdict": "holds", "why": "x"}):
        entry = replace(file.detectors[DETECTOR], extra={"x-state": foreign})
        assert states_in(replace(file, detectors={DETECTOR: entry})) == ()


def test_the_command_line_asks_for_the_reason_and_prints_it(
    sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(sqlite_url)
    fill(store, *scored(3, 0))
    out = tmp_path / "t.json"
    choose = ["choose", DETECTOR, "--policy", "manual:0.3", "--save", "--store", sqlite_url]
    assert main(choose) == 2
    printed = capsys.readouterr().out
    assert "Do not release this: only 3 labels are flagged, 3 of them hallucinated" in printed
    assert "not saved: to save it all the same, say why with --reason TEXT" in printed
    assert store.points.latest() == {}
    assert main([*choose, "--reason", "  "]) == 2
    capsys.readouterr()
    assert main([*choose, "--reason", "a pilot", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["saved"], document["state"]) == (True, "do not release")
    assert main(["release", "--out", str(out), "--store", sqlite_url]) == 0
    assert "Released all the same: a pilot" in capsys.readouterr().out
    assert load(out).detectors[DETECTOR].extra["x-state"]["reason"] == "a pilot"
