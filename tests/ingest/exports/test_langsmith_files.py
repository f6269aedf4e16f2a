from __future__ import annotations

import gzip
import json
import random
from datetime import UTC, datetime

import langsmith_runs as runs
import pytest

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected
from calibrate.ingest.files import InputFile
from calibrate.ingest.formats import format_of, read
from calibrate.types import Record, Source

FORMS = ("list", "lines", "runs", "children", "gzip")


def write(folder, form, rows):
    path = folder / ("export.json" if form in ("list", "runs", "children") else "export.jsonl")
    if form == "children":  # as Client.read_run(load_child_runs=True) gives them
        by_id = {row["id"]: {**row, "child_runs": []} for row in rows}
        for row in by_id.values():
            if row["parent_run_id"]:
                del row["trace_id"], row["dotted_order"]
                by_id[row["parent_run_id"]]["child_runs"].append(row)
        path.write_text(json.dumps([row for row in by_id.values() if not row["parent_run_id"]], indent=2))
    elif form in ("list", "runs"):
        path.write_text(
            json.dumps(
                rows if form == "list" else {"runs": rows, "cursors": {"next": None}}, indent=form == "list" or None
            )
        )
    else:
        lines = "\n".join(map(json.dumps, rows)).encode()
        path = path.with_suffix(".jsonl.gz") if form == "gzip" else path
        path.write_bytes(gzip.compress(lines) if form == "gzip" else lines)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_runs_become_answers_with_what_they_were_made_from(form, tmp_path):
    shuffled = random.Random(7).sample(runs.ALL, len(runs.ALL))
    path = write(tmp_path, form, shuffled)
    with InputFile(path) as file:
        assert format_of(file, "auto").name == "langsmith"
    records = list(read(path))
    assert not [record for record in records if isinstance(record, Rejected)]
    traces = {record.trace.id: record.trace for record in records if isinstance(record, Record)}
    assert set(traces) == {runs.answer_id(1, 3), runs.answer_id(2, 5), runs.answer_id(3, 0)}

    rag = traces[runs.answer_id(1, 3)]
    assert (rag.question, rag.answer, rag.model) == ("Where is the Louvre?", "In Paris", "gpt-4o-mini-2024-07-18")
    assert rag.timestamp == datetime(2026, 3, 1, 12, 0, 3, 1, tzinfo=UTC)
    assert rag.sources == (
        Source("1", "The Louvre is in Paris.", "louvre.md", 0.75),
        Source("2", "The Prado is in Madrid.", "prado.md"),
    )
    assert [(token.text, token.logprob) for token in rag.tokens or ()] == [("In", -0.25), (" Paris", -0.5)]
    assert rag.attributes["session.id"] == "t-9"
    assert rag.attributes["user.id"] == "u-3"
    assert rag.attributes["langsmith.tags"] == "prod, eu"
    assert rag.attributes["langsmith.run.name"] == "ChatOpenAI"

    agent = traces[runs.answer_id(2, 5)]
    assert (agent.question, agent.answer, agent.model) == ("Is the Louvre open?", "Until six.", "gpt-4o-2024-08-06")
    assert agent.sources == ()

    plain = traces[runs.answer_id(3, 0)]
    assert (plain.question, plain.answer, plain.model) == ("Who painted it?", "Leonardo.", None)
    assert [source.text for source in plain.sources] == ["Leonardo painted it."]


def test_a_file_without_an_answer_is_refused_with_the_reason(tmp_path):
    with pytest.raises(
        BadInput, match="1 trace of LangSmith without an answer: 1 calls of a model in it only call tools"
    ):
        list(read(write(tmp_path, "list", runs.NO_TEXT)))


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"start_time": "yesterday"}, "expected a time"),
        ({"id": None}, "id: missing"),
        ({"trace_id": None, "dotted_order": None}, "trace_id: missing"),
        ({"run_type": None}, "run_type: missing"),
    ],
)
def test_a_broken_run_rejects_its_trace_and_leaves_the_others(broken, reason, tmp_path):
    rows = [*runs.RAG, {**runs.AGENT[3], **broken}]
    records = list(read(write(tmp_path, "lines", rows), format="langsmith"))
    assert [reason in record.reason for record in records if isinstance(record, Rejected)] == [True]
    assert [record.trace.id for record in records if isinstance(record, Record)] == [runs.answer_id(1, 3)]


def test_columns_are_refused(tmp_path):
    with pytest.raises(BadInput, match="leave the columns out"):
        list(read(write(tmp_path, "lines", runs.RAG), columns={"answer": "outputs"}))
