"""Requests that wait to be imported, on both databases: order, the one joiner, what is settled and what is gone."""

from __future__ import annotations

import threading
from datetime import timedelta

from calibrate.types import Arrival, Backlog, Chosen
from db import Store
from tests.db.make import NOW, records

LATER = NOW + timedelta(seconds=30)


def arrival(text: str, *, unpacked: int = 10) -> Arrival:
    return Arrival("json+gzip", text.encode(), 2, unpacked, NOW)


def test_requests_come_back_in_order_and_within_the_bytes(store: Store) -> None:
    store.received.append([arrival("a", unpacked=60), arrival("b", unpacked=30)])
    store.received.append([arrival("c", unpacked=30)])
    first = store.received.after(0, most_bytes=100)
    assert [each.arrival for each in first] == [arrival("a", unpacked=60), arrival("b", unpacked=30)]
    [last] = store.received.after(first[-1].key, most_bytes=1)  # at least one, whatever its size
    assert last.arrival.body == b"c"
    assert store.received.load([last.key, first[0].key, 10_000])[0] == first[0]
    assert store.received.backlog(NOW) == Backlog(3, 3, NOW, joining=False)


def test_no_key_is_given_twice(store: Store) -> None:
    store.received.append([arrival("a")])
    [first] = store.received.after(0, most_bytes=100)
    store.received.hold("one", now=NOW, until=LATER)
    assert store.received.settle("one", first.key, gone=[first.key])
    store.received.append([arrival("b")])
    assert store.received.after(first.key, most_bytes=100)[0].arrival.body == b"b"


def test_one_joiner_at_a_time(store: Store) -> None:
    store.received.append([arrival("a"), arrival("b")])
    first, second = (each.key for each in store.received.after(0, most_bytes=100))
    assert store.received.hold("one", now=NOW, until=LATER) == 0
    assert store.received.hold("two", now=NOW, until=LATER) is None
    assert store.received.hold("one", now=NOW, until=LATER) == 0
    assert store.received.settle("one", first)
    assert store.received.backlog(NOW) == Backlog(1, 1, NOW, joining=True)
    assert store.received.hold("two", now=LATER, until=LATER + timedelta(seconds=30)) == first
    assert not store.received.settle("one", second, gone=[first])  # it was away for too long
    assert len(store.received.load([first, second])) == 2
    store.received.leave("two", now=NOW)
    assert store.received.hold("three", now=NOW, until=LATER) == first


def test_a_purge_takes_imported_requests_along(store: Store) -> None:
    store.traces.add(records(1), labels_as=None, now=NOW)
    store.received.append([arrival("imported"), arrival("waiting")])
    first = store.received.after(0, most_bytes=1)[0].key
    store.received.hold("one", now=NOW, until=LATER)
    store.received.settle("one", first)
    store.purges.remove(Chosen(trace_ids=("t1",)), by="ann", now=NOW)
    assert [each.arrival.body for each in store.received.after(0, most_bytes=100)] == [b"waiting"]


def test_keys_grow_in_the_order_in_which_they_are_seen(store: Store) -> None:
    """A reader that goes on after the last key never passes over a request of another receiver."""
    seen: list[int] = []
    done = threading.Event()

    def read() -> None:
        while True:
            ended = done.is_set()
            seen.extend(each.key for each in store.received.after(seen[-1] if seen else 0, most_bytes=10**9))
            if ended:
                return

    def write() -> None:
        for n in range(25):
            store.received.append([arrival(str(n))])

    reader, writers = threading.Thread(target=read), [threading.Thread(target=write) for _ in range(3)]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert len(seen) == 75
    assert seen == sorted(seen)
