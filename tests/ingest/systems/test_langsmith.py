"""`pull langsmith` and its way back, with LangSmith's real client against a server that answers its requests."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import langsmith_runs as runs
import pytest
from langsmith_api import LangSmithApi
from served import Server, serving

from calibrate.errors import BadInput, TouchstoneError, Unavailable
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.formats import read
from calibrate.ingest.labels.base import Parsed
from calibrate.ingest.record import build
from calibrate.ingest.systems import langsmith, open_annotator, open_source, slices
from calibrate.ingest.systems.base import Note, NoteScore, Page, PullRequest
from calibrate.types import Record

NOW = datetime(2026, 3, 5, tzinfo=UTC)
SINCE = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def api() -> LangSmithApi:
    return LangSmithApi(runs.PROJECT, runs=list(runs.ALL))


@pytest.fixture
def server(api: LangSmithApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in (
        "LANGSMITH_ENDPOINT",
        "LANGCHAIN_ENDPOINT",
        "LANGCHAIN_API_KEY",
        "LANGSMITH_PROJECT",
        "LANGCHAIN_PROJECT",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANGSMITH_API_KEY", api.key)
    with serving(api) as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def request_of(server: Server, waits: list[float]) -> PullRequest:
    return PullRequest(project="museum", url=server.url, now=lambda: NOW, wait=waits.append)


def ids(pages: list[Page]) -> list[str]:
    return [row.fields["trace_id"] for page in pages for row in page.rows if isinstance(row, Row)]


def scores(pages: list[Page]) -> set[tuple[str, str, float]]:
    return {
        (name, each.trace_id, each.value) for page in pages for name, listed in page.scores.items() for each in listed
    }


def labels(pages: list[Page]) -> list[tuple[str, str, str, str | None]]:
    return [
        (each.label.trace_id, each.label.labeller, each.label.verdict, each.label.note)
        for page in pages
        for each in page.labels
        if isinstance(each, Parsed)
    ]


def feedback(trace: int, number: int, key: str, *, source: str = "api", **fields: Any) -> dict[str, Any]:
    given = "2026-03-04T01:00:00.000001+00:00"
    identity = uuid.uuid5(uuid.NAMESPACE_OID, repr((trace, number, key, source, sorted(fields.items()))))
    return {
        "id": str(identity),
        "created_at": given,
        "modified_at": given,
        "run_id": runs.run_id(trace, number),
        "trace_id": runs.run_id(trace, 0),
        "key": key,
        "score": None,
        "value": None,
        "comment": None,
        "feedback_source": {"type": source, "user_name": "Ann" if source == "app" else None},
        **fields,
    }


ANSWERS = [runs.answer_id(1, 3), runs.answer_id(2, 5), runs.answer_id(3, 0)]


def test_what_is_pulled_is_what_the_file_has(request_of, tmp_path):
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(runs.ALL))
    file = {record.trace.id: record.trace for record in read(path) if isinstance(record, Record)}
    pages = list(open_source("langsmith", request_of).fetch(SINCE, None))
    pulled = [build(row, format_name="langsmith") for page in pages for row in page.rows if isinstance(row, Row)]
    assert {record.trace.id: record.trace for record in pulled if isinstance(record, Record)} == file
    assert sorted(file) == sorted(ANSWERS)


def test_an_interrupted_pull_goes_on_and_a_further_one_adds_nothing(request_of):
    whole = list(open_source("langsmith", request_of).fetch(SINCE, None))
    for stop in (1, 4, len(whole) - 1):
        before = [
            page for page, _ in zip(open_source("langsmith", request_of).fetch(SINCE, None), range(stop), strict=False)
        ]
        cursor = json.loads(json.dumps(before[-1].cursor))
        assert sorted(ids(before + list(open_source("langsmith", request_of).fetch(SINCE, cursor)))) == sorted(ANSWERS)
    later = replace(request_of, now=lambda: NOW + timedelta(hours=2), overlap=timedelta(days=30))
    assert sorted(ids(list(open_source("langsmith", later).fetch(SINCE, whole[-1].cursor)))) == sorted(ANSWERS)


def test_a_full_slice_is_halved(api, request_of, server, monkeypatch):
    monkeypatch.setattr(slices, "MOST", 6)
    slow = replace(request_of, now=lambda: datetime(2026, 3, 3, 13, tzinfo=UTC))
    pages = list(open_source("langsmith", slow).fetch(datetime(2026, 3, 1, tzinfo=UTC), None))
    assert sorted(ids(pages)) == sorted(ANSWERS)


def test_a_run_that_goes_on_comes_with_the_next_pull(api, request_of):
    running = {run["id"]: {**run, "end_time": None} if run["parent_run_id"] is None else run for run in runs.RAG}
    api.runs[:] = running.values()
    early = replace(request_of, now=lambda: datetime(2026, 3, 1, 12, 5, tzinfo=UTC))
    pages = list(open_source("langsmith", early).fetch(SINCE, None))
    assert ids(pages) == []
    assert sum(page.left_out.get("traces that are still running", 0) for page in pages) == 1
    api.runs[:] = runs.RAG
    assert ids(list(open_source("langsmith", request_of).fetch(SINCE, pages[-1].cursor))) == [runs.answer_id(1, 3)]


def test_a_busy_server_is_asked_again_within_the_listing(request_of, server):
    source = open_source("langsmith", request_of)
    server.faults += [("/runs/query", 429, {"Retry-After": "1"}, {"detail": "slow down"})]
    began = datetime.now(UTC)
    assert sorted(ids(list(source.fetch(SINCE, None)))) == sorted(ANSWERS)
    assert datetime.now(UTC) - began >= timedelta(seconds=1)


def test_a_server_that_stays_busy_ends_the_pull_with_a_sentence(request_of, server, waits, monkeypatch):
    monkeypatch.setattr(langsmith, "BACKOFF", 0.01)
    source = open_source("langsmith", request_of)
    server.faults += [("/runs/query", 429, {"Retry-After": "0"}, {"detail": "slow down"})] * 100
    with pytest.raises(
        TouchstoneError, match=r"LangSmith at http://127\.0\.0\.1:\d+ did not answer in 2 attempts.*429"
    ):
        list(source.fetch(SINCE, None))
    assert len(server.paths("/runs/query")) == 12
    assert len(waits) == 1


def test_the_key_is_missing_or_wrong_and_the_project_unknown(request_of, monkeypatch):
    with pytest.raises(BadInput, match="has no project 'zoo'; name one with --project"):
        open_source("langsmith", replace(request_of, project="zoo"))
    monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2_wrong")
    with pytest.raises(BadInput, match=r"401.*check its key") as refused:
        open_source("langsmith", request_of)
    assert "lsv2_wrong" not in str(refused.value)
    monkeypatch.delenv("LANGSMITH_API_KEY")
    with pytest.raises(BadInput, match="needs LANGSMITH_API_KEY in the environment"):
        open_source("langsmith", request_of)
    monkeypatch.setitem(sys.modules, "langsmith", None)
    with pytest.raises(Unavailable, match="pip install langsmith"):
        open_source("langsmith", request_of)


def test_feedback_of_programs_becomes_scores_and_that_of_people_labels(api, request_of):
    api.feedback += [
        feedback(1, 0, "correctness", score=0.25, comment="vague"),  # on the root: the answer below it
        feedback(2, 5, "correctness", score=0.5, source="model"),
        feedback(2, 3, "correctness", score=0.1),  # on a tool
        feedback(1, 3, "hallucination", value="hallucinated", score=1, comment="The Prado?", source="app"),
        feedback(2, 0, "quality", value="good", score=1, source="app"),
        feedback(3, 0, "touchstone.nli", score=0.9),
        feedback(3, 0, "thumbs", value="up"),
    ]
    rules = replace(request_of, options={"verdicts": ["quality:good=clean"]})
    pages = list(open_source("langsmith", rules).fetch(SINCE, None))
    assert scores(pages) == {
        ("langsmith.correctness", runs.answer_id(1, 3), 0.25),
        ("langsmith.correctness", runs.answer_id(2, 5), 0.5),
    }
    assert sorted(labels(pages)) == [
        (runs.answer_id(1, 3), "Ann", "hallucinated", "The Prado?"),
        (runs.answer_id(2, 5), "Ann", "clean", None),
    ]
    counted = {what: number for page in pages for what, number in page.left_out.items()}
    assert counted == {
        "remarks on something without an answer": 1,
        "scores by Touchstone": 1,
        "scores 'thumbs' without a number": 1,
    }
    assert len(labels(list(open_source("langsmith", request_of).fetch(SINCE, None)))) == 1


def test_late_feedback_finds_an_answer_that_was_pulled_before(api, request_of):
    first = list(open_source("langsmith", request_of).fetch(SINCE, None))
    late = {"created_at": "2026-03-06T00:00:00+00:00", "modified_at": "2026-03-06T00:00:00+00:00"}
    api.feedback.append({**feedback(1, 0, "correctness", score=0.25), **late})
    later = replace(request_of, now=lambda: datetime(2026, 3, 8, tzinfo=UTC))
    pages = list(open_source("langsmith", later).fetch(SINCE, first[-1].cursor))
    assert ids(pages) == []
    assert scores(pages) == {("langsmith.correctness", runs.answer_id(1, 3), 0.25)}


def test_a_broken_run_rejects_its_trace_alone(api, request_of):
    api.runs = [{**run, "dotted_order": "", "inputs": {}} for run in runs.RAG] + runs.PLAIN
    api.runs[3] = {**api.runs[3], "name": "x", "outputs": {"generations": [[{"text": 3, "message": {"kwargs": [1]}}]]}}
    pages = list(open_source("langsmith", request_of).fetch(SINCE, None))
    assert not [row for page in pages for row in page.rows if isinstance(row, Rejected)]
    assert runs.answer_id(3, 0) in ids(pages)


NOTE = Note(
    key="k1",
    trace_id=runs.run_id(1, 0).replace("-", ""),
    span_id=runs.run_id(1, 3).replace("-", ""),
    version=3,
    verdict="flagged",
    tier="page",
    scores={"nli": NoteScore(0.9, 0.75, True, "claim 2"), "schema": NoteScore(None, 0.5, False)},
    reasons=("nli above its threshold",),
)


def test_notes_are_written_once_whatever_is_tried_again(api, server, monkeypatch):
    monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)
    absent = replace(NOTE, key="k2", span_id="0" * 32)
    foreign = replace(NOTE, key="k3", span_id="0" * 16)
    for _ in range(2):
        unfit = open_annotator("langsmith").annotate([NOTE, absent, foreign])
        assert unfit == {"k2": "LangSmith has no such run", "k3": "its id is none of a LangSmith run"}
    by_key = {each["key"]: each for each in api.written.values()}
    assert set(by_key) == {"touchstone.nli", "touchstone.verdict"}
    assert len(api.written) == 2
    nli = by_key["touchstone.nli"]
    assert (nli["score"], nli["run_id"], nli["session_id"]) == (0.9, runs.run_id(1, 3), runs.PROJECT)
    assert nli["feedback_source"]["metadata"] == {
        "release": 3,
        "verdict": "flagged",
        "tier": "page",
        "threshold": 0.75,
        "flagged": True,
    }
    assert "release 3" in nli["comment"]
    assert "claim 2" in nli["comment"]
    assert by_key["touchstone.verdict"]["value"] == "flagged"
    assert "score" not in by_key["touchstone.verdict"]
