"""Whatever is wrong in an export: no traceback, no half-read trace, and the good traces beside it are read."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import langsmith_runs as runs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected
from calibrate.ingest.formats import read
from calibrate.types import Record

OBSERVATIONS = [
    {
        "id": "a1" * 8,
        "traceId": "0a" * 16,
        "type": "SPAN",
        "name": "rag",
        "startTime": "2026-03-01T12:00:00.000Z",
        "endTime": "2026-03-01T12:00:05Z",
        "parentObservationId": None,
        "input": '{"question": "Where?"}',
        "output": "In Paris.",
        "metadata": '{"attributes": {"service.version": "3"}, "scope": {"name": "langfuse-sdk"}}',
    },
    {
        "id": "a2" * 8,
        "traceId": "0a" * 16,
        "type": "RETRIEVER",
        "name": "search",
        "startTime": "2026-03-01T12:00:01Z",
        "parentObservationId": "a1" * 8,
        "input": "Where?",
        "output": '[{"page_content": "It is in Paris.", "metadata": {"score": 0.5}}]',
    },
    {
        "id": "a3" * 8,
        "traceId": "0a" * 16,
        "type": "GENERATION",
        "name": "chat",
        "startTime": "2026-03-01T12:00:02Z",
        "model": "m",
        "parentObservationId": "a1" * 8,
        "input": '[{"role": "user", "content": "Where?"}]',
        "output": '{"role": "assistant", "content": "In Paris."}',
    },
]
DOCUMENT = {
    "trace": {
        "id": "0a" * 16,
        "input": '"Where?"',
        "tags": ["x"],
        "scores": [{"id": "s", "name": "quality", "value": 0.5, "source": "EVAL", "dataType": "NUMERIC"}],
    },
    "observations": OBSERVATIONS,
}
GOOD = {
    "trace": {"id": "0b" * 16},
    "observations": [{**OBSERVATIONS[2], "id": "b3" * 8, "traceId": "0b" * 16, "parentObservationId": None}],
}

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800\x00"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def places(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, key))


def spoil(data: st.DataObject, value: object) -> object:
    """Replace or remove up to three values, however deep."""
    spoiled = copy.deepcopy(value)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(spoiled))[1:]))
        holder = spoiled
        for key in path[:-1]:
            holder = holder[key]  # type: ignore[index]
        if data.draw(st.booleans()):
            del holder[path[-1]]  # type: ignore[attr-defined]
        else:
            holder[path[-1]] = data.draw(junk)  # type: ignore[index]
        if not list(places(spoiled))[1:]:
            break
    return spoiled


def read_lines(format_name: str, *lines: object) -> list[Record | Rejected]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "export.jsonl")
        path.write_text("\n".join(json.dumps(line) for line in lines))
        return list(read(path, format=format_name))


def check(rows: list[Record | Rejected], good: str) -> None:
    ids = [row.trace.id for row in rows if isinstance(row, Record)]
    assert good in ids
    assert all(row.trace.answer for row in rows if isinstance(row, Record))
    reasons = [row.reason for row in rows if isinstance(row, Rejected)]
    assert all(reasons)
    assert not any("\n" in reason for reason in reasons)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_spoiled_langfuse_trace_harms_no_other(data):
    check(read_lines("langfuse", spoil(data, DOCUMENT), GOOD), "0b" * 16 + "-" + "b3" * 8)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_spoiled_observation_harms_no_other_trace(data):
    spoiled = [spoil(data, row) if data.draw(st.booleans()) else row for row in OBSERVATIONS]
    check(read_lines("langfuse", *spoiled, GOOD), "0b" * 16 + "-" + "b3" * 8)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_spoiled_run_harms_no_other_trace(data):
    spoiled = [spoil(data, row) if data.draw(st.booleans()) else row for row in runs.RAG]
    check(read_lines("langsmith", *spoiled, *runs.PLAIN), runs.answer_id(3, 0))


def test_the_unspoiled_trace_is_read_whole():
    [record, _] = read_lines("langfuse", DOCUMENT, GOOD)
    assert isinstance(record, Record)
    trace = record.trace
    assert (trace.question, trace.answer, trace.model) == ("Where?", "In Paris.", "m")
    assert [(source.text, source.retrieval_score) for source in trace.sources] == [("It is in Paris.", 0.5)]
    assert trace.attributes["langfuse.trace.tags"] == "x"
    assert trace.attributes["service.version"] == "3"


@pytest.mark.parametrize("form", ["langfuse", "langsmith"])
@pytest.mark.parametrize(
    "content",
    [
        b"[",
        b"{",
        b'[{"id": 1',
        b'{"runs": [',
        b"[[[[",
        b'{"trace": {"id": "x"}, "observations": [}',
        b"\xff\xfe",
        b"nothing",
        b"[" * 5000,
        b'{"data": [1, 2]}',
        b'[null, 3, "x"]',
        b'{\n  "trace": {"id": NaN}\n}',
        b'{"trace": 1}',
        b"{}",
    ],
)
def test_what_is_no_export_is_refused_in_a_sentence(form, content, tmp_path):
    path = tmp_path / "export.json"
    path.write_bytes(content)
    try:
        rows = list(read(path, format=form))
    except BadInput as error:
        reasons = [str(error)]
    else:
        reasons = [row.reason for row in rows if isinstance(row, Rejected)]
        assert len(reasons) == len(rows)
    assert reasons
    assert not any("\n" in reason for reason in reasons)
