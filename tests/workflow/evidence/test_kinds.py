"""The kinds of a trace: of its latest labels and their spans, or of who adjudicated; what a detector finds of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.types import Label, Record, Score, Span, Trace
from calibrate.workflow.evidence.kinds import figures_by_kind
from calibrate.workflow.evidence.loading import load_evidence
from db import Store, open_store

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def say(
    store: Store, pk: int, who: str, verdict: str, *kinds: str, span: str | None = None, last: bool = False
) -> None:
    spans = () if span is None else (Span(0, 3, span), Span(3, 4))
    label = Label(f"t{pk}", who, verdict, kinds, spans, adjudicates=last)  # type: ignore[arg-type]
    store.labels.add(pk, label, sample_id=None, now=NOW)


def fill(store: Store, number: int) -> None:
    traces = [Trace(f"t{n}", f"answer {n}") for n in range(1, number + 1)]
    store.traces.add([Record(n, trace) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)


@pytest.mark.both_databases
def test_whose_kinds_count(store: Store) -> None:
    fill(store, 6)
    say(store, 1, "ann", "hallucinated", "fabrication", span="contradiction")
    say(store, 1, "bob", "hallucinated", "other")
    say(store, 2, "ann", "hallucinated", "fabrication")
    say(store, 2, "ann", "hallucinated", "contradiction")  # a change of mind
    say(store, 3, "ann", "hallucinated", "fabrication")
    say(store, 3, "bob", "clean", "other")  # kinds of a clean verdict are nothing
    say(store, 3, "cy", "hallucinated", "extrapolation", last=True)
    say(store, 4, "ann", "hallucinated", "fabrication")
    say(store, 4, "cy", "hallucinated", last=True)  # agrees, and names no kind
    say(store, 5, "ann", "hallucinated")
    assert store.labels.kinds([1, 2, 3, 4, 5, 6]) == {
        1: ("contradiction", "fabrication", "other"),
        2: ("contradiction",),
        3: ("extrapolation",),
        4: ("fabrication",),
    }


def test_what_a_detector_finds_of_each_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    store = open_store(url)
    fill(store, 12)
    config = store.scores.config("token_overlap", "1", {}, "", now=NOW)
    for n in range(1, 13):  # low is suspicious: the first six are flagged at 0.5
        content = Trace(f"t{n}", f"answer {n}").content_hash()
        store.scores.save(config.id, [(content, Score("", 0.1 if n <= 6 else 0.9))], now=NOW)
    for n in range(1, 13):
        kind = {1: "fabrication", 2: "fabrication", 7: "fabrication", 8: "contradiction", 3: ""}.get(n)
        if kind is None:
            say(store, n, "ann", "clean")
        else:
            say(store, n, "ann", "hallucinated", *([kind] if kind else []))
    figures = figures_by_kind(store, load_evidence(store, "token_overlap", config=config), 0.5)
    assert [(row.kind, row.flagged, row.labels) for row in figures.kinds] == [
        ("fabrication", 2, 3), ("contradiction", 0, 1), (None, 1, 1),
    ]  # fmt: skip
    assert (figures.hallucinated, figures.without) == (5, 1)
    store.close()
    words = ["choose", "token_overlap", "--policy", "manual:0.5", "--store", url]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "Token overlap finds, by kind: fabrication 67% (2 of 3, " in shown
    assert "contradiction 0% (0 of 1, " in shown
    assert "1 of 5 hallucinated labels name no kind" in shown
    assert main([*words, "--json"]) == 0
    by_kind = json.loads(capsys.readouterr().out)["by_kind"]
    assert [(row["kind"], row["flagged"], row["labels"]) for row in by_kind] == [
        ("fabrication", 2, 3), ("contradiction", 0, 1), (None, 1, 1),
    ]  # fmt: skip
