"""A purge leaves no byte of a purged text anywhere, and every verdict, value and figure where it was."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import inspect, text

from calibrate.backends.embedding import vectors
from calibrate.cli import main
from calibrate.engines.background import log_path
from calibrate.errors import BadInput
from calibrate.types import (
    Chosen,
    Evidence,
    Label,
    Member,
    PurgeCounts,
    Record,
    Score,
    Source,
    Span,
    Token,
    Trace,
    TraceFilter,
    Usage,
)
from calibrate.workflow.detection import detect
from calibrate.workflow.sampling import sample as sampling
from calibrate.workflow.upkeep.purge import choose, purge
from db import Store, open_store
from db.decisions import StoredDecision
from db.releases import ReleaseRequest
from tests.db.make import NOW

CANARY = "canary-7f3a91"
SHARED = "a passage that many traces were given"


def trace(n: int, words: str, **given) -> Trace:
    usual = {
        "question": f"question {words}",
        "context": f"context {words}",
        "sources": (Source("1", f"source {words}", f"title {words}"), Source("2", SHARED)),
        "tokens": (Token(words, -0.1, ((words, -0.1),)),),
        "alternatives": (f"other {words}", "another") if n % 2 else (),
        "schema": {"const": words},
        "model": "m",
        "timestamp": NOW - timedelta(days=n),
        "attributes": {"user": words, "channel": "web"},
    }
    return Trace(f"t{n}", f"answer {words} {n}", **{**usual, **given})


@pytest.fixture
def filled(store: Store) -> Store:
    """t1 to t4 hold the canary in every place that a text may come to; t5 to t8 hold none, and share a source."""
    traces = [trace(n, CANARY if n <= 4 else f"harmless {n}") for n in range(1, 9)]
    store.traces.add([Record(n, each) for n, each in enumerate(traces, 1)], labels_as=None, now=NOW)
    for n, each in enumerate(traces, 1):
        words = CANARY if n <= 4 else "harmless"
        spans = (Span(0, 6, "fabrication"),)
        label = Label(each.id, "ann", "hallucinated" if n % 2 else "clean", spans=spans, note=f"see {words}", seconds=3)
        store.labels.add(n, label, sample_id=None, now=NOW)
        store.replies.put(f"key{n}", "judge", {"choices": [{"text": words}]}, about=each.id)
        if not each.alternatives:
            store.drawn.save(each.content_hash(), [f"drawn {words}", "b"], {"n": 2}, detectors=(), now=NOW)
    config = store.scores.config("overlap", "1", {}, "", now=NOW)
    judge = store.scores.config("judge", "1", {}, "", now=NOW)
    for n, each in enumerate(traces, 1):
        words = CANARY if n <= 4 else "harmless"
        score = Score(each.id, n / 10, None, "scored", (Evidence(f"lacks {words}", 0.1),), 0.5, Usage(1))
        failed = Score(each.id, None, f"cannot read {words}", "abstained")
        store.scores.save(config.id, [(each.content_hash(), score)], now=NOW)
        store.scores.save(judge.id, [(each.content_hash(), failed)], now=NOW)
    members = [Member(n, 0.5, "all") for n in (2, 5, 1, 6)]
    store.samples.add(
        "s", design="random", by=None, seed=1, pool=8, undated=0, where=TraceFilter(attributes={"user": CANARY}),
        strata={"all": (8, 4)}, members=members, now=NOW,
    )  # fmt: skip
    run = store.runs.queue([{"name": "overlap"}], {"all": True}, now=NOW)
    store.runs.claim("w:1", now=NOW)
    why = {f"cannot read {CANARY}": 4, "cannot read harmless": 4, "a refusal": 1}
    store.runs.progress(run.id, "w:1", total=8, done=8, counts={"judge": {"scored": 0, "why": why}}, now=NOW)
    store.runs.finish(run.id, "w:1", "failed", now=NOW, error=f"ValueError: {CANARY}")
    with store.releases.adding(lambda *_: "a document", by="ann", note="", now=NOW):
        pass
    decisions = [
        StoredDecision(n, 1, "REVIEW", "page", ("overlap",), (f"overlap lacks {CANARY}",), {"overlap": n / 10}, NOW)
        for n in (1, 2)
    ]
    store.decisions.keep(decisions, tell=[1])
    request = ReleaseRequest(note=f"users complained of {CANARY}, and this is better", by="ann")
    store.proposals.add(request, expected=2, content="digest", now=NOW)
    return store


def dump(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, as the database has it."""
    with store.engine.connect() as connection:
        names = inspect(store.engine).get_table_names()
        return {name: [tuple(row) for row in connection.execute(text(f'SELECT * FROM "{name}"'))] for name in names}


def holding(store: Store, word: str) -> set[str]:
    return {name for name, rows in dump(store).items() if any(word in repr(row) for row in rows)}


def files_with(folder: Path, word: bytes) -> list[str]:
    return [path.name for path in sorted(folder.rglob("*")) if path.is_file() and word in path.read_bytes()]


@pytest.mark.both_databases
def test_no_row_holds_a_purged_text_and_every_verdict_and_value_stays(filled: Store) -> None:
    everywhere = {
        "traces", "sources", "texts", "labels", "replies", "drawn_alternatives", "scores", "samples", "runs",
        "decisions", "proposals", "audit",
    }  # fmt: skip
    assert holding(filled, CANARY) == everywhere
    before = dump(filled)
    chosen = choose(filled, where=[("user", CANARY)])
    planned = filled.purges.count(chosen)
    purged = purge(filled, chosen, by="ann", now=NOW)
    assert purged.counts == planned
    assert planned == PurgeCounts(
        traces=4, texts=2, alternatives=4, evidence=8, replies=4, notes=4, spans=4, decisions=2, alerts=1
    )
    assert purged.compacted
    assert holding(filled, CANARY) == set()
    after = dump(filled)
    for name in ("gold", "sample_members", "releases", "detector_configs", "skips"):
        assert after[name] == before[name]
    assert [(lab.trace_id, lab.labeller, lab.verdict, lab.seconds) for lab in filled.labels.export()] == [
        (f"t{n}", "ann", "hallucinated" if n % 2 else "clean", 3.0) for n in range(1, 9)
    ]
    (config,) = filled.scores.configs("overlap")
    assert [row.value for row in filled.scores.labelled(config.id)] == [n / 10 for n in range(1, 9)]
    assert [line.gold for line in filled.samples.lines(1)] == ["clean", "hallucinated", "hallucinated", "clean"]
    decision = filled.decisions.of(1)[0]
    assert (decision.verdict, decision.tier, decision.flags, decision.reasons) == (
        "REVIEW", "page", ("overlap",), ("purged",)
    )  # fmt: skip
    assert filled.outbox.count() == 0
    (run,) = filled.runs.recent()
    assert run.counts["judge"]["why"] == {"cannot read harmless": 4, "a refusal": 1, "purged": 4}
    assert run.error == "purged"
    (proposal,) = filled.proposals.list()
    assert proposal.request.note == "users complained of [purged] and this is better"


@pytest.mark.both_databases
def test_what_is_kept_is_as_it_was(filled: Store) -> None:
    before = filled.traces.load(range(5, 9))
    replies = [filled.replies.get(f"key{n}") for n in range(5, 9)]
    purge(filled, Chosen(trace_ids=("t1", "t2", "t3", "t4")), by="ann", now=NOW)
    assert filled.traces.load(range(5, 9)) == before
    assert [filled.replies.get(f"key{n}") for n in range(5, 9)] == replies
    assert [label.note for label in filled.labels.of_trace(5)] == ["see harmless"]
    trace_of = filled.traces.load([1])[0]
    assert (trace_of.id, trace_of.answer, trace_of.purged_at, trace_of.model) == ("t1", "", NOW, "m")
    assert (trace_of.question, trace_of.sources, trace_of.tokens, trace_of.attributes) == (None, (), None, {})


def test_no_byte_of_the_files_holds_a_purged_text(tmp_path, sqlite_url, monkeypatch) -> None:
    """The file, its log and its index, with another connection open; embeddings and logs of runs besides."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("TOUCHSTONE_CACHE", str(cache))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = open_store(sqlite_url)
    other = open_store(sqlite_url)
    filler = "x" * 5000  # pages of their own, so that deleted ones are free ones
    traces = [trace(n, f"{CANARY} {filler}", attributes={"user": "u"}) for n in range(1, 30)]
    store.traces.add([Record(n, each) for n, each in enumerate(traces, 1)], labels_as=None, now=NOW)
    for n in range(1, 30):
        store.replies.put(f"key{n}", "judge", {"choices": [{"text": f"{CANARY} {filler}"}]}, about=f"t{n}")
    assert other.traces.count(TraceFilter()) == 29
    kept = vectors.Vectors("model", vectors.location(), limit=10**9)
    kept.add({CANARY.encode(): np.ones(8, dtype=np.float32)})
    log_path(sqlite_url, 1).write_text(f"failed on {CANARY}")
    assert len(files_with(tmp_path, CANARY.encode())) >= 3
    purged = purge(store, choose(store, before=NOW + timedelta(days=1)), by="ann", now=NOW)
    assert (purged.counts.traces, purged.logs, purged.vectors, purged.compacted) == (29, 1, True, True)
    assert files_with(tmp_path, CANARY.encode()) == []
    assert files_with(tmp_path, b"xxxxxxxxxxxx") == []
    assert kept.get([CANARY.encode()]) == {}
    assert sqlite3.connect(tmp_path / "touchstone.db").execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store.close()
    other.close()


def test_a_reader_that_holds_the_store_is_told_of_and_the_next_purge_finishes(filled: Store, capsys) -> None:
    if filled.file is None:
        pytest.skip("PostgreSQL has no log that a reader of ours holds")
    with filled.engine.connect() as reader:
        reader.execute(text("SELECT count(*) FROM traces")).all()
        held = purge_quickly(filled)
        assert held.compacted is False
        assert filled.purges.waiting()
    done = purge(filled, Chosen(where=(("user", CANARY),)), by="ann", now=NOW)
    assert (done.counts.traces, done.compacted) == (0, True)
    assert not filled.purges.waiting()
    assert files_with(filled.file.parent, CANARY.encode()) == []


def purge_quickly(store: Store):
    from db.upkeep import compact

    patience, compact.PATIENCE = compact.PATIENCE, 0.2
    try:
        return purge(store, Chosen(where=(("user", CANARY),)), by="ann", now=NOW)
    finally:
        compact.PATIENCE = patience


@pytest.mark.both_databases
def test_a_text_that_a_kept_trace_uses_stays(store: Store) -> None:
    same = {"question": "q", "alternatives": (), "context": None, "tokens": None, "attributes": {}}
    first = trace(1, CANARY, **same)
    twin = replace(first, id="twin")
    third = trace(3, "other", sources=(Source("1", f"source {CANARY}"),), **same)
    store.traces.add([Record(n, each) for n, each in enumerate((first, twin, third), 1)], labels_as=None, now=NOW)
    store.drawn.save(first.content_hash(), [CANARY, "b"], {"n": 2}, detectors=(), now=NOW)
    counts = purge(store, Chosen(trace_ids=("t1",)), by="ann", now=NOW).counts
    assert (counts.traces, counts.texts, counts.alternatives) == (1, 0, 0)
    assert store.traces.load([2])[0].alternatives == (CANARY, "b")
    counts = purge(store, Chosen(trace_ids=("twin",)), by="ann", now=NOW).counts
    assert (counts.traces, counts.texts, counts.alternatives) == (1, 1, 1)
    assert store.traces.load([3])[0].sources == third.sources


@pytest.mark.both_databases
def test_what_was_purged_does_not_come_back_unasked(filled: Store) -> None:
    purge(filled, Chosen(trace_ids=("t1", "t2")), by="ann", now=NOW)
    same = Record(1, trace(1, CANARY), (Label("t1", "", "clean"),))
    renamed = Record(2, replace(trace(2, CANARY), id="renamed"))
    standing = Record(3, replace(trace(5, "harmless 5"), id="copy"))
    added = filled.traces.add([same, renamed, standing], labels_as="file", now=NOW)
    assert (added.imported, added.duplicates, added.labels) == (1, 0, 0)
    assert added.purged == ((1, "t1"), (2, "renamed"))
    again = filled.traces.add([same, renamed], labels_as="file", now=NOW, again=True)
    assert (again.imported, again.purged, again.labels) == (2, (), 1)
    assert filled.traces.load([1])[0] == trace(1, CANARY)
    judge, = filled.scores.configs("judge")  # fmt: skip
    contents = [trace(1, CANARY).content_hash(), trace(2, CANARY).content_hash()]
    assert filled.scores.reusable(judge.id, contents) == {}
    (overlap,) = filled.scores.configs("overlap")
    assert [score.value for score in filled.scores.reusable(overlap.id, contents).values()] == [0.1, 0.2]


@pytest.mark.both_databases
def test_the_queue_passes_over_purged_members_and_figures_do_not_wait_for_them(store: Store) -> None:
    traces = [trace(n, f"harmless {n}") for n in range(1, 9)]
    store.traces.add([Record(n, each) for n, each in enumerate(traces, 1)], labels_as=None, now=NOW)
    members = [Member(n, 0.5, "all") for n in (3, 1, 2, 4)]
    sample = store.samples.add(
        "s", design="random", by=None, seed=1, pool=8, undated=0, where=TraceFilter(), strata={"all": (8, 4)},
        members=members, now=NOW,
    )  # fmt: skip
    purge(store, Chosen(trace_ids=("t3",)), by="ann", now=NOW)
    place = store.labels.place(sample.id, "ann")
    assert (place.position, place.labelled, place.purged, place.size) == (1, 0, 1, 4)
    for pk in (1, 2):
        store.labels.add(pk, Label(f"t{pk}", "ann", "clean", note="n"), sample_id=sample.id, now=NOW)
    place = store.labels.place(sample.id, "ann")
    assert (place.position, place.labelled, place.purged) == (3, 2, 1)
    assert [gold for _, gold in store.samples.verdicts(sample.id)] == ["purged", "clean", "clean", None]
    store.labels.add(3, Label("t3", "bob", "clean", spans=(Span(0, 1),), note=CANARY), sample_id=None, now=NOW)
    (label,) = store.labels.of_trace(3)
    assert (label.verdict, label.note, label.spans) == ("clean", None, ())


def test_a_sample_is_drawn_from_what_can_be_read_and_topped_up_from_what_could(store: Store) -> None:
    traces = [trace(n, f"harmless {n}") for n in range(1, 41)]
    store.traces.add([Record(n, each) for n, each in enumerate(traces, 1)], labels_as=None, now=NOW)
    purge(store, Chosen(trace_ids=tuple(f"t{n}" for n in range(1, 21))), by="ann", now=NOW)
    drawn = sampling.draw(store, "s", size=20, design="random", where=TraceFilter(), seed=1, now=NOW)
    assert sorted(member.trace_pk for member in store.samples.members(drawn.id)) == list(range(21, 41))
    assert drawn.strata == {"all": (20, 20)}
    small = sampling.draw(store, "small", size=4, design="random", where=TraceFilter(), seed=1, now=NOW)
    purge(store, Chosen(trace_ids=("t40",)), by="ann", now=NOW + timedelta(days=1))
    from calibrate.workflow.sampling.topup import top_up

    more = top_up(store, "small", more=16, seed=2, now=NOW)
    assert more.size == 20
    assert {member.trace_pk for member in store.samples.members(small.id)} == set(range(21, 41))


def test_a_rerun_leaves_old_scores_and_says_purged_for_the_rest(store: Store) -> None:
    traces = [trace(n, f"harmless {n}") for n in range(1, 5)]
    store.traces.add([Record(n, each) for n, each in enumerate(traces, 1)], labels_as=None, now=NOW)

    def run() -> dict[str, int]:
        detect.queue(store, ["word_overlap"], {"all": True})
        done = detect.work(store)
        assert done is not None
        assert done.status == "done"
        return done.counts["word_overlap"]

    assert run()["scored"] == 4
    (config,) = store.scores.configs("word_overlap")
    before = [row.value for row in store.scores.members(config.id, sample_of(store))]
    purge(store, Chosen(trace_ids=("t1", "t2")), by="ann", now=NOW)
    assert (run()["reused"], run()["abstained"]) == (4, 0)
    assert [row.value for row in store.scores.members(config.id, sample_of(store))] == before
    detect.queue(store, ["token_overlap"], {"all": True})
    done = detect.work(store)
    assert done is not None
    assert done.counts["token_overlap"]["why"] == {"purged": 2}
    assert done.counts["token_overlap"]["scored"] == 2


def sample_of(store: Store) -> int:
    if (sample := store.samples.get("every")) is None:
        members = [Member(n, 1.0, "all") for n in range(1, 5)]
        sample = store.samples.add(
            "every", design="random", by=None, seed=1, pool=4, undated=0, where=TraceFilter(), strata={"all": (4, 4)},
            members=members, now=NOW,
        )  # fmt: skip
    return sample.id


@pytest.mark.both_databases
def test_an_importer_that_was_open_does_not_trust_texts_that_a_purge_took(store_url: str) -> None:
    importer, purger = open_store(store_url), open_store(store_url)
    importer.traces.add([Record(1, trace(1, CANARY))], labels_as=None, now=NOW)
    purge(purger, Chosen(trace_ids=("t1",)), by="ann", now=NOW)
    importer.traces.add([Record(1, trace(9, "new", sources=(Source("1", SHARED),)))], labels_as=None, now=NOW)
    assert importer.traces.load([2])[0].sources[0].text == SHARED
    importer.close()
    purger.close()


@pytest.mark.both_databases
def test_a_purge_that_was_killed_half_way_is_finished_by_the_next(filled: Store, monkeypatch) -> None:
    from db.upkeep import purges

    monkeypatch.setattr(purges, "BATCH", 2)
    calls = iter(range(9))
    real = purges._remove

    def dying(*args):
        if next(calls) == 1:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(purges, "_remove", dying)
    with pytest.raises(KeyboardInterrupt):
        purge(filled, Chosen(where=(("user", CANARY),)), by="ann", now=NOW)
    assert filled.purges.count(Chosen(where=(("user", CANARY),))).traces == 2
    purged = purge(filled, Chosen(where=(("user", CANARY),)), by="ann", now=NOW)
    assert (purged.counts.traces, purged.compacted) == (2, True)
    assert holding(filled, CANARY) == set()


def test_the_command_says_what_goes_and_asks(filled: Store, capsys) -> None:
    if filled.file is None:
        pytest.skip("once is enough")
    store = ["--store", filled.url]
    assert main(["purge", "--where", f"user={CANARY}", "--dry-run", *store]) == 0
    said = capsys.readouterr().out
    assert said.startswith("nothing was removed; this would go: the texts of 4 traces, 2 texts that only they use")
    assert main(["purge", "--where", f"user={CANARY}", *store]) == 2
    assert "nothing was removed: --yes removes the texts of 4 traces" in capsys.readouterr().err
    assert holding(filled, CANARY)
    assert main(["purge", "--where", f"user={CANARY}", "--yes", "--json", *store]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["removed"]["traces"], document["compacted"], document["dry_run"]) == (4, True, False)
    assert holding(filled, CANARY) == set()
    assert main(["purge", "--where", f"user={CANARY}", "--yes", *store]) == 0
    assert "nothing to remove" in capsys.readouterr().out
    assert main(["traces", *store]) == 0
    assert capsys.readouterr().out.count("purged") == 4


@pytest.mark.both_databases
def test_the_releases_that_quote_what_goes_are_named(filled: Store, capsys) -> None:
    state = json.dumps({"detectors": {"overlap": {"x-state": {"reason": f"for {CANARY}", "name": "rouge_l2026"}}}})
    for document, note in (("{}", f"users complained of {CANARY}"), (state, ""), (state.replace(CANARY, "me"), "fine")):
        with filled.releases.adding(lambda *_, document=document: document, by="ann", note=note, now=NOW):
            pass
    assert main(["purge", "--where", f"user={CANARY}", "--yes", "--store", filled.url]) in (0, 1)
    assert "a note or a reason of v2, v3 quotes what was purged" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "say which traces: --before DATE"),
        (["--trace", "t1", "--before", "2026-01-01"], "--trace names the traces one by one"),
        (["--trace", "nobody"], "the store has no trace 'nobody'"),
        (["--before", "2026-01-01", "--older-than", "9d"], "--before and --older-than say the same thing"),
        (["--older-than", "all"], "--older-than cannot be 'all'"),
        (["--where", "user"], "--where 'user' should read NAME=VALUE"),
    ],
)
def test_a_purge_that_is_not_clear_is_refused(tmp_path, capsys, options, sentence) -> None:
    open_store(f"sqlite:///{tmp_path}/s.db").close()
    assert main(["purge", *options, "--yes", "--store", f"sqlite:///{tmp_path}/s.db"]) == 2
    assert sentence in capsys.readouterr().err


def test_undated_traces_go_by_when_they_came(store: Store) -> None:
    undated = trace(1, CANARY, timestamp=None)
    store.traces.add([Record(1, undated), Record(2, trace(2, "x"))], labels_as=None, now=NOW)
    assert store.purges.count(Chosen(before=NOW)).traces == 1
    assert store.purges.count(Chosen(before=NOW + timedelta(days=1))).traces == 2
    with pytest.raises(BadInput, match="say which traces"):
        choose(store)
