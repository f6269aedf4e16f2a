"""A label keeps the version of the guide it was made under, and its kinds are those of the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.types import Kind, Label, Record, Trace
from calibrate.workflow.labelling import guides
from db import Store, open_store
from tests.workflow.making import NOW


def filled(path: Path) -> Store:
    store = open_store(f"sqlite:///{path}")
    store.traces.add([Record(n, Trace(f"t{n}", "an answer")) for n in range(4)], labels_as=None, now=NOW)
    return store


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.csv"])
def test_the_version_goes_out_and_comes_back(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, file = filled(tmp_path / "one.db"), tmp_path / name
    kinds = [*guides.first().kinds, Kind("wrong_date", "Wrong date")]
    for version in range(3):
        label = Label("t", "ann", "hallucinated", kinds=(kinds[version].key,))
        store.labels.add(version + 1, label, sample_id=None, now=NOW)
        guides.save(store, f"Look {version}.", kinds, by="ann", now=NOW)
    monkeypatch.setenv("TOUCHSTONE_STORE", store.url)
    assert main(["labels", "export", str(file)]) == 0
    again = filled(tmp_path / "two.db")
    guides.save(again, "Look 0.", kinds, by="ann", now=NOW)
    monkeypatch.setenv("TOUCHSTONE_STORE", again.url)
    assert main(["labels", "import", str(file)]) == 0
    assert [label.guide for label in store.labels.export()] == [0, 1, 2]
    # Version 2 is none of this store's: nobody here knows what it said.
    assert [label.guide for label in again.labels.export()] == [0, 1, None]


def test_a_kind_that_the_store_does_not_know_is_left_out_with_what_was_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store, file = filled(tmp_path / "one.db"), tmp_path / "labels.jsonl"
    monkeypatch.setenv("TOUCHSTONE_STORE", store.url)
    rows = [
        {"trace_id": "t0", "verdict": "hallucinated", "kinds": ["Wrong Citation"]},
        {"trace_id": "t1", "verdict": "hallucinated", "spans": [{"start": 0, "end": 2, "type": "fabricaton"}]},
        {"trace_id": "t2", "verdict": "hallucinated", "kinds": ["\u65e5\u4ed8"]},
        {"trace_id": "t3", "verdict": "hallucinated", "kinds": ["fabrication"]},
        {"trace_id": "t3", "verdict": "clean", "guide": -1},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["labels", "import", str(file), "--labels-as", "ann", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["labels"], document["rejected"]) == (1, 4)
    reasons = [error["reason"] for error in document["errors"]]
    assert ["did you mean 'wrong_citation'" in reasons[0], "did you mean 'fabrication'" in reasons[1]] == [True, True]
    assert "did you mean" not in reasons[2]
    assert "guide" in reasons[3]
