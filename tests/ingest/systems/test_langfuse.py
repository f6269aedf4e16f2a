"""`pull langfuse` and its way back, with Langfuse's real client against a server that answers as its models say."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langfuse_api import LangfuseApi
from served import Server, serving

from calibrate.cli import main
from calibrate.errors import BadInput, TouchstoneError, Unavailable
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.formats import read
from calibrate.ingest.labels.base import Parsed
from calibrate.ingest.record import build
from calibrate.ingest.systems import langfuse, open_annotator, open_source, patience, slices
from calibrate.ingest.systems.base import Note, NoteScore, Page, PullRequest
from calibrate.types import Record
from db import open_store

NOW = datetime(2026, 3, 5, tzinfo=UTC)
SINCE = datetime(2026, 3, 1, tzinfo=UTC)
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "otel" / "langfuse"


@pytest.fixture
def api() -> LangfuseApi:
    return LangfuseApi()


@pytest.fixture
def server(api: LangfuseApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", api.keys[0])
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", api.keys[1])
    with serving(api) as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def request_of(server: Server, waits: list[float]) -> PullRequest:
    return PullRequest(url=server.url, now=lambda: NOW, wait=waits.append)


def at(minutes: float) -> str:
    return (SINCE + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def trace_id(n: int) -> str:
    return f"{n:032x}"


def observation(n: int, number: int, kind: str, begins: float, ends: float | None, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"{n:012x}{number:04x}",
        "traceId": trace_id(n),
        "projectId": "p1",
        "type": kind,
        "name": kind.lower(),
        "startTime": at(begins),
        "endTime": None if ends is None else at(ends),
        "environment": "default",
        "parentObservationId": None if number == 0 else f"{n:012x}0000",
        "metadata": {},
        **fields,
    }


def rag(n: int, begins: float, *, lasts: float = 0.5) -> list[dict[str, Any]]:
    """A root, a retriever and a generation."""
    return [
        observation(
            n,
            0,
            "SPAN",
            begins,
            begins + lasts,
            input=json.dumps({"question": f"Where is {n}?"}),
            isRootObservation=True,
        ),
        observation(
            n,
            1,
            "RETRIEVER",
            begins + lasts / 4,
            begins + lasts / 3,
            input=f"Where is {n}?",
            output=json.dumps([{"page_content": f"{n} is in Paris.", "metadata": {}}]),
        ),
        observation(
            n,
            2,
            "GENERATION",
            begins + lasts / 2,
            begins + lasts / 1.1,
            model="m",
            input=json.dumps([{"role": "user", "content": f"{n} is in Paris. Where is {n}?"}]),
            output=f"In Paris, {n}.",
        ),
    ]


def score(
    number: int,
    n: int,
    name: str,
    value: Any,
    *,
    kind: str = "NUMERIC",
    source: str = "EVAL",
    minute: float = 60,
    **fields: Any,
) -> dict[str, Any]:
    return {
        "id": f"s{number}",
        "projectId": "p1",
        "name": name,
        "value": value,
        "dataType": kind,
        "source": source,
        "timestamp": at(minute),
        "createdAt": at(minute),
        "updatedAt": at(minute),
        "environment": "default",
        "subject": {"kind": "trace", "id": trace_id(n)},
        **fields,
    }


def answer(n: int) -> str:
    return f"{trace_id(n)}-{n:012x}0002"


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


def left_out(pages: list[Page]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for page in pages:
        for what, number in page.left_out.items():
            counts[what] = counts.get(what, 0) + number
    return counts


def test_all_pages_are_read_and_joined(api, request_of, server, monkeypatch):
    monkeypatch.setattr(langfuse, "PAGE", 7)
    for n in range(1, 25):
        api.observations += rag(n, begins=n * 60 - 59.9)
    pages = list(open_source("langfuse", request_of).fetch(SINCE, None))
    assert sorted(ids(pages)) == [answer(n) for n in range(1, 25)]
    row = next(
        row for page in pages for row in page.rows if isinstance(row, Row) and row.fields["trace_id"] == answer(9)
    )
    record = build(row, format_name="langfuse")
    assert isinstance(record, Record)
    trace = record.trace
    assert (trace.question, trace.answer, trace.model) == ("Where is 9?", "In Paris, 9.", "m")
    assert [source.text for source in trace.sources] == ["9 is in Paris."]
    # Whole slices, not one request for each trace.
    assert not any(asked.first("traceId") for asked in server.paths("/observations"))


def test_a_trace_beyond_its_slice_is_whole(api, request_of):
    api.observations += rag(1, begins=59.5, lasts=90)  # its generation begins in the second hour
    api.observations += rag(2, begins=60.0)
    for row in rag(3, begins=30, lasts=60)[1:]:  # its root is in another process
        api.observations.append({**row, "parentObservationId": "feedfeedfeedfeed"})
    pages = list(open_source("langfuse", request_of).fetch(SINCE, None))
    assert sorted(ids(pages)) == [answer(1), answer(2), answer(3)]
    assert all(row.fields["sources"] for page in pages for row in page.rows if isinstance(row, Row))


def test_a_trace_that_is_still_running_comes_with_the_next_pull(api, request_of):
    minutes = (NOW - SINCE).total_seconds() / 60
    running = rag(1, begins=minutes - 3, lasts=2)
    api.observations += running[1:2]
    source = open_source("langfuse", request_of)
    pages = list(source.fetch(SINCE, None))
    assert ids(pages) == []
    assert left_out(pages) == {"traces that are still running": 1}
    api.observations[:] = running
    later = replace(request_of, now=lambda: NOW + timedelta(minutes=30))
    assert ids(list(open_source("langfuse", later).fetch(SINCE, pages[-1].cursor))) == [answer(1)]


def test_a_full_slice_is_halved(api, request_of, monkeypatch):
    monkeypatch.setattr(slices, "MOST", 20)
    for n in range(1, 41):
        api.observations += rag(n, begins=10 + n * 0.8, lasts=0.4)
    pages = list(open_source("langfuse", request_of).fetch(SINCE, None))
    assert sorted(ids(pages)) == [answer(n) for n in range(1, 41)]
    assert max(len(page.rows) for page in pages) < 10


def test_an_interrupted_pull_goes_on_and_a_further_one_adds_nothing(api, request_of):
    for n in range(1, 11):
        api.observations += rag(n, begins=n * 100)
        api.scores.append(score(n, n, "correctness", n / 100, minute=n * 100 + 1))
    whole = list(open_source("langfuse", request_of).fetch(SINCE, None))
    assert sorted(ids(whole)) == [answer(n) for n in range(1, 11)]
    assert len(scores(whole)) == 10
    for stop in (1, 3, len(whole) - 1):
        before = [
            page for page, _ in zip(open_source("langfuse", request_of).fetch(SINCE, None), range(stop), strict=False)
        ]
        cursor = json.loads(json.dumps(before[-1].cursor))
        pages = before + list(open_source("langfuse", request_of).fetch(SINCE, cursor))
        assert sorted(ids(pages)) == sorted(ids(whole))
        assert scores(pages) == scores(whole)
    later = replace(request_of, now=lambda: NOW + timedelta(hours=2), overlap=timedelta(days=30))
    again = list(open_source("langfuse", later).fetch(SINCE, whole[-1].cursor))
    assert sorted(ids(again)) == sorted(ids(whole))  # the same answers, which a store has already


def test_a_busy_server_is_asked_again_when_it_says(api, request_of, server, waits):
    api.observations += rag(1, begins=5)
    server.faults += [
        ("/observations", 429, {"Retry-After": "7"}, {"message": "slow down"}),
        ("/observations", 503, {}, "<html>busy</html>"),
        ("/v3/scores", 429, {"Retry-After": "3"}, {"message": "slow down"}),
    ]
    assert ids(list(open_source("langfuse", request_of).fetch(SINCE, None))) == [answer(1)]
    assert waits == [7.0, 2.0, 3.0]


def test_a_server_that_stays_busy_ends_the_pull_with_a_sentence(request_of, server, waits):
    source = open_source("langfuse", request_of)
    server.faults += [("/observations", 429, {"Retry-After": "1"}, {})] * 50
    with pytest.raises(TouchstoneError, match=r"Langfuse at http://127\.0\.0\.1:\d+ did not answer in 6 attempts"):
        list(source.fetch(SINCE, None))
    assert len(waits) == 5


@pytest.mark.parametrize("body", ["<html>login</html>", {"data": [{"id": 1}]}, {"message": "fine"}])
def test_an_answer_that_is_none_of_langfuse_is_refused_with_a_sentence(body, request_of, server):
    source = open_source("langfuse", request_of)
    server.faults += [("/observations", 200, {}, body)]
    with pytest.raises(TouchstoneError, match="Langfuse at http"):
        list(source.fetch(SINCE, None))


def test_keys_are_missing_wrong_or_of_another_project(api, request_of, monkeypatch):
    with pytest.raises(BadInput, match="a Langfuse key belongs to one project"):
        open_source("langfuse", replace(request_of, project="zoo"))
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-wrong")
    with pytest.raises(BadInput, match=r"401.*check its key") as refused:
        open_source("langfuse", request_of)
    assert "sk-lf-wrong" not in str(refused.value)
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    with pytest.raises(BadInput, match="needs LANGFUSE_SECRET_KEY in the environment"):
        open_source("langfuse", request_of)
    monkeypatch.setitem(sys.modules, "langfuse", None)
    with pytest.raises(Unavailable, match="pip install langfuse"):
        open_source("langfuse", request_of)


def test_settings_hold_no_secret(api, request_of):
    source = open_source("langfuse", request_of)
    assert source.name.startswith("langfuse museum at 127.0.0.1")
    assert not any(key in json.dumps(source.settings) for key in api.keys)


def test_scores_and_annotations_go_to_the_answers_they_are_about(api, request_of):
    api.observations += rag(1, begins=5) + rag(2, begins=9)
    on_generation = {"kind": "observation", "id": f"{2:012x}0002", "traceId": trace_id(2)}
    on_root = {"kind": "observation", "id": f"{2:012x}0000", "traceId": trace_id(2)}
    on_retriever = {"kind": "observation", "id": f"{2:012x}0001", "traceId": trace_id(2)}
    person = {"source": "ANNOTATION", "authorUserId": "ann"}
    api.scores += [
        score(1, 1, "correctness", 0.25, comment="vague"),
        score(2, 2, "correctness", 0.5, subject=on_generation, source="API"),
        score(3, 2, "is grounded", True, kind="BOOLEAN", subject=on_root),
        score(4, 1, "hallucination", "hallucinated", kind="CATEGORICAL", comment="The Prado?", **person),
        score(5, 2, "hallucination", False, kind="BOOLEAN", subject=on_generation, **person),
        score(6, 2, "quality", "bad", kind="CATEGORICAL", **person),
        score(7, 2, "quality", 4, **person),
        score(8, 2, "tone", "rude", kind="CATEGORICAL"),
        score(9, 1, "touchstone.nli", 0.9, source="API"),
        score(10, 2, "correctness", 0.1, subject=on_retriever),
        score(11, 1, "csat", 5, subject={"kind": "session", "id": "s"}),
        score(12, 77, "correctness", 0.3),
    ]
    pages = list(open_source("langfuse", request_of).fetch(SINCE, None))
    assert scores(pages) == {
        ("langfuse.correctness", answer(1), 0.25),
        ("langfuse.correctness", answer(2), 0.5),
        ("langfuse.is_grounded", answer(2), 1.0),
    }
    assert sorted(labels(pages)) == [
        (answer(1), "ann", "hallucinated", "The Prado?"),
        (answer(2), "ann", "clean", None),
    ]
    assert left_out(pages) == {
        "annotations 'quality' without a verdict": 2,
        "scores 'tone' without a number": 1,
        "scores by Touchstone": 1,
        "remarks on something without an answer": 2,
        "scores of sessions and experiments": 1,
    }
    rules = replace(request_of, options={"verdicts": ["quality:bad=hallucinated", "quality:4=clean"]})
    source = open_source("langfuse", rules)
    assert {
        (name, verdict) for name, _, verdict, _ in labels(list(source.fetch(SINCE, None))) if name == answer(2)
    } == {(answer(2), "hallucinated"), (answer(2), "clean")}
    assert source.settings["verdicts"] == ["quality:bad=hallucinated", "quality:4=clean"]
    with pytest.raises(BadInput, match="write NAME:VALUE=VERDICT"):
        open_source("langfuse", replace(request_of, options={"verdicts": ["quality=bad"]}))


def test_a_broken_observation_rejects_its_trace_alone(api, request_of):
    broken = rag(1, begins=5)
    api.observations += [{**broken[2], "id": ""}, *broken[:2], *rag(2, begins=6)]
    pages = list(open_source("langfuse", request_of).fetch(SINCE, None))
    assert ids(pages) == [answer(2)]
    assert [row.reason for page in pages for row in page.rows if isinstance(row, Rejected)] == [
        f"trace {trace_id(1)}: id: missing"
    ]


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared data is not at {SHARED}")
def test_what_is_pulled_is_what_the_file_has(api, request_of):
    """Langfuse's published traces, once as the file and once through the API."""
    files: dict[str, Record] = {}
    for path in SHARED.glob("*.json"):
        api.add_export(json.loads(path.read_text()))
        if "vercel" not in path.name:
            files |= {record.trace.id: record for record in read(path) if isinstance(record, Record)}
    api.observations = list({row["id"]: row for row in api.observations}.values())  # one trace is published twice
    pages = list(
        open_source("langfuse", replace(request_of, now=lambda: datetime(2026, 4, 1, tzinfo=UTC))).fetch(None, None)
    )
    pulled = [build(row, format_name="langfuse") for page in pages for row in page.rows if isinstance(row, Row)]
    assert {record.trace.id: record.trace.content_hash() for record in pulled if isinstance(record, Record)} == {
        name: record.trace.content_hash() for name, record in files.items()
    }
    assert {name for name, _, _ in scores(pages)} == {
        "langfuse.correctness",
        "langfuse.hallucination",
        "langfuse.toxicity",
    }


NOTE = Note(
    key="k1",
    trace_id=trace_id(7),
    span_id=f"{7:016x}",
    version=3,
    verdict="flagged",
    tier="page",
    scores={
        "nli": NoteScore(0.9, 0.75, True, "claim 2"),
        "rouge_l": NoteScore(0.5, None, False),
        "schema": NoteScore(None, 0.5, False),
    },
    reasons=("nli above its threshold",),
)


def test_notes_are_written_once_whatever_is_tried_again(api, server, monkeypatch):
    monkeypatch.setenv("LANGFUSE_HOST", server.url)
    annotator = open_annotator("langfuse")
    assert annotator.annotate([NOTE]) == {}
    first = dict(api.written)
    by_name = {score["name"]: score for score in first.values()}
    assert set(by_name) == {"touchstone.nli", "touchstone.rouge_l", "touchstone.verdict"}
    nli = by_name["touchstone.nli"]
    assert (nli["value"], nli["dataType"], nli["traceId"], nli["observationId"]) == (
        0.9,
        "NUMERIC",
        trace_id(7),
        f"{7:016x}",
    )
    assert nli["metadata"] == {"release": 3, "verdict": "flagged", "tier": "page", "threshold": 0.75, "flagged": True}
    assert "release 3" in nli["comment"]
    assert "claim 2" in nli["comment"]
    assert (by_name["touchstone.verdict"]["value"], by_name["touchstone.verdict"]["dataType"]) == (
        "flagged",
        "CATEGORICAL",
    )
    assert open_annotator("langfuse").annotate([NOTE]) == {}
    assert api.written.keys() == first.keys()
    assert annotator.annotate([replace(NOTE, key="k2")]) == {}
    assert len(api.written) == 6


def test_notes_on_traces_of_older_sdks_name_them_by_uuid(api, server, monkeypatch):
    monkeypatch.setenv("LANGFUSE_HOST", server.url)
    trace, span = "6f1b1a527d0b4b7e9f0e0c6c8d1e4a35", "1f0e7a52000040008000000000000001"
    open_annotator("langfuse").annotate(
        [replace(NOTE, trace_id=trace, span_id=span), replace(NOTE, key="k2", trace_id=trace, span_id=trace)]
    )
    assert {(score["traceId"], score.get("observationId")) for score in api.written.values()} == {
        ("6f1b1a52-7d0b-4b7e-9f0e-0c6c8d1e4a35", "1f0e7a52-0000-4000-8000-000000000001"),
        ("6f1b1a52-7d0b-4b7e-9f0e-0c6c8d1e4a35", None),
    }


def test_a_note_that_is_refused_does_not_hold_up_the_others(api, server, monkeypatch):
    monkeypatch.setenv("LANGFUSE_HOST", server.url)
    refused = replace(NOTE, key="bad", scores={"nli": NoteScore(-1.0, 0.5, False)})
    unfit = open_annotator("langfuse").annotate([refused, NOTE])
    assert unfit == {"bad": "Langfuse refuses 1 of its scores: value out of range"}
    assert "touchstone.nli" in {score["name"] for score in api.written.values()}


def test_a_server_that_is_away_keeps_the_notes_for_another_time(api, server, monkeypatch):
    monkeypatch.setenv("LANGFUSE_HOST", server.url)
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.0)
    server.faults += [("/scores", 503, {}, {})] * 6
    annotator = open_annotator("langfuse")
    with pytest.raises(TouchstoneError, match="did not answer in 6 attempts"):
        annotator.annotate([NOTE])
    assert annotator.annotate([NOTE]) == {}
    assert len(api.written) == 3


def test_a_pull_fills_a_store_once(api, server, tmp_path, monkeypatch, capsys):
    """The verb itself: answers, a person's labels, and on the second time nothing."""
    minutes = (datetime.now(UTC) - SINCE).total_seconds() / 60 - 600
    api.observations += rag(1, begins=minutes) + rag(2, begins=minutes + 5)
    person = {"source": "ANNOTATION", "authorUserId": "ann", "minute": minutes + 9, "kind": "CATEGORICAL"}
    api.scores += [score(1, 1, "hallucination", "clean", **person), score(2, 2, "quality", "bad", **person)]
    command = ["pull", "langfuse", "--url", server.url, "--verdict", "quality:bad=hallucinated", "--json"]
    command += ["--store", f"sqlite:///{tmp_path}/store.db"]
    documents = []
    for _ in range(2):
        assert main(command) == 0
        documents.append(json.loads(capsys.readouterr().out))
    first, second = documents
    assert (first["imported"], first["labels"], first["rejected"], first["errors"]) == (2, 2, 0, [])
    assert (second["imported"], second["labels"], second["changed"], second["rejected"]) == (0, 0, 0, 0)
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    assert {(label.trace_id, label.labeller, label.verdict) for label in store.labels.export(None)} == {
        (answer(1), "ann", "clean"),
        (answer(2), "ann", "hallucinated"),
    }
