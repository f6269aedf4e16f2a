"""Tables that Langfuse's pages export as CSV, whose cells hold JSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from ingesting import only

from calibrate.ingest import preview

TRACE = {
    "id": "t1",
    "timestamp": "2026-11-01T10:00:00.000Z",
    "name": "chat",
    "userId": "u",
    "sessionId": "s",
    "input": json.dumps("How long is the warranty?"),
    "output": json.dumps("Two years."),
    "tags": "[]",
    "metadata": "{}",
}
OBSERVATION = {
    "id": "o1",
    "type": "GENERATION",
    "name": "g",
    "startTime": "2026-11-01T10:00:00.000Z",
    "endTime": "",
    "traceId": "t1",
    "model": "gpt-4o",
    "input": json.dumps([{"role": "user", "content": "How long is the warranty?"}]),
    "output": json.dumps({"role": "assistant", "content": "Two years."}),
}


@pytest.mark.parametrize(("row", "model"), [(TRACE, None), (OBSERVATION, "gpt-4o")])
def test_a_table_is_read_as_langfuse_has_it(tmp_path: Path, row: dict[str, Any], model: str | None) -> None:
    path = tmp_path / "export.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, row)
        table.writeheader()
        table.writerow(row)
    assert preview(path).format == "langfuse"
    trace = only(path).trace
    assert (trace.question, trace.answer, trace.model) == ("How long is the warranty?", "Two years.", model)
    assert trace.timestamp is not None


def test_other_tables_stay_tables(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("id,input,output,answer\na,b,c,Two years.\n")
    assert preview(path).format == "csv"
    assert only(path).trace.answer == "Two years."
