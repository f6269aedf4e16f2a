"""Label files: what is written reads back, and a spreadsheet runs none of it."""

from __future__ import annotations

import csv
import errno
import os
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrate.errors import BadInput, TouchstoneError
from calibrate.ingest import Rejected, read_labels, write_labels
from calibrate.types import KINDS, VERDICTS, Label, Span

FULL = Label(
    trace_id="a",
    labeller="ann@example.org",
    verdict="hallucinated",
    kinds=("fabrication", "other"),
    spans=(Span(0, 3, "name"), Span(4, 4)),
    note="The source says\n“no”.",
    seconds=12.5,
    created_at=datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=UTC),
    sample="2026-W01",
    adjudicates=True,
)
BARE = Label(trace_id="b", labeller="", verdict="clean")


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.csv"])
def test_what_is_written_reads_back(tmp_path, name):
    path = tmp_path / name
    assert write_labels([FULL, BARE], path).labels == 2
    assert [label for _, label in read_labels(path)] == [FULL, BARE]
    assert os.listdir(tmp_path) == [name]


text = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\t\r\n\x1b"), max_size=12)
word = (st.sampled_from("=+-@\t\r'＝").flatmap(lambda mark: text.map(lambda rest: mark + rest)) | text).filter(
    lambda value: value.strip() != ""
)
labels = st.builds(
    Label,
    trace_id=word,
    labeller=word,
    verdict=st.sampled_from(VERDICTS),
    kinds=st.lists(st.sampled_from(KINDS), unique=True).map(tuple),
    spans=st.lists(st.builds(Span, st.integers(0, 5), st.integers(5, 9), st.none() | word)).map(tuple),
    note=st.none() | word,
    seconds=st.none() | st.floats(0, 1e6),
    created_at=st.none() | st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    sample=st.none() | word,
    adjudicates=st.booleans(),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_labels=st.lists(labels, min_size=1, max_size=4), name=st.sampled_from(["x.jsonl", "x.csv"]))
def test_any_label_comes_back_as_it_went_out(tmp_path, given_labels, name):
    path = tmp_path / name
    write_labels(given_labels, path)
    assert [label for _, label in read_labels(path)] == given_labels


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1", "'=1"])
def test_no_cell_is_a_formula(tmp_path, cell):
    path = tmp_path / "labels.csv"
    write_labels([Label(trace_id=cell, labeller=cell, verdict="clean", note=cell, sample=cell)], path)
    with path.open(newline="") as file:
        row = next(csv.DictReader(file))
    assert {row[name] for name in ("trace_id", "labeller", "note", "sample")} == {"'" + cell}
    ((_, label),) = read_labels(path)
    assert (label.trace_id, label.note) == (cell, cell)


def test_a_csv_written_by_hand(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("Trace_ID;Label;Kinds\na; Clean ;\nb;hallucinated;other; fabrication\nc;UNSURE;other\n")
    found = list(read_labels(path))
    assert [(line, label.verdict) for line, label in (found[0], found[2])] == [(2, "clean"), (4, "unsure")]
    assert found[1] == Rejected(3, "the row has 4 cells, the header 3")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"verdict": "clean"}', "trace_id: missing"),
        ('{"trace_id": "a"}', "verdict: missing"),
        (
            '{"trace_id": "a", "verdict": "yes"}',
            "verdict: expected one of clean, halluc",
        ),
        ('{"trace_id": "a", "verdict": "clean", "kinds": "other"}', "kinds: expected a list"),
        ('{"trace_id": "a", "verdict": "clean", "kinds": [" "]}', "kinds: expected names of kinds"),
        ('{"trace_id": "a", "verdict": "clean", "kinds": [{}]}', "kinds: expected names of kinds"),
        ('{"trace_id": "a", "verdict": "clean", "seconds": -1}', "seconds: -1 is less than 0"),
        ('{"trace_id": "a", "verdict": "clean", "seconds": "1"}', "seconds: expected a finite number"),
        ('{"trace_id": "a", "verdict": "clean", "created_at": "soon"}', "created_at: expected a time"),
        ('{"trace_id": "a", "verdict": "clean", "spans": [{"start": 3, "end": 1}]}', "spans[0]: 3 to 1 is not"),
        ('{"trace_id": "a", "verdict": "clean", "note": 3}', "note: expected text or null"),
        ('{"trace_id": "a", "verdict": "clean", "adjudicates": 1}', "adjudicates: expected true or false"),
        ("oops", "not JSON"),
    ],
)
def test_a_bad_label_says_why(tmp_path, line, reason):
    path = tmp_path / "labels.jsonl"
    path.write_text(line + "\n" + '{"trace_id": "a", "verdict": "clean"}\n')
    bad, fine = read_labels(path)
    assert isinstance(bad, Rejected)
    assert bad.line == 1
    assert bad.reason.startswith(reason)
    assert fine == (2, Label(trace_id="a", labeller="", verdict="clean"))


def test_bad_csv_cells(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("trace_id,verdict,seconds,spans\na,clean,fast,\nb,clean,nan,\nc,clean,,[\n")
    assert [one.reason[:21] for one in read_labels(path)] == [
        "seconds: expected a n",
        "seconds: expected a f",
        "not JSON: Expecting v",
    ]


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("id,verdict", "no column 'trace_id'; it has 'id', 'verdict'"),
        ("trace_id,judged", "no column 'verdict'; it has 'trace_id', 'judged'"),
    ],
)
def test_a_csv_without_a_column_is_refused_once_and_not_line_by_line(tmp_path, header, why):
    path = tmp_path / "labels.csv"
    path.write_text(f"{header}\na,clean\nb,clean\n")
    with pytest.raises(BadInput, match=why):
        list(read_labels(path))


def test_a_file_without_labels(tmp_path):
    path = tmp_path / "labels.jsonl"
    write_labels([], path)
    with pytest.raises(BadInput, match="empty"):
        list(read_labels(path))


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "labels.jsonl"
    write_labels([BARE], path)
    before = path.read_bytes()

    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(TouchstoneError, match=r"cannot write .*: No space left on device"):
        write_labels([FULL], path)

    def interrupted():
        yield FULL
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_labels(interrupted(), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["labels.jsonl"]
    with pytest.raises(TouchstoneError, match="cannot write"):
        write_labels([BARE], tmp_path / "nowhere" / "labels.csv")


def test_times_are_kept_in_utc(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"trace_id": "a", "verdict": "clean", "created_at": "2026-01-02T03:04:05+02:00"}\n')
    ((_, label),) = read_labels(path)
    assert label.created_at == datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)
    assert label.created_at.utcoffset() == timedelta(0)
