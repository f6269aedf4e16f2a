"""What people said in another system comes with its exported traces, as labels of theirs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibrate.workflow.traces.import_labelled import import_traces
from db import Store
from tests.workflow.making import NOW

GENERATION = {
    "id": "o1",
    "traceId": "t1",
    "type": "GENERATION",
    "startTime": "2026-11-01T10:00:00.000Z",
    "input": [{"role": "user", "content": "How long is the warranty?"}],
    "output": {"role": "assistant", "content": "Two years."},
}


def annotation(name: str, value: str, author: str) -> dict[str, Any]:
    said = {"dataType": "CATEGORICAL", "stringValue": value, "source": "ANNOTATION", "authorUserId": author}
    return {"id": f"s-{author}", "name": name, "timestamp": "2026-11-02T10:00:00Z", **said}


def export(path: Path, *scores: dict[str, Any]) -> Path:
    trace = {"id": "t1", "timestamp": "2026-11-01T10:00:00Z", "scores": list(scores)}
    path.write_text(json.dumps({"trace": trace, "observations": [GENERATION]}))
    return path


def test_annotations_of_an_export_become_labels_of_their_authors(store: Store, tmp_path: Path) -> None:
    said = (annotation("hallucination", "hallucinated", "mara"), annotation("verdict", "clean", "ben"))
    path = export(tmp_path / "export.json", *said)
    done = import_traces(store, path, labels_as="someone", now=NOW)
    assert (done.report.imported, done.report.labels, done.profile.filled["label"]) == (1, 2, 1)
    assert done.membership.outside == 1  # of how its trace was chosen nothing is known
    labels = list(store.labels.export())
    assert {label.labeller: label.verdict for label in labels} == {"mara": "hallucinated", "ben": "clean"}
    assert {label.created_at for label in labels} == {datetime(2026, 11, 2, 10, tzinfo=UTC)}
    assert import_traces(store, path, now=NOW).report.labels == 0  # twice adds nothing


def test_annotations_stay_out_with_the_other_labels(store: Store, tmp_path: Path) -> None:
    path = export(tmp_path / "export.json", annotation("hallucination", "clean", "mara"))
    report = import_traces(store, path, keep_labels=False, now=NOW).report
    assert (report.labels, report.labels_left_out) == (0, 1)
    assert store.labels.count() == 0


def test_what_is_no_verdict_is_named(store: Store, tmp_path: Path) -> None:
    path = export(tmp_path / "export.json", annotation("tone", "friendly", "mara"))
    report = import_traces(store, path, now=NOW).report
    assert (report.labels, dict(report.left_out)) == (0, {"annotations 'tone' without a verdict": 1})


@pytest.mark.parametrize(("value", "verdict"), [(True, "hallucinated"), (False, "clean")])
def test_assessments_of_people_in_mlflow_become_labels(store: Store, tmp_path: Path, value: bool, verdict: str) -> None:
    assessment = {
        "assessment_id": "a1",
        "assessment_name": "hallucination",
        "source": {"source_type": "HUMAN", "source_id": "ann"},
        "feedback": {"value": value},
        "valid": True,
    }
    span = {
        "trace_id": "qI7UByd/gP85BIuw/787Rg==",
        "span_id": "+DswWoD2xok=",
        "parent_span_id": None,
        "name": "llm",
        "start_time_unix_nano": 1795456572394593000,
        "end_time_unix_nano": 1795456572394600000,
        "attributes": {
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.spanInputs": '{"messages": [{"role": "user", "content": "When?"}]}',
            "mlflow.spanOutputs": '{"choices": [{"message": {"role": "assistant", "content": "At noon."}}]}',
        },
    }
    info = {"trace_id": "tr-1", "state": "OK", "trace_metadata": {}, "assessments": [assessment]}
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps({"info": info, "data": {"spans": [span]}}))
    assert import_traces(store, path, now=NOW).report.labels == 1
    (label,) = store.labels.export()
    assert (label.labeller, label.verdict) == ("ann", verdict)
