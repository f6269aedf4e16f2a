"""Thresholds per segment through the store: chosen, saved, released and decided by."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibrate import runtime
from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.names import title_of
from calibrate.report.sentences.tuning import scoreboard as scoreboard_words
from calibrate.report.sentences.tuning import segments as sentences
from calibrate.stats.choosing.policy import parse
from calibrate.types import Label, Record, Trace
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import Basis
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.releasing import entries, known_bad
from calibrate.workflow.tuning import segments
from calibrate.workflow.tuning.scoreboard import scoreboard
from db import Store
from tests.workflow.making import ABOVE, NOW, give_scores, keep_sample

POLICY = parse("precision>=0.7")


def fill(store: Store, shift: dict[str, float], n: int = 200) -> Evidence:
    """Labelled answers of several operations, whose scores are shifted against each other."""
    rng = np.random.default_rng(3)
    records, scores = [], []
    for operation, apart in shift.items():
        for _ in range(n):
            bad = bool(rng.random() < 0.3)
            key = len(records)
            trace = Trace(f"t{key}", answer=f"a {key}", operation=operation, attributes={"tier": key % 2 == 0})
            records.append(Record(key + 1, trace, (Label(trace.id, "", "hallucinated" if bad else "clean"),)))
            scores.append(float(np.round(rng.normal(apart + 1.6 * bad, 1), 3)))
    store.traces.add(records, labels_as="gold", now=NOW)
    give_scores(store, [record.trace for record in records], scores, name=ABOVE)
    return loading.load_evidence(store, ABOVE, basis=Basis(None))


def test_shifted_operations_are_offered_and_released(store: Store, tmp_path: Path) -> None:
    data = fill(store, {"chat": 0.0, "summary": 2.0, "search": 4.0})
    segmented = segments.segment_labels(store, data, POLICY, by="operation")
    assert segmented.offered
    own = {row.segment: row.own or 0.0 for row in segmented.rows}
    assert own["chat"] < own["summary"] < own["search"]
    segments.save(store, data, segmented, reason="a test's labels", by="ann", now=NOW)
    saved = store.points.latest()[ABOVE]
    assert saved.data.segments == segmented.segments
    assert saved.point.threshold == segmented.point.threshold
    entry = entries.entry_of(store, saved, "signal", None)
    assert entry.segments == segmented.segments
    assert entry.threshold_in("search") == own["search"]
    assert entry.threshold_in("other") == segmented.point.threshold
    board = scoreboard(store)
    sentences_on_it = [line for line in scoreboard_words.sentences(board) if "common threshold" in line]
    assert sentences_on_it == [
        f"{title_of(ABOVE)} was saved with 3 thresholds by operation: its figures here are at the common threshold."
    ]


def test_the_figures_are_of_all_traffic_by_the_thresholds_of_the_segments(store: Store) -> None:
    data = fill(store, {"chat": 0.0, "search": 3.0})
    segmented = segments.segment_labels(store, data, POLICY, by="operation")
    point = segmented.own_point
    assert point is not None
    assert segmented.gain is not None
    assert point.recall.value == pytest.approx(segmented.gain.own, abs=1e-9)
    assert (point.precision.value or 0) >= 0.7
    hits = sum(round(row.positives * (row.own_recall.value or 0)) for row in segmented.rows if row.own_recall)
    assert hits == point.true_positives


def test_like_segments_are_not_saved(store: Store) -> None:
    data = fill(store, {"chat": 0.0, "search": 0.0})
    segmented = segments.segment_labels(store, data, POLICY, by="operation")
    assert segmented.verdict == segments.SegmentVerdict.NO_GAIN
    with pytest.raises(BadInput, match="not shown to gain"):
        segments.save(store, data, segmented, by="ann", now=NOW)
    assert store.points.latest() == {}


def test_the_verb_that_saved_nothing_fails_and_names_the_command_for_one_threshold(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(store, {"chat": 0.0, "search": 0.0})
    assert main(["segments", ABOVE, "--by", "operation", "--policy", "most", "--store", store.url]) == 2
    assert "alerts" not in capsys.readouterr().err  # as the help, it names those with thresholds per segment
    keep_sample(store, ["all"] * 400, {"all": 400}, name="week 1")
    given = ["--policy", "recall>=0.5", "--sample", "week 1"]
    assert main(["segments", ABOVE, "--by", "operation", *given, "--save", "--store", store.url]) == 1
    assert f"`choose {ABOVE} --policy 'recall>=0.5' --sample 'week 1' --save`" in capsys.readouterr().out
    assert store.points.latest() == {}


def test_a_saved_point_without_segments_has_none(store: Store) -> None:
    data = fill(store, {"chat": 0.0, "search": 3.0})
    segmented = segments.segment_labels(store, data, POLICY, by="operation")
    segments.save(store, data, segmented, reason="a test's labels", by="ann", now=NOW)
    document = store.points.latest()[ABOVE].data.to_json()
    assert document["segments"]["by"] == "operation"
    assert "segments" not in replace(store.points.latest()[ABOVE].data, segments=None).to_json()


def test_what_is_known_of_them_counts_each_trace_at_its_own_threshold(store: Store) -> None:
    data = fill(store, {"chat": 0.0, "search": 4.0})
    segmented = segments.segment_labels(store, data, POLICY, by="operation")
    own = {row.segment: row.own or 0.0 for row in segmented.rows}
    between = (own["chat"] + own["search"]) / 2  # flagged in chat alone; one threshold flags all eight or none
    chat, search = data.rows[0], data.rows[-1]
    disputed = tuple(replace(row, gold="disputed", value=between) for row in [chat] * 3 + [search] * 5)
    state = known_bad.state_of_segments(store, replace(data, undecided=disputed), segmented)
    assert state is not None
    assert state.disputed == 3


def test_attributes_and_few_labels(store: Store) -> None:
    data = fill(store, {"chat": 0.0, "search": 3.0}, n=50)
    by_tier = segments.segment_labels(store, data, POLICY, by="attributes.tier")
    assert [row.segment for row in by_tier.rows] == ["false", "true"]
    assert segments.segment_labels(store, data, POLICY, by="tier").by == "attributes.tier"  # as `weekly --by` takes it
    with pytest.raises(
        BadInput, match=r"has 'language'; traces can be told apart by operation, attributes\.tier: name"
    ):
        segments.segment_labels(store, data, POLICY, by="language")
    with pytest.raises(BadInput, match=r"by 'mood': name one of operation, model, attributes\.tier"):
        segments.segment_labels(store, data, POLICY, by="mood")
    few = replace(data, rows=data.rows[:60])
    small = segments.segment_labels(store, few, POLICY, by="operation")
    assert small.verdict == segments.SegmentVerdict.FEW
    assert [row.enough for row in small.rows] == [True, False]


def test_one_operation_is_no_segment(store: Store) -> None:
    segmented = segments.segment_labels(store, fill(store, {"chat": 0.0}), POLICY, by="operation")
    assert sentences.verdict(segmented) == "All labels are of one segment by operation, chat: one threshold serves it"


def test_the_verb_saves_and_a_runtime_decides(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, {"chat": 0.0, "search": 4.0})
    at = ["--store", store.url, "--json"]
    assert main(["segments", ABOVE, "--by", "operation", "--save", "--reason", "a test's labels", *at]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["saved"]
    assert document["verdict"] == "offered"
    out = tmp_path / "thresholds.json"
    assert main(["release", "--out", str(out), "--reason", "a test", *at]) == 0
    capsys.readouterr()
    file = runtime.load(out)
    own = {row["segment"]: row["own"] for row in document["segments"]}
    between = (own["chat"] + own["search"]) / 2
    for operation, flagged in (("chat", True), ("search", False)):
        decision = runtime.decide(file, {ABOVE: between}, segments={"operation": operation})
        assert (decision.verdict != "ACCEPT") == flagged
