"""Lines of a trace file that must not come in as they are: a key given twice, a trace too large for any detector."""

from __future__ import annotations

import json

import pytest

from calibrate.errors import BadInput
from calibrate.ingest import Record, Rejected, read

GOOD = {"id": "good", "answer": "Yes."}


def outcomes(path):
    return [record.trace.id if isinstance(record, Record) else record for record in read(path)]


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('{"id": "a", "answer": "Yes.", "answer": "No."}', "answer"),
        ('{"id": "a", "answer": "Yes.", "sources": {"1": "one", "1": "two"}}', "1"),
        ('{"id": "a", "answer": "Yes.", "attributes": {"tier": "x", "tier": "x"}}', "tier"),
        ('{"id": "a", "answer": "Yes.", "\\u202eq": 1, "\\u202eq": 2}', "⟦RLO⟧q"),
    ],
)
def test_a_key_given_twice_rejects_its_line_only(tmp_path, line, key):
    path = tmp_path / "traces.jsonl"
    path.write_text(f"{line}\n{json.dumps(GOOD)}\n")
    assert outcomes(path) == [
        Rejected(1, f"the key {key!r} occurs twice in one object; give each key once"),
        "good",
    ]


def test_a_trace_too_large_is_rejected_and_the_rest_comes_in(tmp_path, monkeypatch):
    path = tmp_path / "traces.jsonl"
    long = {"id": "long", "answer": "x" * 1500, "context": "y" * 501}
    many = {"id": "many", "answer": "Yes.", "sources": ["s"] * 11}
    fits = {"id": "fits", "answer": "x" * 1500, "context": "y" * 500, "sources": [""] * 10}
    path.write_text("".join(json.dumps(line) + "\n" for line in (long, many, fits, GOOD)))
    assert outcomes(path) == ["long", "many", "fits", "good"]
    monkeypatch.setenv("TOUCHSTONE_MAX_TRACE_MB", "0.002")
    monkeypatch.setenv("TOUCHSTONE_MAX_SOURCES", "10")
    assert outcomes(path) == [
        Rejected(
            1, "2,001 characters of text, at most 2,000 are taken; split the trace, or raise TOUCHSTONE_MAX_TRACE_MB"
        ),
        Rejected(2, "sources: 11 of them, at most 10 are taken; split the trace, or raise TOUCHSTONE_MAX_SOURCES"),
        "fits",
        "good",
    ]


def test_ten_megabytes_and_a_hundred_thousand_sources_are_rejected_unasked(tmp_path):
    path = tmp_path / "traces.jsonl"
    big = {"id": "big", "answer": "x" * 10_000_000}
    many = {"id": "many", "answer": "Yes.", "sources": ["s"] * 100_000}
    path.write_text("".join(json.dumps(line) + "\n" for line in (big, many, GOOD)))
    first, second, good = outcomes(path)
    assert "10,000,000 characters of text, at most 4,000,000" in first.reason
    assert "100,000 of them, at most 5,000" in second.reason
    assert good == "good"


@pytest.mark.parametrize(("name", "value"), [("TOUCHSTONE_MAX_TRACE_MB", "much"), ("TOUCHSTONE_MAX_SOURCES", "0")])
def test_an_impossible_bound_is_named(tmp_path, monkeypatch, name, value):
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(GOOD))
    monkeypatch.setenv(name, value)
    with pytest.raises(BadInput, match=rf"{name} cannot be '{value}'"):
        list(read(path))
