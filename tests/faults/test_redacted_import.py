"""With redaction on, no byte of a store holds what was replaced, whichever way the traces came."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.types import TraceFilter
from calibrate.workflow.traces.import_labelled import import_traces
from db import Store, open_store

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
VALUES = ("ann.canary@example.org", "+49 30 1234567", "4111 1111 1111 1111", "AKIAIOSFODNN7EXAMPLE")
TEXT = "Ask {}, call {}, pay with {}, use {}.".format(*VALUES)


@pytest.fixture
def traces(tmp_path) -> Path:
    path = tmp_path / "traces.jsonl"
    rows = [
        {
            "id": f"t{n}",
            "question": TEXT,
            "context": TEXT,
            "answer": f"{n} {TEXT}",
            "sources": {VALUES[0]: {"text": TEXT, "title": VALUES[0]}},
            "alternatives": [TEXT, f"{TEXT}!"],
            "tokens": [{"token": letter, "logprob": -0.1} for letter in f"{n} {TEXT}"],
            "schema": {"const": VALUES[0]},
            "attributes": {"user": VALUES[0], VALUES[3]: 1},
            "label": "hallucinated",
            "label_type": VALUES[0],
            "spans": [{"start": 2, "end": 5}],
        }
        for n in range(3)
    ]
    rows.append({"answer": TEXT})  # its id comes from its content
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())


def open_in(folder: Path) -> Store:
    folder.mkdir()
    return open_store(f"sqlite:///{folder}/store.db")


def test_what_is_replaced_reaches_no_byte_of_the_store(tmp_path, traces):
    store = open_in(tmp_path / "store")
    report = import_traces(store, traces, redact="email,phone,card,key", now=NOW).report
    assert (report.imported, report.labels, report.rejected) == (4, 3, 0)
    assert report.redacted == {"e-mail": 34, "phone": 19, "card": 19, "key": 22}
    stored = bytes_of(tmp_path / "store")
    assert not [value for value in VALUES if value.encode() in stored]
    assert b"canary" not in stored
    again = import_traces(store, traces, redact="key,card,phone,email", now=NOW).report
    assert (again.imported, again.duplicates, again.labels, again.rejected) == (0, 4, 0, 0)
    store.close()


def test_nothing_is_replaced_unless_a_setting_or_the_call_says_so(tmp_path, traces, monkeypatch):
    plain = open_in(tmp_path / "plain")
    assert import_traces(plain, traces, now=NOW).report.redacted == {}
    monkeypatch.setenv("TOUCHSTONE_REDACT", "email, card")
    by_setting = open_in(tmp_path / "setting")
    assert import_traces(by_setting, traces, now=NOW).report.redacted == {"e-mail": 34, "card": 19}
    page = by_setting.traces.page(TraceFilter())
    assert {line.question for line in page.lines if line.question} == {
        f"Ask [e-mail 1], call {VALUES[1]}, pay with [card 1], use {VALUES[3]}."
    }
    overridden = open_in(tmp_path / "overridden")
    assert import_traces(overridden, traces, redact="none", now=NOW).report.redacted == {}
    monkeypatch.setenv("TOUCHSTONE_REDACT", "mails")
    with pytest.raises(BadInput, match="nothing is called 'mails' to redact"):
        import_traces(overridden, traces, now=NOW)


def test_the_command_counts_what_it_replaced(tmp_path, traces, capsys):
    store = f"sqlite:///{tmp_path}/cli.db"
    assert main(["import", str(traces), "--store", store, "--redact", "email,card"]) == 0
    assert "replaced by placeholders before anything was stored: 19 × card, 34 × e-mail" in capsys.readouterr().out
    assert main(["import", str(traces), "--store", store, "--redact", "email,card", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["redacted"] == {"e-mail": 34, "card": 19}


def test_what_an_import_says_of_a_bad_line_is_redacted_too(tmp_path, capsys):
    path = tmp_path / "bad.jsonl"
    path.write_text(
        json.dumps({"id": "a", "answer": "A", "sources": {VALUES[0]: 3}})
        + "\n"
        + json.dumps({"id": "b", "answer": "B", "attributes": {VALUES[0]: [1]}})
    )
    assert main(["import", str(path), "--store", f"sqlite:///{tmp_path}/cli.db", "--redact", "email"]) == 0
    captured = capsys.readouterr()
    assert "sources[[e-mail 1]]" in captured.out + captured.err
    assert "field '[e-mail 1]'" in captured.out + captured.err
    assert "canary" not in captured.out + captured.err
