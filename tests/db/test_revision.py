"""The revision by which reads are cached: every writer moves the groups it writes to, and no other."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from sqlalchemy import event, insert, text
from sqlalchemy.exc import OperationalError

from calibrate.errors import StoreError
from calibrate.types import (
    Arrival,
    Baseline,
    Chosen,
    ExternalDetector,
    Interval,
    Kind,
    Label,
    Member,
    OperatingPoint,
    Record,
    Sample,
    SampleOptions,
    Score,
    TraceFilter,
)
from db import Group, Store, open_store
from db.decisions import StoredDecision
from db.engine import Aggregate, writing
from db.exchange.annotations import queue
from db.exchange.external import NewScore
from db.labelling.assignments import Assignment
from db.points import PointData, SavedPoint
from db.releases import ReleaseRequest
from db.revision import TABLES
from db.tables import Base, TeamFileRow, table
from tests.db.make import NOW, ensemble, label, records, trace

ROOT = Path(__file__).parent.parent.parent
GROUPS: tuple[Group, ...] = get_args(Group)
LATER = NOW + timedelta(days=1)
REQUEST = ReleaseRequest(by="ann", note="")
EXTERNAL = ExternalDetector("ragas", "below", None, None, None, "1", "ann", NOW)


def add_external(store: Store, *, revision: str) -> None:
    scores = [NewScore(trace(1).content_hash(), 0.5, None)]
    store.external.add("ragas", scores, after="1", revision=revision, replacing=True, by="ann", now=NOW)


@pytest.fixture
def filled(store: Store) -> Store:
    """A little of everything, for each writer to have something to write to."""
    store.traces.add(records(10), labels_as=None, now=NOW)
    store.scores.config("overlap", "1", {}, "", now=NOW)
    store.external.save(EXTERNAL, now=NOW)
    store.external.save(replace(EXTERNAL, name="empty"), now=NOW)
    add_external(store, revision="1")
    draw_sample(store, "first", 1, 2, 3)
    draw_sample(store, "second", 4)
    for pk in (1, 2):
        store.labels.add(pk, Label(f"t{pk}", "rae", "clean"), sample_id=1, now=NOW)
    store.repeats.hand_out(1, "rae", share=1.0, gap=1, held=(), now=NOW)
    store.assignments.set(store.samples.list()[-1], Assignment("split"), by="ann", now=NOW)
    release(store)
    store.runs.queue([{"name": "overlap"}], {}, now=NOW)
    store.runs.claim("worker", now=NOW)
    store.certifications.start("overlap", config_id=1, sample_id=1, plan={}, by="ann", now=NOW)
    store.rechecks.begin("overlap", version=1, config_id=1, sample_id=1, plan={}, by="ann", now=NOW)
    store.proposals.add(REQUEST, expected=2, content="", now=NOW)
    store.pulls.begin("a pull", "phoenix", {}, now=NOW)
    store.decisions.keep(
        [replace(decision(2), tier="page")],
        tell={2},
        annotate=lambda connection, decisions: queue(connection, decisions, {"phoenix": {2}}),
    )
    return store


def draw_sample(store: Store, name: str, *pks: int) -> Sample:
    members, strata = [Member(pk, len(pks) / 10, "all") for pk in pks], {"all": (10, len(pks))}
    options: dict[str, Any] = {"design": "random", "by": None, "seed": 1, "pool": 10, "undated": 0}
    return store.samples.add(name, where=TraceFilter(), strata=strata, members=members, now=NOW, **options)


def hold(store: Store) -> None:
    with store.releases.holding():
        pass


def release(store: Store) -> None:
    with store.releases.adding(lambda *_: "a document", by="ann", note="", now=NOW):
        pass


def extend(store: Store) -> None:
    sample = store.samples.get("first")
    assert sample is not None
    store.samples.extend(sample, [Member(9, 0.4, "all")], strata={"all": (10, 4)}, options=SampleOptions())


def settle_flag(store: Store) -> None:
    store.flags.put(2, "ann", sample_id=None, note=None, now=NOW)
    store.flags.settle(2, "ann", by="lead", now=LATER)


def take(store: Store) -> None:
    store.assignments.take(1, "ann", 1, now=NOW, until=LATER)


def decision(pk: int) -> StoredDecision:
    return StoredDecision(pk, 1, "ACCEPT", "off", (), (), {}, NOW)


UNKNOWN = Interval(None)
POINT = OperatingPoint(
    "overlap", "above", 0.5, "manual", True, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 2, 1, 1, 0, 0, 1, 1.0
)
SAVED = SavedPoint(0, "overlap", 1, None, POINT, PointData((), None, "", 2, 1, None, None, (), ()), "ann", NOW)
WRITERS: dict[str, tuple[Callable[[Store], object], set[Group]]] = {
    "late.replace": (
        lambda s: s.late.replace([(trace(8).content_hash(), Record(1, trace(8, context="more")))], now=NOW),
        {"traces"},
    ),
    "received.append": (lambda s: s.received.append([Arrival("json", b"", 1, 0, NOW)]), set()),
    "received.hold": (lambda s: s.received.hold("ann", now=NOW, until=LATER), set()),
    "received.leave": (lambda s: s.received.leave("ann", now=NOW), set()),
    "received.settle": (lambda s: s.received.settle("ann", 1), set()),
    "external.save": (lambda s: s.external.save(replace(EXTERNAL, low=0.0), now=NOW), {"scores"}),
    "external.add": (lambda s: add_external(s, revision="2"), {"scores"}),
    "external.remove": (lambda s: s.external.remove("empty", by="ann", now=NOW), {"scores"}),
    "traces.add": (lambda s: s.traces.add(records(12), labels_as=None, now=NOW), {"traces"}),
    "labels.add": (lambda s: s.labels.add(1, label("clean"), sample_id=1, now=NOW), {"labels"}),
    "labels.add_many": (lambda s: s.labels.add_many([Label("t1", "ann", "clean")], now=NOW), {"labels"}),
    "labels.skip": (lambda s: s.labels.skip(1, sample_id=1, labeller="ann", now=NOW), {"skips"}),
    "samples.add": (lambda s: draw_sample(s, "third", 5, 6), {"samples"}),
    "samples.extend": (extend, {"samples"}),
    "samples.restate": (
        lambda s: s.samples.restate(
            s.samples.list()[0],
            design="feedback",
            pool=9,
            undated=0,
            where=TraceFilter(),
            stratum="all",
            options=SampleOptions(),
        ),
        {"samples"},
    ),
    "scores.config": (lambda s: s.scores.config("rouge_l", "1", {}, "", now=NOW), {"scores"}),
    "scores.save": (lambda s: s.scores.save(1, [("0" * 32, Score("", 0.5))], now=NOW), {"scores"}),
    "runs.queue": (lambda s: s.runs.queue([], {}, now=NOW), {"runs"}),
    "runs.claim": (lambda s: s.runs.claim("other worker", now=LATER), {"runs"}),
    "runs.progress": (lambda s: s.runs.progress(1, "worker", total=9, done=1, counts={}, now=NOW), {"runs"}),
    "runs.finish": (lambda s: s.runs.finish(1, "worker", "done", now=NOW), {"runs"}),
    "runs.beat": (lambda s: s.runs.beat(1, "worker", now=LATER), {"runs"}),
    "runs.requeue": (lambda s: s.runs.requeue(1, "worker", now=NOW), {"runs"}),
    "runs.stop": (lambda s: s.runs.stop(1, now=NOW), {"runs"}),
    "points.save": (lambda s: s.points.save(SAVED), {"points"}),
    "certifications.start": (
        lambda s: s.certifications.start("overlap", config_id=1, sample_id=None, plan={}, by="ann", now=NOW),
        {"points"},
    ),
    "certifications.set_fresh_sample": (lambda s: s.certifications.set_fresh_sample(1, 2), {"points"}),
    "certifications.finish": (lambda s: s.certifications.finish(1, {}, now=NOW), {"points"}),
    "ensembles.save": (lambda s: s.ensembles.save("both", ensemble(), by="ann", now=NOW), {"points"}),
    "releases.adding": (release, {"releases"}),
    "releases.holding": (hold, set()),
    "proposals.add": (lambda s: s.proposals.add(REQUEST, expected=2, content="", now=NOW), {"releases"}),
    "proposals.decline": (lambda s: s.proposals.decline(1, by="bob", now=NOW), {"releases"}),
    "decisions.keep": (lambda s: s.decisions.keep([decision(1)]), {"decisions"}),
    "outbox.claim": (lambda s: s.outbox.claim(9, now=NOW, until=LATER), {"outbox"}),
    "outbox.mark_told": (lambda s: s.outbox.mark_told([1], now=NOW), {"outbox"}),
    "outbox.postpone": (lambda s: s.outbox.postpone([1], error="it answered 500", until=LATER), {"outbox"}),
    "rechecks.begin": (
        lambda s: s.rechecks.begin("overlap", version=1, config_id=1, sample_id=2, plan={}, by="ann", now=NOW),
        {"rechecks"},
    ),
    "rechecks.finish": (lambda s: s.rechecks.finish(1, {}, now=NOW), {"rechecks"}),
    "files.save": (lambda s: s.files.save("prompts/a.txt", "text", by="ann", now=NOW), {"team"}),
    "repeats.hand_out": (lambda s: s.repeats.hand_out(1, "rae", share=1.0, gap=0, held=(), now=NOW), set()),
    "repeats.answer": (lambda s: s.repeats.answer("rae", 1, "clean", again=False, now=NOW), {"repeats"}),
    "guides.save": (lambda s: s.guides.save("Look.", [Kind("odd", "Odd")], by="ann", now=NOW, after=0), {"guides"}),
    "prompt_examples.save": (
        lambda s: s.prompt_examples.save("prompts/a.txt", "0f", {1: True}, guide=0, by="ann", now=NOW),
        {"labels"},
    ),
    "prompt_examples.keep_comparison": (
        lambda s: s.prompt_examples.keep_comparison("judge", "0f", "1e", {}, by="ann", now=NOW),
        {"team"},
    ),
    "assignments.set": (
        lambda s: s.assignments.set(s.samples.list()[0], Assignment("split"), by="ann", now=NOW),
        {"assignments"},
    ),
    "flags.put": (lambda s: s.flags.put(1, "ann", sample_id=None, note="why?", now=NOW), {"flags"}),
    "flags.remove": (lambda s: s.flags.remove(1, "ann"), {"flags"}),
    "flags.settle": (settle_flag, {"flags"}),
    "assignments.take": (take, {"leases"}),
    "assignments.give_back": (lambda s: s.assignments.give_back(1, "ann", [1]), {"leases"}),
    "answers.add": (lambda s: s.answers.add(1, label("clean"), sample_id=1, seen=None, now=NOW), {"labels"}),
    "audit.refused": (lambda s: s.audit.refused("the page Release"), set()),
    "audit.note": (lambda s: s.audit.note("purged", "a trace", by="ann"), set()),
    "purges.remove": (
        lambda s: s.purges.remove(Chosen(trace_ids=("t1",)), by="ann", now=NOW),
        {"traces", "scores", "labels", "flags", "outbox", "annotations", "replies", "purges"},
    ),
    "logged.settle": (lambda s: s.logged.settle([1]), {"traces"}),
    "purges.compacted": (lambda s: s.purges.compacted(now=NOW), {"purges"}),
    "pulls.begin": (lambda s: s.pulls.begin("another", "phoenix", {}, now=NOW), {"pulls"}),
    "pulls.advance": (lambda s: s.pulls.advance("a pull", {"at": 1}, traces=2, now=NOW), {"pulls"}),
    "pulls.finish": (lambda s: s.pulls.finish("a pull", now=NOW), {"pulls"}),
    "pulls.forget": (lambda s: s.pulls.forget("a pull"), {"pulls"}),
    "origins.note": (lambda s: s.origins.note("a pull", "phoenix", ["t1"]), {"pulls"}),
    "annotations.claim": (lambda s: s.annotations.claim("phoenix", 9, now=NOW, until=LATER), {"annotations"}),
    "annotations.mark_told": (lambda s: s.annotations.mark_told([1], now=NOW), {"annotations"}),
    "annotations.postpone": (lambda s: s.annotations.postpone([1], error="busy", until=LATER), {"annotations"}),
    "annotations.give_up": (lambda s: s.annotations.give_up([1], error="gone", now=NOW), {"annotations"}),
    "baselines.save": (lambda s: s.baselines.save([Baseline("entropy/mean", "m", 1.0, 0.2, 40, NOW)]), {"team"}),
    "replies.put": (lambda s: s.replies.put("k" * 64, "judge", {}), {"replies"}),
    "drawn.save": (lambda s: s.drawn.save("0" * 32, ["other"], {}, detectors=[], now=NOW), {"traces", "scores"}),
}


def moved(before: tuple[tuple[Group, int], ...], after: tuple[tuple[Group, int], ...]) -> set[Group]:
    return {group for group, _ in set(after) - set(before)}


@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_moves_its_groups_and_no_other(filled: Store, name: str) -> None:
    write, groups = WRITERS[name]
    before = filled.revision()
    assert hash(before) == hash(filled.revision())
    write(filled)
    assert moved(before, filled.revision()) == groups


def test_every_writer_is_tried(tmp_path: Path) -> None:
    """A public method that opens a write transaction, itself or by a helper of `Aggregate`, has its line above."""
    helpers = [
        f"self.{name}(" for name, method in inspect.getmembers(Aggregate, inspect.isfunction)
        if re.search(r"writing\(", inspect.getsource(method))
    ]  # fmt: skip
    assert sorted(helpers) == ["self._execute(", "self._writing("]
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    writers = {
        f"{part}.{name}"
        for part, aggregate in vars(store).items()
        if isinstance(aggregate, Aggregate)
        for name, method in inspect.getmembers(type(aggregate), inspect.isfunction)
        if not name.startswith("_") and any(helper in inspect.getsource(method) for helper in helpers)
    }
    assert writers == set(WRITERS)


def test_every_table_is_in_one_group() -> None:
    assert sorted(name for names in TABLES.values() for name in names) == sorted(
        set(Base.metadata.tables) - {"revisions", "audit", "received", "joiners"}
    )
    assert set(TABLES) == set(GROUPS)


def test_labels_that_come_along_with_traces_move_labels_too(filled: Store) -> None:
    record = records(1)[0].__class__(1, trace(1), (Label("t1", "", "clean"),))
    before = filled.revision()
    filled.traces.add([record], labels_as="gold", now=NOW)
    assert moved(before, filled.revision()) == {"labels"}  # the trace itself is there already
    again = filled.revision()
    filled.traces.add([record], labels_as="gold", now=NOW)
    assert filled.revision() == again


def test_only_the_groups_asked_for_are_told(filled: Store) -> None:
    labels, both = filled.revision("labels"), filled.revision("labels", "runs")
    filled.runs.queue([], {}, now=NOW)
    assert filled.revision("labels") == labels
    assert filled.revision("labels", "runs") != both
    assert {group for group, _ in filled.revision()} == set(GROUPS)
    with pytest.raises(ValueError, match="no group of tables is called 'lables'"):
        filled.revision("lables")  # type: ignore[arg-type]


def test_what_is_rolled_back_moves_nothing(filled: Store) -> None:
    before = filled.revision()
    with pytest.raises(RuntimeError, match="no"), filled.releases.adding(lambda *_: "x", by="a", note="", now=NOW):
        raise RuntimeError("no")
    with pytest.raises(StoreError):
        filled.labels.add(999, label("clean"), sample_id=None, now=NOW)  # a trace that is not there
    assert filled.revision() == before


def test_a_write_past_the_one_way_is_refused(filled: Store) -> None:
    """A writer that opened a transaction of its own would leave every cache as it was."""
    row = {"name": "a", "text": None, "saved_by": "ann", "saved_at": NOW}
    with pytest.raises(RuntimeError, match="write to team_files outside"), filled.engine.begin() as connection:
        connection.execute(insert(table(TeamFileRow)), [row])
    before = filled.revision()
    with writing(filled.engine) as connection:
        connection.execute(insert(table(TeamFileRow)), [row])
    assert moved(before, filled.revision()) == {"team"}


def test_another_process_moves_it_too(filled: Store, store_url: str) -> None:
    code = (
        "import sys; from datetime import UTC, datetime; from db import open_store\n"
        "open_store(sys.argv[1]).files.save('a', 'b', by='ann', now=datetime.now(UTC))"
    )
    before = filled.revision()
    subprocess.run([sys.executable, "-c", code, store_url], cwd=ROOT, check=True)
    assert moved(before, filled.revision()) == {"team"}


def test_a_store_made_anew_has_no_revision_of_the_old(tmp_path: Path) -> None:
    """What is cached by URL and revision must not outlive the file."""
    seen = []
    for _ in range(2):
        (tmp_path / "x.db").unlink(missing_ok=True)
        store = open_store(f"sqlite:///{tmp_path}/x.db")
        store.files.save("a", "b", by="ann", now=NOW)
        seen.append(store.revision("team"))
        store.close()
    assert seen[0] != seen[1]


def test_it_costs_one_query(filled: Store) -> None:
    statements: list[str] = []
    event.listen(filled.engine, "before_cursor_execute", lambda _, __, statement, *___: statements.append(statement))
    filled.revision()
    assert len([statement for statement in statements if statement.startswith("SELECT")]) == 1


@pytest.mark.postgres
def test_writers_of_one_group_wait_only_for_each_others_commit(postgres_url: str) -> None:
    """A group's row is locked last of all: a long transaction that has not come to its end holds nobody up."""
    store, second = open_store(postgres_url), open_store(postgres_url)
    with writing(store.engine) as slow:
        slow.execute(insert(table(TeamFileRow)), [{"name": "a", "saved_by": "ann", "saved_at": NOW}])
        with second.engine.connect() as connection:
            connection.execute(text("SET lock_timeout = '1s'"))
            connection.commit()
        try:
            second.files.save("b", None, by="bob", now=NOW)
        except (StoreError, OperationalError):
            pytest.fail("the second writer waited for the first")
    assert {file.name for file in [*store.files.history("a"), *store.files.history("b")]} == {"a", "b"}
    store.close()
    second.close()
