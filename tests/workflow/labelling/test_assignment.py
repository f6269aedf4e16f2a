"""Who labels what: nobody gets another's trace unless it is for two, whoever asks at once, on both databases."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from calibrate.errors import BadInput
from calibrate.types import Chosen, Label, Member, Record, Sample, Trace, TraceFilter
from calibrate.workflow.labelling.assignment import LEASE, assign, assignment_of, give_back, next_items
from calibrate.workflow.upkeep import moving
from db import Store, open_store

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = NOW + LEASE
ROOT = Path(__file__).resolve().parents[3]


def draw(store: Store, size: int) -> Sample:
    traces = [Trace(f"t{n}", f"answer {n}") for n in range(1, size + 1)]
    store.traces.add([Record(n, trace) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    members = [Member(pk, 1.0, "all") for pk in range(size, 0, -1)]
    return store.samples.add(
        "w", design="random", by=None, seed=1, pool=size, undated=0, where=TraceFilter(), strata={"all": (size, size)},
        members=members, now=NOW,
    )  # fmt: skip


def say(store: Store, sample: Sample, pk: int, who: str) -> None:
    store.labels.add(pk, Label(f"t{pk}", who, "clean"), sample_id=sample.id, now=NOW)


def test_everyone_labels_all_unless_somebody_says_otherwise(store: Store) -> None:
    sample = draw(store, 4)
    assert assignment_of(store, sample).mode == "everyone"
    assert next_items(store, sample, "ann", 3, now=NOW) == [4, 3, 2]
    say(store, sample, 4, "ann")
    store.labels.skip(3, sample_id=sample.id, labeller="ann", now=NOW)
    assert next_items(store, sample, "ann", 9, now=NOW) == [2, 1, 3]  # what she skipped comes last
    assert next_items(store, sample, "bob", 9, now=NOW) == [4, 3, 2, 1]
    with pytest.raises(BadInput, match="an overlap of 2 is no share"):
        assign(store, sample, "split", overlap=2, by="ann", now=NOW)
    with pytest.raises(BadInput, match="0 traces cannot be handed out"):
        next_items(store, sample, "ann", 0, now=NOW)


@pytest.mark.both_databases
def test_a_lease_keeps_others_away_until_it_runs_out(store: Store) -> None:
    sample = draw(store, 4)
    assign(store, sample, "split", overlap=0, by="ann", now=NOW)
    assert next_items(store, sample, "ann", 2, now=NOW) == [4, 3]
    assert next_items(store, sample, "bob", 9, now=NOW) == [2, 1]
    assert next_items(store, sample, "cy", 9, now=NOW) == []
    say(store, sample, 4, "ann")
    assert next_items(store, sample, "ann", 2, now=LATER - timedelta(seconds=1)) == [3]  # renewed
    assert next_items(store, sample, "cy", 9, now=LATER) == [2, 1]  # bob's have run out, ann's has not
    assert next_items(store, sample, "bob", 9, now=LATER) == []
    say(store, sample, 2, "bob")  # too late, and it counts like any other
    assert next_items(store, sample, "cy", 9, now=LATER) == [1]
    store.labels.skip(1, sample_id=sample.id, labeller="cy", now=NOW)
    give_back(store, sample, "cy", [1])
    assert next_items(store, sample, "bob", 9, now=LATER) == [1]
    store.purges.remove(Chosen(trace_ids=("t1",)), by="ann", now=NOW)
    assert next_items(store, sample, "bob", 9, now=LATER) == []  # nobody can read it any more


@pytest.mark.both_databases
def test_at_once_nobody_gets_anothers_and_all_is_labelled(store: Store) -> None:
    """Four people through a sample of 40 at once, three traces at a time: each trace is labelled by one, or by two."""
    sample = draw(store, 40)
    assignment = assign(store, sample, "split", overlap=0.3, seed=5, by="ann", now=NOW)
    ready, trouble = threading.Barrier(4), []

    def work(who: str) -> None:
        ready.wait()
        try:
            while taken := next_items(store, sample, who, 3, now=NOW):
                for pk in taken:
                    say(store, sample, pk, who)
        except Exception as error:
            trouble.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in ("ann", "bob", "cy", "dee")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not trouble
    labels = Counter(label.trace_id for label in store.labels.export())
    assert labels == {f"t{pk}": 2 if assignment.twice(pk) else 1 for pk in range(1, 41)}
    assert 0 < sum(n == 2 for n in labels.values()) < 40


@pytest.mark.both_databases
def test_processes_share_a_sample_too(store: Store, store_url: str) -> None:
    sample = draw(store, 12)
    assign(store, sample, "split", overlap=0, by="ann", now=NOW)
    code = (
        "import sys; from datetime import UTC, datetime; from db import open_store\n"
        "from calibrate.workflow.labelling.assignment import next_items\n"
        "store = open_store(sys.argv[1]); sample = store.samples.get('w')\n"
        "print(*next_items(store, sample, sys.argv[2], 5, now=datetime(2026, 11, 21, 12, tzinfo=UTC)))"
    )
    commands = [[sys.executable, "-c", code, store_url, who] for who in ("ann", "bob", "cy")]
    started = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for command in commands]
    taken = [int(pk) for process in started for pk in process.communicate(timeout=100)[0].split()]
    assert sorted(taken) == list(range(1, 13))  # five, five and the two that are left


def test_the_overlap_is_as_large_as_it_says(store: Store) -> None:
    """Of 20,000 traces 20% are for two, to 4 standard errors; the same seed gives the same traces."""
    sample = draw(store, 1)
    assignment = assign(store, sample, "split", seed=3, by="ann", now=NOW)
    twice = [pk for pk in range(20_000) if assignment.twice(pk)]
    assert abs(len(twice) / 20_000 - 0.2) < 4 * (0.2 * 0.8 / 20_000) ** 0.5
    again = assign(store, sample, "split", overlap=0.4, by="ann", now=NOW)
    assert {pk for pk in twice if again.twice(pk)} == set(twice)  # a larger overlap keeps those there were
    (entry, _) = store.audit.entries(verb="sample assigned")
    assert (entry.before, entry.after) == (
        {"mode": "split", "overlap": 0.2}, {"mode": "split", "overlap": 0.4, "seed": 3},
    )  # fmt: skip


def test_an_assignment_moves_with_the_store(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    sample = draw(store, 2)
    assign(store, sample, "split", overlap=0, by="ann", now=NOW)
    next_items(store, sample, "ann", 1, now=NOW)
    moving.export_all(store, tmp_path / "a.zip", now=NOW)
    moving.import_all(f"sqlite:///{tmp_path}/b.db", tmp_path / "a.zip")
    moved = open_store(f"sqlite:///{tmp_path}/b.db")
    assert assignment_of(moved, sample) == assignment_of(store, sample)
    assert next_items(moved, sample, "bob", 9, now=NOW) == [1]
    for each in (store, moved):
        each.close()
