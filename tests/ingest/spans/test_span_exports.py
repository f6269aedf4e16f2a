"""Exports of other people's programs: what each file holds, written down from reading it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrate.errors import BadInput
from calibrate.ingest import preview, read
from calibrate.types import Record, Trace
from tests.ingest.spans.making import every_convention
from tests.shared_data import DATA

EXPECTED = sorted(Path(__file__).with_name("expected").glob("*.json"))
pytestmark = pytest.mark.shared


def short(text: str | None) -> list[Any] | None:
    """The beginning of a text and its length: the files are not ours to copy."""
    return None if text is None else [text[:60], len(text)]


def facts(trace: Trace) -> dict[str, Any]:
    return {
        "id": trace.id,
        "timestamp": trace.timestamp.isoformat(timespec="microseconds") if trace.timestamp else None,
        "model": trace.model,
        "operation": trace.operation,
        "question": short(trace.question),
        "answer": short(trace.answer),
        "sources": [[source.title, source.text[:60], len(source.text)] for source in trace.sources],
    }


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda path: path.stem)
def test_an_export_is_imported_as_it_reads(expected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = json.loads(expected.read_text(encoding="utf-8"))
    path = DATA / "otel" / wanted["file"]
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    if "problem" in wanted:
        with pytest.raises(BadInput, match=wanted["problem"]):
            list(read(path, format=wanted["format"]))
        return
    assert preview(path).format == wanted["format"]
    results = {each["id"]: each.pop("tool_results") for each in wanted["answers"]}
    records = list(read(path))
    with every_convention():
        assert list(read(path)) == records
    assert [facts(record.trace) for record in records if isinstance(record, Record)] == wanted["answers"]
    assert len(records) == len(wanted["answers"])
    monkeypatch.setenv("TOUCHSTONE_TOOL_RESULTS", "1")
    for record in read(path):
        assert isinstance(record, Record)
        assert facts(record.trace)["sources"] == results[record.trace.id]
