"""Labels that people gave in Langfuse and LangSmith, in files."""

from __future__ import annotations

import json

import langsmith_runs as runs
import pytest

from calibrate.ingest.base import Rejected
from calibrate.ingest.labels import LeftOut, parse_labels
from calibrate.ingest.labels.base import Parsed

TRACE, GENERATION = "0a" * 16, "a3" * 8
PERSON = {"source": "ANNOTATION", "authorUserId": "ann", "updatedAt": "2026-03-01T13:00:00Z"}
EXPORT = {
    "trace": {
        "id": TRACE,
        "scores": [
            {
                "id": "1",
                "name": "hallucination",
                "dataType": "CATEGORICAL",
                "stringValue": "hallucinated",
                "value": 1,
                "comment": "No.",
                **PERSON,
            },
            {
                "id": "2",
                "name": "verdict",
                "dataType": "CATEGORICAL",
                "stringValue": "Clean",
                "value": 0,
                **PERSON,
                "authorUserId": "bob",
            },
            {"id": "3", "name": "stars", "dataType": "NUMERIC", "value": 4, **PERSON},
            {"id": "4", "name": "correctness", "dataType": "NUMERIC", "value": 0.5, "source": "EVAL"},
        ],
    },
    "observations": [
        {
            "id": GENERATION,
            "traceId": TRACE,
            "type": "GENERATION",
            "startTime": "2026-03-01T12:00:00Z",
            "input": "Where?",
            "output": "In Paris.",
        }
    ],
}
FEEDBACK = [
    {
        "id": "1",
        "key": "hallucination",
        "run_id": runs.run_id(1, 3),
        "trace_id": runs.run_id(1, 0),
        "score": 0,
        "value": "clean",
        "modified_at": "2026-03-01T13:00:00",
        "feedback_source": {"type": "app", "user_name": "Ann"},
    },
    {
        "id": "2",
        "key": "correctness",
        "run_id": runs.run_id(1, 3),
        "trace_id": runs.run_id(1, 0),
        "score": 0.5,
        "feedback_source": {"type": "api"},
    },
]


def read(path):
    read = list(parse_labels(path))
    assert not [each for each in read if isinstance(each, Rejected)]
    labels = [
        (each.trace_ids[0], each.label.labeller, each.label.verdict, each.label.note)
        for each in read
        if isinstance(each, Parsed)
    ]
    return labels, [each.what for each in read if isinstance(each, LeftOut)]


@pytest.mark.parametrize("indent", [None, 2])
def test_annotations_of_langfuse_are_labels_of_who_gave_them(indent, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(EXPORT, indent=indent))
    answer = f"{TRACE}-{GENERATION}"
    assert read(path) == (
        [(answer, "ann", "hallucinated", "No."), (answer, "bob", "clean", None)],
        ["scores langfuse.correctness", "annotations 'stars' without a verdict"],
    )


@pytest.mark.parametrize("form", ["list", "lines"])
def test_feedback_of_langsmith_is_a_label_where_a_person_gave_it(form, tmp_path):
    path = tmp_path / "feedback.jsonl"
    path.write_text(json.dumps(FEEDBACK) if form == "list" else "\n".join(map(json.dumps, FEEDBACK)))
    assert read(path) == ([(runs.answer_id(1, 3), "Ann", "clean", None)], ["scores langsmith.correctness"])


def test_a_broken_score_rejects_its_trace_with_its_line(tmp_path):
    path = tmp_path / "traces.jsonl"
    broken = {**EXPORT, "trace": {**EXPORT["trace"], "scores": [{"value": 1}]}}
    path.write_text("\n".join(map(json.dumps, [broken, EXPORT])))
    [rejected, *others] = list(parse_labels(path))
    assert isinstance(rejected, Rejected)
    assert (rejected.line, rejected.reason) == (1, "score name: missing")
    assert sum(isinstance(each, Parsed) for each in others) == 2
