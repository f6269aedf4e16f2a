"""`sample --minutes`, `--assign` and `assign`: as much as fits into the time, shared, and given back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrate.cli import main
from calibrate.types import Record, Trace
from calibrate.workflow.labelling.assignment import next_items
from db import open_store
from tests.workflow.making import NOW


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    monkeypatch.setenv("TOUCHSTONE_STORE", url)
    store = open_store(url)
    traces = [Trace(f"t{n}", f"an answer {n}") for n in range(400)]
    store.traces.add([Record(n, trace, ()) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    store.close()
    return url


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_an_hour_each_shared_by_three(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--since", "all", "--minutes", "60", "--seed", "1")
    code, alone = run(capsys, "sample", "alone", *asked)
    assert (code, alone["size"], alone["assigned"], alone["pace"]["seconds"]) == (0, 120, "everyone", 30.0)
    assert 0 < alone["halfwidth"] < 0.5
    shared = ("--assign", "split", "--labellers", "ann,bob,cy", "--overlap", "0.2")
    code, split = run(capsys, "sample", "split", *asked, *shared)
    assert (code, split["size"], split["assigned"], split["overlap"]) == (0, 300, "split", 0.2)  # 360 / 1.2
    assert split["halfwidth"] < alone["halfwidth"]
    main(["sample", "words", *asked])
    words = capsys.readouterr().out
    assert "30 s a label, which is assumed" in words
    assert "precision is known to about ±" in words


def test_who_holds_what_is_shown_and_given_back(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "sample", "w", "--since", "all", "--size", "10", "--assign", "split", "--overlap", "0")
    store = open_store(url)
    sample = store.samples.get("w")
    assert sample is not None
    from calibrate.cli.common import now

    mine = next_items(store, sample, "bob", 4, now=now())
    assert len(mine) == 4
    assert set(mine).isdisjoint(next_items(store, sample, "ann", 10, now=now()))
    _, shown = run(capsys, "assign")
    assert shown["labellers"] == [
        {"labeller": "ann", "labelled": 0, "held": 6}, {"labeller": "bob", "labelled": 0, "held": 4},
    ]  # fmt: skip
    _, after = run(capsys, "assign", "give-back", "--labeller", "bob")
    assert after["given_back"] == 4
    assert set(mine) <= set(next_items(store, sample, "ann", 10, now=now()))
    assert run(capsys, "assign", "give-back", "--labeller", "bob")[0] == 2
    assert run(capsys, "assign", "set", "--mode", "everyone")[1]["mode"] == "everyone"
    store.close()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("sample", "--size", "5", "--minutes", "5"), "both say how many"),
        (("sample", "--minutes", "0"), "0 minutes"),
        (("sample", "--labellers", "a,b"), "--labellers counts who shares"),
        (("sample", "--overlap", "0.5"), "an overlap is for a sample that is split"),
        (("sample", "--assign", "split", "--overlap", "2"), "is no share"),
        (("assign", "--sample", "none"), "none"),
        (("assign", "set"), "needs --mode"),
        (("assign", "--mode", "split"), "--mode is for `assign set`"),
        (("assign",), "no sample is drawn yet"),
    ],
)
def test_what_cannot_be_shared_is_refused(
    url: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    code, document = run(capsys, *words)
    assert (code, why in document["error"]) == (2, True), document
    assert open_store(url).samples.list() == []
