"""Labels, gold and a labeller's place, on both databases."""

from __future__ import annotations

import pytest

from calibrate.errors import BadInput
from calibrate.types import Label, Member, Sample, TraceFilter
from db import Store
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
    given = Label("t7", "ann", "hallucinated", ("fabrication",), SPANS, "a note", 3.5, NOW, "w")
    store.labels.add(7, given, sample_id=sample.id, now=NOW)
    assert store.labels.of_trace(7) == [given]


def test_labels_are_append_only_and_the_latest_counts(store: Store, sample: Sample) -> None:
    for verdict in ("clean", "hallucinated"):
        store.labels.add(7, label(verdict), sample_id=sample.id, now=NOW)
    assert [one.verdict for one in store.labels.of_trace(7)] == ["clean", "hallucinated"]
    assert store.labels.gold_counts() == {"hallucinated": 1}
    latest = store.labels.latest(7, "ann")
    assert latest is not None
    assert latest.verdict == "hallucinated"


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


def test_import_of_labels_names_unknown_traces_and_adds_what_stands_only_once(store: Store, sample: Sample) -> None:
    given = [Label("t1", "ann", "clean"), Label("nowhere", "ann", "clean")]
    assert store.labels.add_many(given, now=NOW) == (1, ["nowhere"])
    assert store.labels.add_many(given, now=NOW) == (0, ["nowhere"])
    assert len(store.labels.export()) == 1
    assert store.labels.export(sample.id) == []


def test_an_impossible_verdict_is_refused(store: Store, sample: Sample) -> None:
    with pytest.raises(BadInput, match="verdict"):
        store.labels.add(7, label("perhaps"), sample_id=None, now=NOW)


def test_a_sample_name_is_taken_once(store: Store, sample: Sample) -> None:
    with pytest.raises(BadInput, match="there is a sample 'w'"):
        store.samples.add(
            "w", design="random", by=None, seed=1, pool=10, undated=0, where=TraceFilter(), strata={},
            members=[], now=NOW,
        )  # fmt: skip
    assert store.samples.get("w") == sample
    assert [member.trace_pk for member in store.samples.members(sample.id)] == [7, 2, 9, 4]
    assert store.samples.at(sample.id, 2) == 9
