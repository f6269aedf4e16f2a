"""An import that a page began: stopped between batches, gone on with, and found again from another session."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calibrate.stats.sampling.designs import FLAGGED_ONLY
from db import Store, open_store
from db.audit import Actor, acting_as
from pages.traces.import_job import ImportFile, ImportJob, Labels, running_of
from pages.traces.import_report import progress_text

MANY = 20_000
DESIGN = Labels(design=FLAGGED_ONLY, by="ann")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/store.db")
    yield opened
    opened.close()


@pytest.fixture
def file(tmp_path: Path) -> ImportFile:
    path = tmp_path / "complaints.jsonl"
    lines = ({"trace_id": f"t{n}", "answer": f"{n}", "label": "clean"} for n in range(MANY))
    path.write_text("\n".join(map(json.dumps, lines)))
    return ImportFile(path.name, path)


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def stopped(store: Store, file: ImportFile, *, strict: bool = False, when: str) -> ImportJob:
    job = ImportJob(store, [file], labels=DESIGN, strict=strict)
    until(lambda: job.total(when))
    job.stop()
    until(lambda: not job.running)
    assert job.stopped
    assert job.files[0].problem is None
    return job


def test_a_stop_keeps_whole_batches_and_going_on_adds_the_rest(store: Store, file: ImportFile) -> None:
    job = stopped(store, file, when="imported")
    kept = store.traces.summary().traces
    assert job.total("imported") == kept
    assert 0 < kept < MANY
    assert store.samples.list() == []  # a part of the labels is not the sample that was stated
    rest = job.go_on()
    until(lambda: not rest.running)
    assert (rest.total("imported"), rest.total("duplicates")) == (MANY - kept, kept)
    assert not rest.stopped
    assert [(sample.name, sample.size) for sample in store.samples.list()] == [("complaints", MANY)]


def test_a_file_that_is_checked_first_can_be_stopped_before_anything_is_in(store: Store, file: ImportFile) -> None:
    job = stopped(store, file, strict=True, when="checked")
    assert progress_text(job).startswith("Checked ")
    assert store.traces.summary().traces == 0


def test_an_import_is_found_again_by_who_began_it_while_it_runs(store: Store, file: ImportFile) -> None:
    with acting_as(Actor("ann", "unstated")):
        job = ImportJob(store, [file], labels=Labels(), strict=False)
    assert running_of(store, "ann") is job
    assert running_of(store, "bob") is None
    job.stop()
    until(lambda: not job.running)
    assert running_of(store, "ann") is None


def test_the_total_of_a_file_is_said_to_be_an_estimate(store: Store, file: ImportFile) -> None:
    job = ImportJob(store, [file], labels=Labels(), strict=False)
    until(lambda: job.share > 0.1)
    assert " of about " in progress_text(job)
    until(lambda: not job.running)
    assert progress_text(job).startswith("20,000 of about 20,000 traces")
