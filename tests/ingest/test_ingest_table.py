"""CSV and Parquet, and the mapping of their columns."""

from __future__ import annotations

import csv
import gzip
import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ingesting import good, ids, only, reasons

from calibrate.errors import BadInput
from calibrate.ingest import Record, preview, read, suggest
from calibrate.types import Source


@pytest.fixture
def table(tmp_path):
    def write(text: str, name: str = "traces.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return write


def test_a_csv_with_every_kind_of_column(table):
    cells = {
        "Trace ID": "a",
        "Question": "Who?",
        "answer": 'She "did",\nreally.',
        "timestamp": "1767323045",
        "model": "gpt",
        "sources": json.dumps({"3": "Three."}),
        "tokens": json.dumps([{"token": "She", "logprob": -1}]),
        "schema": "true",
        "label": "clean",
        "label_type": "other",
        "spans": json.dumps([{"start": 0, "end": 3}]),
        "tier": "gold",
        "context": "",
    }
    path = table("")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, cells)
        writer.writeheader()
        writer.writerow(cells)
    record = only(path)
    trace = record.trace
    assert (trace.id, trace.question, trace.answer) == ("a", "Who?", 'She "did",\nreally.')
    assert (trace.timestamp, trace.model) == (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "gpt")
    assert trace.sources == (Source("3", "Three."),)
    assert trace.tokens[0].logprob == -1
    assert (trace.schema, trace.context) == (True, None)
    assert trace.attributes == {"tier": "gold"}
    assert (record.labels[0].verdict, record.labels[0].kinds) == ("clean", ("other",))


@pytest.mark.parametrize(("mark", "name"), [(",", "x.csv"), (";", "x.csv"), ("\t", "x.tsv"), ("\t", "x.csv")])
def test_separators(table, mark, name):
    trace = only(
        table(f'id{mark}answer{mark}"a,b;c"\r\n1{mark}x, y; z{mark}3\r\n'.replace("x, y; z", '"x, y; z"'), name)
    )
    assert (trace.trace.id, trace.trace.answer) == ("1", "x, y; z")


def test_sources_as_plain_text_or_one_a_column(table):
    assert only(table("answer,sources\nx,Just a text.\n")).trace.sources == (Source("1", "Just a text."),)
    trace = only(table("answer,source_1,Source2,source_3\nx,One.,Two.,\n", "b.csv")).trace
    assert trace.sources == (Source("1", "One."), Source("2", "Two."))


def test_rows_without_an_id_keep_the_same_one(table):
    text = "question,answer\nWho?,She.\nWho?,He.\n"
    first, second = ids(table(text)), ids(table(text, "again.csv"))
    assert first == second
    assert len(set(first)) == 2
    assert first[0].startswith("csv-")


def test_bad_rows_are_told_by_the_line_they_begin_on(table):
    path = table('id,answer\n1,"two\nlines"\n\n2,x,y\n3\n4,\n5,good\n6,"a"b\n7,fine\n8,"never closed\n')
    assert ids(path) == ["1", "5", "7"]
    assert reasons(path) == {
        5: "the row has 3 cells, the header 2",
        6: "the row has 1 cell, the header 2",
        7: "answer: missing",
        9: "not CSV: ',' expected after '\"'",
        11: "not CSV: unexpected end of data",
    }


def test_bad_cells(table):
    path = table('id,answer,sources,spans,label\n1,x,{bad,,\n2,x,,[1],clean\n3,x,,,0\n4,x\x00y,"[""\\ud800""]",,\n')
    found = reasons(path)
    assert found[2].startswith("sources: not JSON: ")
    assert found[3].startswith("spans[0]: expected an object")
    assert found[4] == "label: expected one of clean, hallucinated, unsure, found the text '0'"
    last = list(read(path))[-1]
    assert (last.trace.answer, last.trace.sources[0].text, last.repaired) == ("x\ufffdy", "\ufffd", 2)


def test_a_csv_in_another_encoding_says_so_row_by_row(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("id,answer\n1,plain\n2,caf\u00e9\n".encode("latin-1"))
    assert ids(path) == ["1"]
    assert reasons(path) == {3: "not UTF-8 text; save the file as CSV UTF-8"}


def test_a_byte_order_mark_and_gzip(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress('\ufeff"id",answer\r\na,x\r\n'.encode()))
    assert ids(path) == ["a"]


def test_a_cell_of_1_mb_and_a_line_too_long(table):
    path = table("id,answer\n1," + "x" * 1_000_000 + "\n2," + "x" * 17_000_000 + "\n3,y\n")
    assert ids(path) == ["1", "3"]
    assert reasons(path) == {3: "the line is longer than 16 MB; write one trace per line"}


def test_columns_that_cannot_be_told_apart_or_are_missing(table):
    with pytest.raises(BadInput, match=r"no column 'answer'; it has 'prompt', 'response'\. Say which"):
        list(read(table("prompt,response\nWho?,She.\n")))
    with pytest.raises(BadInput, match="two columns for 'answer'"):
        list(read(table("answer,Answer\nx,y\n")))
    with pytest.raises(BadInput, match="no column 'reply'; it has 'prompt', 'response'"):
        list(read(table("prompt,response\nWho?,She.\n"), columns={"answer": "reply"}))
    with pytest.raises(BadInput, match="holds no traces"):
        list(read(table("id,answer\n")))


def test_a_mapping_names_the_columns(table, jsonl):
    columns = {"question": "prompt", "answer": "response"}
    trace = only(table("prompt,response,answer\nWho?,She.,noise\n"), columns=columns).trace
    assert (trace.question, trace.answer, trace.attributes) == ("Who?", "She.", {"answer (column)": "noise"})
    assert only(jsonl({"prompt": "Who?", "response": "She.", "answer": "noise"}), columns=columns).trace == replace(
        trace, id=only(jsonl({"question": "Who?", "answer": "She."}, name="b.jsonl")).trace.id
    )
    swapped = {"question": "answer", "answer": "question"}
    assert only(jsonl({"question": "She.", "answer": "Who?"}), columns=swapped).trace.question == "Who?"


def test_a_preview_shows_what_an_import_would_make_of_it(table):
    path = table("request-id,Prompt,Completion,note\n" + "".join(f"{at},Who?,She.,{'n' * 600}\n" for at in range(9)))
    seen = preview(path, rows=3)
    assert seen.format == "csv"
    assert seen.columns == ("request-id", "Prompt", "Completion", "note")
    assert seen.suggested == {"trace_id": "request-id", "question": "Prompt", "answer": "Completion"}
    assert len(seen.raw) == 3
    assert len(seen.raw[0]["note"]) == 501
    assert [one.trace.id for one in seen.records if isinstance(one, Record)] == ["0", "1", "2"]
    assert seen.problem is None
    without = preview(path, columns={"question": "Prompt"})
    assert without.records == ()
    assert "no column 'answer'" in without.problem


def test_a_preview_of_json_lines(jsonl):
    seen = preview(jsonl(good(), "oops", {"output": "x", "extra": {}}))
    assert seen.columns == ("trace_id", "question", "answer", "output", "extra")
    assert seen.suggested == {"trace_id": "trace_id", "question": "question", "answer": "answer"}
    assert [type(one).__name__ for one in seen.records] == ["Record", "Rejected", "Rejected"]


def test_a_suggestion_takes_our_own_name_first_and_no_column_twice():
    assert suggest(["output", "answer", "text"]) == {"answer": "answer"}
    assert suggest([]) == {}


def test_parquet_with_nested_columns(tmp_path):
    path = tmp_path / "x.parquet"
    rows = {
        "trace_id": [1, 2],
        "answer": ["x", "y\x00"],
        "timestamp": pa.array([datetime(2026, 1, 2, 3, 4, 5), None], pa.timestamp("us")),
        "sources": pa.array([{"1": "One.", "2": "Two."}, {"1": "Uno.", "2": None}]),
        "attributes": pa.array([[("tier", "gold")], []], pa.map_(pa.string(), pa.string())),
        "samples": pa.array([["a"], []]),
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
        "score": pa.array([0.5, float("nan")]),
        "blob": pa.array([b"x", None]),
        "label": ["clean", None],
    }
    pq.write_table(pa.table(rows), path)
    first, second = read(path)
    assert (first.line, first.trace.id, first.trace.timestamp) == (1, "1", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert [source.text for source in first.trace.sources] == ["One.", "Two."]
    assert first.trace.attributes == {"tier": "gold", "price": 1.5, "score": 0.5}
    assert (first.trace.alternatives, first.left_out, first.labels[0].verdict) == (("a",), ("blob",), "clean")
    assert [source.text for source in second.trace.sources] == ["Uno."]
    assert (second.trace.answer, second.trace.attributes, second.labels) == ("y\ufffd", {}, ())


def test_parquet_is_known_whatever_it_is_called_and_damage_is_told(tmp_path):
    frame = pd.DataFrame({"question": ["Who?"] * 600, "answer": [f"{at}" * 30 for at in range(600)]})
    path = tmp_path / "x.csv"
    frame.to_parquet(path)
    assert len(ids(path)) == 600
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(BadInput, match="cannot be read as Parquet"):
        list(read(path))
    path.write_bytes(data[:500] + b"\xff" * 2000 + data[2500:])
    with pytest.raises(BadInput, match="cannot be read as Parquet"):
        list(read(path))


# A short file full of control characters is taken for a binary one.
cell = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\t\r\n\x1b"), max_size=20)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(cell, cell.filter(bool), cell), min_size=1, max_size=5))
def test_any_csv_that_python_writes_reads_back(tmp_path, rows):
    path = tmp_path / "any.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("question", "answer", "note"), *rows])
    found = [(one.trace.question or "", one.trace.answer, one.trace.attributes.get("note", "")) for one in read(path)]
    assert found == rows


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
def test_no_content_of_a_csv_raises_anything_but_bad_input(tmp_path, content):
    path = tmp_path / "any.csv"
    path.write_bytes(b"id,answer,sources\n" + content)
    with suppress(BadInput):
        assert all(isinstance(one, Record) or one.reason for one in read(path))
