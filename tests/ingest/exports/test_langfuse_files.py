"""Traces that Langfuse publishes, against expectations written by hand from reading each file."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected
from calibrate.ingest.exports.files import langfuse_rows
from calibrate.ingest.exports.langfuse import build_trace
from calibrate.ingest.files import InputFile
from calibrate.ingest.formats import format_of, read
from calibrate.ingest.spans.answers import answers_of
from calibrate.ingest.spans.reader import Reader
from calibrate.types import Record

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data" / "otel" / "langfuse"
EXPECTED = {
    path.stem: json.loads(path.read_text())
    for path in sorted((Path(__file__).parents[1] / "spans" / "expected" / "langfuse").glob("*.json"))
}

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the shared data is not at {FOLDER}"),
]


def shape(text: str) -> dict[str, Any]:
    return {"begins": text[:60], "length": len(text)}


def export(name: str) -> Path:
    return FOLDER / f"{name}.trace.json"


def test_every_file_has_its_expectations():
    assert {path.name.removesuffix(".trace.json") for path in FOLDER.glob("*.json")} == set(EXPECTED)


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if expected["answers"]])
def test_a_file_gives_the_answers_that_a_reader_finds_in_it(name):
    expected = EXPECTED[name]
    records = list(read(export(name)))
    assert not [record for record in records if isinstance(record, Rejected)]
    found = [
        {
            "observation": record.trace.id.removeprefix(f"{expected['trace']}-"),
            "question": shape(record.trace.question or ""),
            "answer": shape(record.trace.answer),
            "model": record.trace.model,
            "time": record.trace.timestamp,
            "sources": [shape(source.text) for source in record.trace.sources],
        }
        for record in records
        if isinstance(record, Record)
    ]
    wanted = [
        {**{key: value for key, value in answer.items() if key != "tool_results"},
         "time": datetime.fromisoformat(answer["time"])}
        for answer in expected["answers"]
    ]  # fmt: skip
    assert found == wanted


def test_a_file_without_an_answer_is_refused_with_the_reason():
    with pytest.raises(BadInput, match=r"1 trace of Langfuse without an answer: 2 generations in it only call tools"):
        list(read(export("vercel-aisdk-2025-11-17")))


@pytest.mark.parametrize("name", EXPECTED)
def test_tool_results_become_sources_on_request(name):
    document = json.loads(export(name).read_text())
    spans = build_trace(document["trace"], document["observations"]).spans
    found = [
        [shape(source.text) for source in answer.trace.sources]
        for answer in answers_of(spans, Reader(tool_results=True))
    ]
    assert found == [answer["tool_results"] for answer in EXPECTED[name]["answers"]]


@pytest.mark.parametrize("name", EXPECTED)
def test_scores_go_to_the_answer_that_they_are_about(name):
    if not EXPECTED[name]["answers"]:
        return
    with InputFile(export(name)) as file:
        rows = list(langfuse_rows(file))
    trace = EXPECTED[name]["trace"]
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        for detector, stated in row.fields.get("scores", {}).items():
            observation = row.fields["trace_id"].removeprefix(f"{trace}-")
            found.setdefault(detector.removeprefix("langfuse."), {})[observation] = stated["value"]
    assert found == EXPECTED[name].get("scores", {})


@pytest.mark.parametrize("form", ["list", "lines", "observations"])
def test_the_same_traces_in_another_form_give_the_same_answers(form, tmp_path):
    documents = [json.loads(export(name).read_text()) for name in EXPECTED]
    path = tmp_path / ("export.jsonl" if form != "list" else "export.json")
    if form == "observations":  # a trace's rows apart from each other, and no trace
        rows = [row for document in documents for row in document["observations"]]
        rows.sort(key=lambda row: row["id"])
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        path.write_text(json.dumps(documents) if form == "list" else "\n".join(map(json.dumps, documents)))
    with InputFile(path) as file:
        assert format_of(file, "auto").name == "langfuse"
    records = [record for record in read(path) if isinstance(record, Record)]
    answers = {(expected["trace"], answer["observation"]): answer["answer"]
               for expected in EXPECTED.values() for answer in expected["answers"]}  # fmt: skip
    assert {tuple(record.trace.id.split("-")): shape(record.trace.answer) for record in records} == answers
