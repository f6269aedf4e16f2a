"""Files of scores: three formats read alike, and a row that holds no score is rejected with a sentence, alone."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected
from calibrate.ingest.files import InputFile
from calibrate.ingest.score_reader import ScoreRow, digest, digest_all, read_scores

NAME = "ragas_faithfulness"


def read(path: Path, **columns: str) -> list[ScoreRow | Rejected]:
    with InputFile(path, item="score") as file:
        return list(read_scores(file, detector=NAME, columns=columns))


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_three_formats_read_alike(tmp_path: Path, ending: str) -> None:
    rows = [{"id": "a", NAME: 0.25, "explanation": "1 of 4 claims"}, {"id": "b", NAME: 1.0, "explanation": None}]
    first, second = read(write(tmp_path / f"scores.{ending}", rows))
    assert isinstance(first, ScoreRow)
    assert (first.trace_id, first.value, first.reason, first.quoted) == ("a", 0.25, "1 of 4 claims", None)
    assert isinstance(second, ScoreRow)
    assert (second.trace_id, second.value, second.reason) == ("b", 1.0, None)


def test_the_files_of_ragas_are_read_as_they_are(tmp_path: Path) -> None:
    rows = [{"user_input": "Why?", "retrieved_contexts": ["one", "two"], "response": "So.", "faithfulness": 0.5}]
    for ending in ("jsonl", "parquet"):
        [row] = read(write(tmp_path / f"ragas.{ending}", rows), score="faithfulness")
        assert isinstance(row, ScoreRow)
        assert row.quoted is not None
        assert row.trace_id is None
        assert row.quoted.answer == digest(" So.\n")
        assert row.quoted.question == digest("Why?")
        assert row.quoted.sources == digest_all(["one", "two"])
        assert row.quoted.sources != digest_all(["two", "one"])


def test_a_row_without_a_score_is_rejected_alone(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    cells = ["0.5", "NaN", "-inf", "high", "", "1e999", " 7 ", "0,5", "1_000"]
    path.write_text(
        "trace_id,score\n" + "".join(f't{n},"{cell}"\n' for n, cell in enumerate(cells)) + "only one cell\n"
    )
    rows = read(path)
    assert [(row.trace_id, row.value) for row in rows if isinstance(row, ScoreRow)] == [("t0", 0.5), ("t6", 7.0)]
    reasons = {row.line: row.reason for row in rows if isinstance(row, Rejected)}
    assert reasons[3] == "score: expected a finite number, not NaN"
    assert reasons[6] == "score: missing"
    decimals = ": write decimals with a point, and thousands without a mark"
    assert reasons[9] == f"score: expected a finite number, not 0,5{decimals}"
    assert reasons[10] == "score: expected a finite number, not 1_000"
    assert reasons[11] == "the row has 1 cell, the header 2"
    path = tmp_path / "scores.jsonl"
    path.write_text('{"trace_id": "a", "score": true}\n{"score": 1}\n{"trace_id": ["a"], "score": 1}\nnonsense\n')
    why = [row.reason for row in read(path) if isinstance(row, Rejected)]
    assert why[:3] == [
        "score: expected a finite number, not true",
        "trace_id: missing, and no answer by which the trace could be found",
        "trace_id: expected text, found a list",
    ]
    assert len(why) == 4


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "trace_id,faithful\na,1\n",
            "has no column 'score'; it has 'trace_id', 'faithful'. Say which: --column score=",
        ),
        ("name,score\na,1\n", "has no column 'trace_id', and none for the answer"),
        ("", "is empty"),
        ("trace_id,score\n", "holds no scores"),
        ("trace_id,score,score\na,1,2\n", "has two columns for 'score'"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=why):
        read(path)


def test_a_column_that_no_score_has_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "scores.jsonl", [{"trace_id": "a", "score": 1}])
    with pytest.raises(BadInput, match="a score has no field 'verdict'; it has trace_id, score, reason"):
        read(path, verdict="x")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(["trace_id", "score", "value", "answer", "question", "sources", "reason", "id", NAME, "x"])
lines = st.dictionaries(FIELDS, values, max_size=6).map(json.dumps) | st.text(max_size=30)


@settings(max_examples=60)
@given(lines=st.lists(lines, max_size=6), ending=st.sampled_from(["jsonl", "csv", "txt"]), junk=st.binary(max_size=12))
def test_no_file_ends_in_a_traceback_and_no_row_comes_in_part(lines: list[str], ending: str, junk: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"scores.{ending}"
        path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass") + junk)
        try:
            rows = read(path)
        except BadInput:
            return
        for row in rows:
            if isinstance(row, ScoreRow):
                assert math.isfinite(row.value)
                assert row.trace_id or row.quoted
            else:
                assert row.reason
                assert "\n" not in row.reason
                assert "\x1b" not in row.reason
