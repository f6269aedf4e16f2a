"""Labels, gold and a labeller's place, on both databases."""

from __future__ import annotations

import tracemalloc
from datetime import timedelta
from pathlib import Path

import pytest

import db.labels
from calibrate.errors import BadInput
from calibrate.ingest import Rejected, read_labels, write_labels
from calibrate.types import Label, Member, Sample, TraceFilter
from db import Store, open_store
from tests.db.make import NOW, SPANS, label, records


@pytest.fixture
def sample(store: Store) -> Sample:
    store.traces.add(records(10), labels_as=None, now=NOW)
    members = [Member(pk, 0.4, "all") for pk in (7, 2, 9, 4)]
    return store.samples.add(
        "w", design="random", by=None, seed=1, pool=10, undated=0, where=TraceFilter(), strata={"all": (10, 4)},
        members=members, now=NOW,
    )  # fmt: skip


def test_a_label_comes_back_whole(store: Store, sample: Sample) -> None:
    given = Label("t7", "ann", "hallucinated", ("fabrication",), SPANS, "a note", 3.5, NOW, "w", guide=3)
    store.labels.add(7, given, sample_id=sample.id, now=NOW)
    assert store.labels.of_trace(7) == [given]


def test_labels_are_append_only_and_the_latest_counts(store: Store, sample: Sample) -> None:
    for verdict in ("clean", "hallucinated"):
        store.labels.add(7, label(verdict), sample_id=sample.id, now=NOW)
    assert [one.verdict for one in store.labels.of_trace(7)] == ["clean", "hallucinated"]
    assert store.labels.gold_counts() == {"hallucinated": 1}
    latest = store.answers.standing([7], "ann")[7]
    assert latest.label.verdict == "hallucinated"


@pytest.mark.parametrize(
    ("said", "gold"),
    [
        ((("ann", "clean"), ("bob", "clean")), "clean"),
        ((("ann", "clean"), ("bob", "hallucinated")), "disputed"),
        ((("ann", "unsure"), ("bob", "hallucinated")), "hallucinated"),
        ((("ann", "unsure"),), "unsure"),
        ((("ann", "clean"), ("bob", "hallucinated"), ("ann", "hallucinated")), "hallucinated"),
    ],
)
def test_gold(store: Store, sample: Sample, said: tuple[tuple[str, str], ...], gold: str) -> None:
    for who, verdict in said:
        store.labels.add(7, label(verdict, who), sample_id=None, now=NOW)
    assert store.labels.gold_counts(sample.id) == {gold: 1}


@pytest.mark.parametrize(
    ("said", "gold"),
    [
        ((("ann", "clean", False), ("bob", "hallucinated", False), ("cy", "hallucinated", True)), "hallucinated"),
        ((("ann", "clean", False), ("cy", "hallucinated", True), ("bob", "clean", False)), "hallucinated"),
        ((("ann", "clean", False), ("ann", "hallucinated", True), ("ann", "clean", False)), "hallucinated"),
        ((("ann", "clean", False), ("cy", "hallucinated", True), ("dee", "clean", True)), "clean"),
        (
            (("ann", "clean", False), ("cy", "clean", True), ("dee", "hallucinated", True), ("cy", "clean", True)),
            "clean",
        ),
        ((("ann", "clean", False), ("bob", "clean", False), ("cy", "unsure", True)), "unsure"),
    ],
)
def test_the_latest_adjudication_decides_gold(
    store: Store, sample: Sample, said: tuple[tuple[str, str, bool], ...], gold: str
) -> None:
    for who, verdict, adjudicates in said:
        store.labels.add(7, label(verdict, who, adjudicates=adjudicates), sample_id=None, now=NOW)
    assert store.labels.gold_counts() == {gold: 1}
    (reading,) = store.labels.readings(least=1)
    last = [(verdict, who) for who, verdict, adjudicates in said if adjudicates][-1]
    assert (reading.pk, reading.trace_id, reading.gold, reading.adjudicated, reading.by) == (7, "t7", gold, *last)
    assert reading.verdicts == {who: verdict for who, verdict, adjudicates in said if not adjudicates}


def test_adjudications_go_out_and_come_in_again(store: Store, sample: Sample, tmp_path: Path) -> None:
    for who, verdict, adjudicates in (("ann", "clean", False), ("bob", "hallucinated", False), ("cy", "clean", True)):
        store.labels.add(7, label(verdict, who, adjudicates=adjudicates), sample_id=None, now=NOW)
    for name in ("labels.jsonl", "labels.csv"):
        write_labels(store.labels.export(), tmp_path / name)
        other = open_store(f"sqlite:///{tmp_path / name}.db")
        other.traces.add(records(10), labels_as=None, now=NOW)
        read = [one[1] for one in read_labels(tmp_path / name) if not isinstance(one, Rejected)]
        assert other.labels.add_many(read, now=NOW) == (3, [])
        assert other.labels.gold_counts() == {"clean": 1}
        assert other.labels.add_many(read, now=NOW) == (0, [])
        assert [one.adjudicates for one in other.labels.export()] == [False, False, True]
        other.close()


def test_an_export_reads_some_at_a_time_and_misses_none(
    store: Store, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [Label(f"t{1 + n % 10}", f"p{n}", "clean") for n in range(1_000)]
    store.labels.add_many(said, now=NOW)
    everything = list(store.labels.export())
    assert [one.labeller for one in everything] == [f"p{n}" for n in range(1_000)]
    assert store.labels.count() == len(everything)
    monkeypatch.setattr(db.labels, "PAGE", 100)
    assert list(store.labels.export()) == everything
    inside = [
        one.trace_id for one in everything if one.trace_id in {m.trace_id for m in store.samples.lines(sample.id)}
    ]
    assert [one.trace_id for one in store.labels.export(sample.id)] == inside
    assert store.labels.count(sample.id) == len(inside)
    tracemalloc.start()
    assert sum(1 for _ in store.labels.export()) == 1_000
    assert tracemalloc.get_traced_memory()[1] < 250_000  # 1,000 labels at once take twice that
    tracemalloc.stop()


def test_an_import_does_not_bring_an_older_adjudication_back(store: Store, sample: Sample) -> None:
    first = Label("t7", "cy", "clean", adjudicates=True)
    store.labels.add_many([Label("t7", "ann", "clean"), first], now=NOW)
    store.labels.add(7, label("hallucinated", "dee", adjudicates=True), sample_id=None, now=NOW)
    assert store.labels.add_many([first], now=NOW) == (0, [])
    assert store.labels.gold_counts() == {"hallucinated": 1}


def test_readings_are_of_several_labels_in_labelling_order(store: Store, sample: Sample) -> None:
    for pk in (2, 4, 5, 7):
        store.labels.add(pk, label("clean"), sample_id=None, now=NOW)
    for pk in (2, 5, 7):
        store.labels.add(pk, label("unsure", "bob"), sample_id=None, now=NOW)
    assert [one.pk for one in store.labels.readings()] == [2, 5, 7]
    assert [one.pk for one in store.labels.readings(sample.id)] == [7, 2]
    assert [one.pk for one in store.labels.readings(sample.id, least=1)] == [7, 2, 4]
    assert store.labels.readings()[0].verdicts == {"ann": "clean", "bob": "unsure"}


def test_place_goes_through_the_sample_in_order_and_brings_skipped_ones_at_the_end(
    store: Store, sample: Sample
) -> None:
    def at() -> int | None:
        return store.labels.place(sample.id, "ann").position

    assert at() == 0
    store.labels.skip(7, sample_id=sample.id, labeller="ann", now=NOW)
    assert at() == 1
    for pk in (2, 9):
        store.labels.add(pk, label("clean", seconds=4.0), sample_id=sample.id, now=NOW)
    place = store.labels.place(sample.id, "ann")
    assert (place.position, place.labelled, place.skipped, place.size, place.seconds_each) == (3, 2, 1, 4, 4.0)
    store.labels.add(4, label("unsure"), sample_id=sample.id, now=NOW)
    assert at() == 0
    store.labels.add(7, label("clean"), sample_id=sample.id, now=NOW)
    assert store.labels.place(sample.id, "ann").position is None
    assert store.labels.place(sample.id, "bob").labelled == 0


def test_a_skipped_trace_that_holds_back_labels_comes_before_one_that_does_not(store: Store, sample: Sample) -> None:
    """In order 7, 2, 9, 4. Bob has labelled what ann skipped first, and 9 waits behind 2."""
    for pk in (7, 2, 4):
        store.labels.skip(pk, sample_id=sample.id, labeller="ann", now=NOW + timedelta(seconds=pk % 7))
    store.labels.add(7, label("clean", "bob"), sample_id=sample.id, now=NOW)
    store.labels.add(9, label("clean"), sample_id=sample.id, now=NOW)
    assert store.labels.place(sample.id, "ann").position == 1
    # Without a skip the queue keeps its order, unless the gap is asked for.
    assert store.labels.place(sample.id, "cat").position == 0
    assert store.labels.place(sample.id, "cat", gap_first=True).position == 1
    store.labels.skip(2, sample_id=sample.id, labeller="cat", now=NOW)
    assert store.labels.place(sample.id, "cat", gap_first=True).position == 1
    store.labels.add(2, label("unsure"), sample_id=sample.id, now=NOW)
    assert store.labels.place(sample.id, "cat", gap_first=True).position == 0
    assert store.labels.place(sample.id, "ann").position == 0  # skipped first; 4 holds back nothing


def test_import_of_labels_names_unknown_traces_and_adds_what_stands_only_once(store: Store, sample: Sample) -> None:
    given = [Label("t1", "ann", "clean"), Label("nowhere", "ann", "clean")]
    assert store.labels.add_many(given, now=NOW) == (1, ["nowhere"])
    assert store.labels.add_many(given, now=NOW) == (0, ["nowhere"])
    assert len(list(store.labels.export())) == 1
    assert list(store.labels.export(sample.id)) == []


def test_an_impossible_verdict_is_refused(store: Store, sample: Sample) -> None:
    with pytest.raises(BadInput, match="verdict"):
        store.labels.add(7, label("perhaps"), sample_id=None, now=NOW)


def test_an_old_file_changes_no_mind_and_a_history_is_imported_once(store: Store, sample: Sample) -> None:
    day = timedelta(days=1)
    history = [
        Label("t7", "ann", "clean", created_at=NOW - 9 * day),
        Label("t7", "ann", "hallucinated", created_at=NOW - 5 * day),
        Label("t7", "lead", "clean", created_at=NOW - 4 * day, adjudicates=True),
        Label("t7", "lead", "hallucinated", created_at=NOW - 3 * day, adjudicates=True),
    ]
    assert store.labels.add_many(history, now=NOW)[0] == 4
    assert [store.labels.add_many(given, now=NOW)[0] for given in (history, history[:1], history[2:3])] == [0, 0, 0]
    assert [label.verdict for label in store.labels.of_trace(7)] == ["clean", "hallucinated", "clean", "hallucinated"]
    assert store.labels.gold_counts() == {"hallucinated": 1}
    # On the page ann says otherwise; the file of before does not undo that, nor does a label in between.
    store.labels.add(7, Label("", "ann", "unsure"), sample_id=None, now=NOW)
    between = Label("t7", "ann", "clean", created_at=NOW - day)
    assert store.labels.add_many([*history, between], now=NOW)[0] == 0
    latest = store.answers.standing([7], "ann")[7]
    assert latest.label.verdict == "unsure"
    # A newer one does, and one of the same moment that was corrected in the file.
    assert store.labels.add_many([Label("t7", "ann", "clean", created_at=NOW + day)], now=NOW)[0] == 1
    assert store.labels.add_many([Label("t7", "ann", "hallucinated", created_at=NOW + day)], now=NOW)[0] == 1
