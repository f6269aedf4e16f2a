"""Flags for the lead: one a trace and labeller, open until settled or taken back, gone with the text they quote."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from calibrate.errors import BadInput
from calibrate.types import Chosen, Label, Record, Trace
from calibrate.workflow.labelling import flags
from db import Store

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def traces(store: Store) -> None:
    records = [Record(n, Trace(f"t{n}", f"answer {n}")) for n in (1, 2)]
    store.traces.add(records, labels_as=None, now=NOW)


def waiting(store: Store) -> list[tuple[str, str, str | None]]:
    return [(flag.trace_id, flag.labeller, flag.note) for flag in flags.open_flags(store)]


def test_a_flag_waits_until_somebody_settles_it(store: Store) -> None:
    flags.raise_flag(store, 1, "ann", note="  is the price\nof 2024? ", now=NOW)
    flags.raise_flag(store, 2, "ann", now=NOW + timedelta(hours=1))
    flags.raise_flag(store, 1, "bob", now=NOW + timedelta(hours=2))
    assert waiting(store) == [("t1", "ann", "is the price of 2024?"), ("t2", "ann", None), ("t1", "bob", None)]
    assert flags.settle(store, 1, "ann", by="lead", now=NOW)
    assert not flags.settle(store, 1, "ann", by="lead", now=NOW)
    assert waiting(store) == [("t2", "ann", None), ("t1", "bob", None)]
    (entry, *_) = store.audit.entries()
    assert (entry.verb, entry.what) == ("flag settled", "t1")
    flags.raise_flag(store, 1, "ann", note="still?", now=NOW)
    assert waiting(store)[0] == ("t1", "ann", "still?")


def test_one_takes_back_only_ones_own_and_only_while_it_is_open(store: Store) -> None:
    flags.raise_flag(store, 1, "ann", now=NOW)
    flags.withdraw(store, 1, "bob")
    assert waiting(store) == [("t1", "ann", None)]
    flags.withdraw(store, 1, "ann")
    assert waiting(store) == []


def test_a_flag_is_no_label(store: Store) -> None:
    store.labels.add(1, Label("t1", "ann", "clean"), sample_id=None, now=NOW)
    before = (store.labels.gold_counts(), store.revision("labels"))
    flags.raise_flag(store, 1, "ann", note="hm", now=NOW)
    assert (store.labels.gold_counts(), store.revision("labels")) == before


def test_a_note_that_is_too_long_is_refused(store: Store) -> None:
    with pytest.raises(BadInput, match="at most 500 characters, not 501"):
        flags.raise_flag(store, 1, "ann", note="x" * 501, now=NOW)


def test_what_a_flag_says_goes_with_the_text(store: Store) -> None:
    flags.raise_flag(store, 1, "ann", note="is answer 1 so?", now=NOW)
    removed = store.purges.remove(Chosen(trace_ids=("t1",)), by="lead", now=NOW)
    assert removed.counts.notes == 1
    assert waiting(store) == [("t1", "ann", None)]
