"""The sample traces go into an empty store, moved to these weeks, and into no other."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from calibrate.errors import BadInput, Unavailable
from calibrate.types import TraceFilter
from calibrate.workflow.traces import demo
from db import Store

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
LOGGED = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)


@pytest.mark.both_databases
def test_times_move_by_whole_days_up_to_now(store: Store, tmp_path: Path) -> None:
    ages = [timedelta(0), timedelta(hours=5), timedelta(days=20, hours=3)]
    path = tmp_path / "traces.jsonl"
    traces = [{"trace_id": f"t{n}", "answer": f"{n}", "timestamp": (LOGGED - age).isoformat(), "label": "clean"}
              for n, age in enumerate(ages)]  # fmt: skip
    path.write_text("\n".join(json.dumps(trace) for trace in [*traces, {"trace_id": "undated", "answer": "u"}]))
    report = demo.fill(store, NOW, path=path)
    assert (report.imported, report.labels, report.rejected) == (4, 3, 0)
    assert store.labels.labellers() == ["demo"]
    times = {line.id: line.timestamp for line in store.traces.page(TraceFilter()).lines}
    newest = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
    assert times == {"undated": None, **{f"t{n}": newest - age for n, age in enumerate(ages)}}


@pytest.mark.both_databases
def test_a_store_with_traces_is_left_alone(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps({"trace_id": "mine", "answer": "an answer"}))
    demo.fill(store, NOW, path=path)
    with pytest.raises(BadInput, match="empty store"):
        demo.fill(store, NOW, path=path)
    assert store.traces.count(TraceFilter()) == 1


def test_a_missing_file_is_told(store: Store, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="missing"):
        demo.fill(store, NOW, path=tmp_path / "none.jsonl")


@pytest.mark.both_databases
def test_the_shipped_traces_fill_three_weeks(store: Store) -> None:
    report = demo.fill(store, NOW)
    summary = store.traces.summary()
    assert report.rejected == 0
    assert report.imported == summary.traces >= 100
    assert summary.last is not None
    assert NOW - timedelta(days=1) < summary.last <= NOW
    assert summary.first is not None
    assert timedelta(days=14) < summary.last - summary.first < timedelta(days=28)
    assert len(summary.models) == 2
    assert 0.5 < report.labels / report.imported < 0.8
