"""Watching: it decides what `decide` says to the scores in the store, does nothing twice, and what goes wrong with one
trace is that trace's trouble."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from calibrate import cli, registry
from calibrate.detectors.token_overlap import TokenOverlap
from calibrate.errors import BadInput
from calibrate.runtime import Decision, decide
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Record, Score, StatedScore, Tier, Trace, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.detection.external import define_external, take_scores
from calibrate.workflow.releasing import history, release
from calibrate.workflow.watching import watch as step
from calibrate.workflow.watching.watch import Look, Watcher
from db import Store
from db.releases import ReleaseRequest
from tests.workflow.making import DETECTOR, NOW, draw, fill, save

ROOT = Path(__file__).parents[3]
FEW = 20
BATCH = 8
one_database = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "BATCH", BATCH)


def publish(store: Store, threshold: float, tier: Tier = "signal") -> ThresholdsFile:
    """A release that flags `DETECTOR` at or below the threshold."""
    if not store.points.latest() and not store.decisions.newest_trace():
        labels, scores = draw(FEW)
        fill(store, labels, scores)
        ours = registry.config_of(registry.make(DETECTOR))
        config = store.scores.config(DETECTOR, TokenOverlap.version, ours, "", now=NOW)
        traces = store.traces.load(range(1, FEW + 1))
        given = [
            Score(one.id, value) if value is not None else Score(one.id, None, "no context", "abstained")
            for one, value in zip(traces, scores, strict=True)
        ]
        by_id = {one.id: one.content_hash() for one in traces}
        store.scores.save(config.id, [(by_id[one.trace_id], one) for one in given], now=NOW + timedelta(seconds=1))
    save(store, f"manual:{threshold}")
    request = ReleaseRequest(detectors=[DETECTOR], tiers={DETECTOR: tier}, reason="a test's few labels", by="ann")
    row = release.release(store, request, now=NOW)
    return history.read_release(row)


def add(store: Store, numbers: range, **given: Any) -> list[Trace]:
    """New traces, unscored: those of an even number share no word with their context."""
    usual = {"context": "the battery lasts two years", "timestamp": NOW}
    traces = [
        Trace(f"n{i}", **{**usual, "answer": f"the battery lasts {i}" if i % 2 else f"bananas {i}", **given})
        for i in numbers
    ]
    store.traces.add([Record(1, trace) for trace in traces], labels_as=None, now=NOW)
    return traces


def watcher(store: Store, **given: Any) -> Watcher:
    return Watcher(store, **{"where": TraceFilter, "now": lambda: NOW, **given})


def told(into: list[tuple[str, int]]) -> Any:
    return lambda trace, decision: into.append((trace.id, decision.version))


def decisions(store: Store, version: int) -> dict[int, Any]:
    every = range(1, store.decisions.newest_trace() + 1)
    return {pk: one for pk in every for one in store.decisions.of(pk) if one.version == version}


def expected(store: Store, file: ThresholdsFile) -> dict[int, Decision]:
    """`decide` on what the store has of every trace."""
    return {
        pk: decide(file, {config.name: score.value for config, score in store.scores.of_trace(pk)})
        for pk in range(1, store.decisions.newest_trace() + 1)
    }


def agrees(store: Store, file: ThresholdsFile) -> None:
    kept, wanted = decisions(store, file.version), expected(store, file)
    assert kept.keys() == wanted.keys()
    for pk, decision in wanted.items():
        one = kept[pk]
        assert (one.verdict, one.tier, one.flags) == (decision.verdict, decision.tier, decision.flags)
        if not decision.unscored:  # `decide` does not know why there is no score
            assert one.reasons == decision.reasons


@pytest.mark.both_databases
def test_it_decides_what_decide_says_to_the_scores_in_the_store(store: Store) -> None:
    file = publish(store, 0.5)
    add(store, range(10))
    look = watcher(store).look()
    agrees(store, file)
    assert look.decided == FEW + 10
    assert 0 < look.tiers["signal"] < look.decided, "otherwise this would say nothing"


@one_database
@pytest.mark.parametrize("on_missing", ["accept", "review", "reject"])
def test_a_trace_that_nothing_can_score_is_decided_as_asked_and_counted(store: Store, on_missing: Any) -> None:
    file = publish(store, 0.5)
    add(store, range(4), context="")
    look = watcher(store, on_missing=on_missing).look()
    kept = list(decisions(store, file.version).values())[-4:]
    assert {(one.verdict, one.tier, one.reasons) for one in kept} == {
        (on_missing.upper(), "off", (f"nothing was scored: no context ({DETECTOR})",))
    }
    assert look.unscored == 4 + sum(decision.unscored for decision in list(expected(store, file).values())[:FEW])
    assert look.undecided == 0


@one_database
def test_scores_that_are_there_are_taken_and_new_ones_are_those_of_detect(store: Store) -> None:
    publish(store, 0.5)
    add(store, range(10))
    look = watcher(store).look()
    assert (look.reused, look.computed) == (FEW, 10)
    detect.queue(store, [DETECTOR], {"all": True})
    run = detect.work(store)
    assert run is not None
    assert run.counts[DETECTOR]["reused"] == FEW + 10


@one_database
def test_the_same_content_is_scored_once(store: Store) -> None:
    publish(store, 0.5)
    add(store, range(6), answer="bananas", question="which?")
    look = watcher(store).look()
    assert (look.computed, look.decided) == (1, FEW + 6)


@one_database
def test_stopped_and_started_again_it_does_only_what_is_missing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    file = publish(store, 0.5)
    add(store, range(3 * BATCH))
    asked: list[str] = []
    ours = TokenOverlap.score

    def counting(self: TokenOverlap, traces: Any) -> Any:
        for trace, score in zip(traces, ours(self, traces), strict=True):
            asked.append(trace.id)
            yield score

    def stop(done: int, total: int) -> None:
        if done >= 2 * BATCH:
            raise KeyboardInterrupt

    monkeypatch.setattr(TokenOverlap, "score", counting)
    with pytest.raises(KeyboardInterrupt):
        watcher(store).look(stop)
    half = len(decisions(store, 1))
    assert half == 2 * BATCH
    look = watcher(store).look()
    assert look.decided == FEW + 3 * BATCH - half
    assert len(asked) == len(set(asked)) == 3 * BATCH
    agrees(store, file)


def test_a_second_look_finds_nothing_and_asks_the_same_few_questions(store: Store) -> None:
    """Growth: once all is decided, a look costs what it costs, however many traces there are; and new ones alone are
    loaded."""
    publish(store, 0.5)
    found, asked, loaded = watcher(store), [], []
    load = store.traces.load
    store.traces.load = lambda pks: loaded.extend(pks) or load(pks)  # type: ignore[method-assign, func-returns-value]
    event.listen(store.engine, "before_cursor_execute", lambda _, __, statement, *___: asked.append(statement))
    costs = []
    for more in (range(0), range(30), range(30, 150)):
        add(store, more)
        loaded.clear()
        assert found.look().decided == (len(more) or FEW)
        assert len(loaded) == (len(more) or FEW)
        asked.clear()
        assert found.look() == Look(1)
        costs.append([statement for statement in asked if statement.startswith("SELECT")])
    assert costs[0] == costs[1] == costs[2]
    assert not any("texts" in statement or "answer" in statement for statement in costs[0])


def test_it_follows_a_new_release_by_itself_and_tells_only_what_is_new(store: Store) -> None:
    publish(store, 0.4)
    heard: list[tuple[str, int]] = []
    found = watcher(store, offer=told(heard))
    first = found.look()
    assert len(heard) == first.tiers["signal"] > 0
    before = set(heard)
    file = publish(store, 0.5)
    second = found.look()
    assert (second.version, second.decided) == (2, FEW)
    agrees(store, file)
    more = second.tiers["signal"] - first.tiers["signal"]
    assert more > 0
    assert len(heard) == first.tiers["signal"] + more
    assert not {trace for trace, version in heard if version == 2} & {trace for trace, _ in before}
    publish(store, 0.5, tier="page")
    third = found.look()
    assert [version for _, version in heard].count(3) == third.tiers["page"], "it pages what was a signal"
    assert found.look().decided == 0


@one_database
def test_a_release_that_comes_in_the_middle_of_a_look_is_taken_at_once(store: Store) -> None:
    publish(store, 0.4)
    add(store, range(3 * BATCH))
    releases: list[ThresholdsFile] = []

    def once(done: int, total: int) -> None:
        if not releases:
            releases.append(publish(store, 0.5))

    look = watcher(store).look(once)
    assert (look.version, look.decided) == (2, FEW + 3 * BATCH)
    assert len(decisions(store, 1)) == BATCH
    agrees(store, releases[0])


@one_database
def test_with_a_file_it_stays_with_that_release(store: Store) -> None:
    first = publish(store, 0.4)
    publish(store, 0.5)
    assert watcher(store, pinned=first).look().version == 1
    assert decisions(store, 2) == {}
    for other in (replace(first, version=3), replace(first, note="another")):
        with pytest.raises(BadInput, match="not release"):
            watcher(store, pinned=other)


@one_database
def test_without_a_release_it_says_what_to_do(store: Store) -> None:
    with pytest.raises(BadInput, match="Release page"):
        watcher(store)


@one_database
def test_only_the_window_is_watched(store: Store) -> None:
    publish(store, 0.5)
    add(store, range(1), timestamp=None)
    window = TraceFilter(since=NOW - timedelta(hours=4), undated=False)
    assert watcher(store, where=lambda: window).look().decided == 5
    assert watcher(store).look().decided == FEW - 5 + 1


@one_database
def test_a_trace_that_cannot_be_read_keeps_nobody_from_being_decided(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(store, 0.5)
    bad = store.traces.find("t3")
    load = store.traces.load

    def broken(pks: Any) -> list[Trace]:
        if bad in pks:
            raise ValueError("a row that is no trace")
        return load(pks)

    found = watcher(store)
    with monkeypatch.context() as patched:
        patched.setattr(store.traces, "load", broken)
        look = found.look()
        assert (look.decided, look.undecided) == (FEW - 1, 1)
        assert dict(look.problems) == {"ValueError: a row that is no trace": 1}
        assert (found.look().decided, found.look().undecided) == (0, 1)
    assert (found.look().decided, found.look().undecided) == (1, 0)


@one_database
def test_while_a_detector_fails_its_traces_wait_and_nothing_passes_unseen(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = publish(store, 0.5)
    add(store, range(10))
    found = watcher(store)
    with monkeypatch.context() as patched:
        patched.setattr(TokenOverlap, "score", lambda self, traces: iter([1 / 0]))
        look = found.look()
        assert (look.decided, look.undecided, look.failed[DETECTOR]) == (FEW, 10, 10)
        assert all("ZeroDivisionError" in problem for problem in look.problems)
    assert found.look().decided == 10
    agrees(store, file)


@one_database
def test_while_a_model_is_missing_nothing_is_decided_by_its_absence(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(store, 0.5)
    add(store, range(10))
    with monkeypatch.context() as patched:
        patched.setattr(TokenOverlap, "unavailable", lambda self: "its model is not here")
        look = watcher(store).look()
    assert (look.decided, look.reused, look.undecided) == (FEW, FEW, 10), "what is in the store counts all the same"
    assert set(look.problems) == {f"{DETECTOR}: its model is not here"}
    assert watcher(store).look().computed == 10, "its absence was not kept as a score"


@one_database
def test_a_trace_that_nothing_can_be_said_of_is_decided_and_says_so(store: Store) -> None:
    publish(store, 0.5)
    add(store, range(1), context=None)
    watcher(store).look()
    [one] = decisions(store, 1)[store.decisions.newest_trace()].reasons
    assert "nothing was scored" in one


# The verb.


class _Hook(BaseHTTPRequestHandler):
    posts: list[str]

    def do_POST(self) -> None:
        self.posts.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[str]]]:
    """A real endpoint for alerts, and what it was told."""
    posts: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Hook", (_Hook,), {"posts": posts}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook/s3cret", posts
    server.shutdown()
    server.server_close()


@one_database
def test_the_verb_says_what_it_did_and_tells_the_webhook(
    store: Store, webhook: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    publish(store, 0.5, tier="page")
    url, posts = webhook
    link = "https://touchstone.example/traces?trace={id}"
    call = ["watch", "--once", "--json", "--since", "all", "--store", store.url, "--alerts", url, "--trace-url", link]
    assert cli.main(call) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["decided"] == FEW
    assert document["tiers"]["page"] == sum(one.tier == "page" for one in decisions(store, 1).values())
    assert "s3cret" not in shown.out + shown.err
    assert document["alerts"]["sent"] == document["tiers"]["page"]
    assert "https://touchstone.example/traces?trace=t" in "".join(posts)
    assert cli.main(call) == 0
    assert json.loads(capsys.readouterr().out)["decided"] == 0


@one_database
def test_undated_traces_are_mentioned_where_the_window_leaves_them_out(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(store, 0.5)
    add(store, range(3), timestamp=None)
    assert cli.main(["watch", "--once", "--store", store.url]) == 0
    assert "3 undated traces" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [["--every", "0"], ["--every", "nan"], ["--since", "soon"], ["--file", "none.json"], ["--trace-url", "http://x/"]],
)
@one_database
def test_a_call_that_cannot_be_is_refused(store: Store, wrong: list[str]) -> None:
    publish(store, 0.5)
    assert cli.main(["watch", "--once", "--store", store.url, *wrong]) == 2


@one_database
def test_a_file_says_that_it_looks(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish(store, 0.5)
    file = tmp_path / "alive"
    assert cli.main(["watch", "--once", "--store", store.url, "--alive", str(file)]) == 0
    assert file.exists()
    assert cli.main(["watch", "--once", "--store", store.url, "--alive", str(tmp_path / "no" / "alive")]) == 2
    assert "name another file" in capsys.readouterr().err


@one_database
def test_the_verb_goes_on_until_it_is_told_to_end(store: Store) -> None:
    """It takes traces and releases as they come, and what it did is kept."""
    publish(store, 0.4)
    command = [sys.executable, "-m", "calibrate", "watch", "--every", "0.1", "--since", "all", "--store", store.url]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "TOUCHSTONE_ALERTS_WEBHOOK": ""}, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            _wait_until(lambda: store.decisions.counts(1).get("off", 0) > 0, running)
            add(store, range(5))
            _wait_until(lambda: sum(store.decisions.counts(1).values()) == FEW + 5, running)
            file = publish(store, 0.5)
            _wait_until(lambda: sum(store.decisions.counts(2).values()) == FEW + 5, running)
            time.sleep(0.3)
            running.send_signal(signal.SIGTERM)
            assert running.wait(timeout=20) == 143
        finally:
            running.kill()
        assert running.stderr is not None
        said = running.stderr.read()
    agrees(store, file)
    assert "v1 decided 5 traces" in said
    assert f"v2 decided {FEW + 5} traces" in said
    assert "Traceback" not in said


def _wait_until(holds: Any, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


@one_database
def test_times_are_those_of_the_clock_it_is_given(store: Store) -> None:
    publish(store, 0.5)
    later: datetime = NOW + timedelta(days=3)
    watcher(store, now=lambda: later).look()
    assert {one.decided_at for one in decisions(store, 1).values()} == {later}


def publish_external(store: Store) -> ThresholdsFile:
    """A release of an external detector that flags at or below 0.5, beside `DETECTOR`."""
    publish(store, 0.3)
    traces = store.traces.load(range(1, FEW + 1))
    take_scores(store, "ragas", [StatedScore(one.id, n / FEW) for n, one in enumerate(traces)], now=NOW)
    define_external(store, "ragas", flag_when="below", now=NOW)
    save(store, "manual:0.5", name="ragas")
    request = ReleaseRequest(detectors=[DETECTOR, "ragas"], tiers={}, reason="a test's few labels", by="ann")
    return history.read_release(release.release(store, request, now=NOW))


def test_a_trace_waits_for_a_score_that_is_to_be_imported(store: Store) -> None:
    file = publish_external(store)
    assert file.detectors["ragas"].is_external
    clock = [NOW]
    watching = watcher(store, now=lambda: clock[0])
    assert watching.look().waiting == 0
    add(store, range(4))  # n0 and n2 share no word with their context: flagged at once
    look = watching.look()
    assert (look.decided, look.waiting, look.undecided, look.failed, look.problems) == (2, 2, 0, {}, {})
    again = watching.look()
    assert (again.decided, again.waiting, again.computed + again.reused) == (0, 2, 0)
    # The score comes, and the trace is decided by it.
    take_scores(store, "ragas", [StatedScore("n1", 0.1)], now=NOW + timedelta(minutes=1))
    look = watching.look()
    assert (look.decided, look.waiting, look.tiers["signal"]) == (1, 1, 1)
    [decision] = store.decisions.of(store.traces.find("n1") or 0)
    assert (decision.flags, decision.scores["ragas"]) == (("ragas",), 0.1)
    # The other has waited long enough.
    clock[0] += timedelta(hours=25)
    look = watching.look()
    assert (look.decided, look.waiting, look.undecided) == (1, 0, 0)
    [decision] = store.decisions.of(store.traces.find("n3") or 0)
    assert (decision.flags, decision.scores["ragas"]) == ((), None)


def test_nobody_waits_for_scores_of_a_revision_that_was_followed(store: Store) -> None:
    publish_external(store)
    take_scores(store, "ragas", [StatedScore("t1", 0.99)], now=NOW)
    add(store, range(4))
    look = watcher(store).look()
    assert (look.waiting, look.undecided) == (0, 0)


def test_waiting_traces_keep_no_older_scored_one_from_being_decided(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    publish_external(store)
    watcher(store).look()
    odd = range(1, 81, 2)  # they share words with their context: not flagged, so they wait
    older = [one for i in odd[:10] for one in add(store, range(i, i + 1), timestamp=NOW - timedelta(hours=1))]
    for i in odd[10:]:
        add(store, range(i, i + 1))
    take_scores(store, "ragas", [StatedScore(one.id, 0.9) for one in older], now=NOW)
    watching = watcher(store)
    look = watching.look()
    assert (look.decided, look.waiting, look.undecided) == (10, 30, 0)
    assert not [record for record in caplog.records if "guard.check" in record.message]
    # A score of one is no reason to load the others again.
    loaded: list[int] = []
    load = store.traces.load
    store.traces.load = lambda pks: loaded.extend(pks) or load(pks)  # type: ignore[method-assign, func-returns-value]
    take_scores(store, "ragas", [StatedScore("n61", 0.9)], now=NOW + timedelta(minutes=1))
    assert (watching.look().decided, len(loaded)) == (1, 1)


@one_database
def test_a_look_ends_where_all_fails_though_scores_are_to_be_imported(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_external(store)
    watcher(store).look()
    add(store, range(10 * BATCH))
    monkeypatch.setattr(TokenOverlap, "score", lambda self, traces: iter([1 / 0]))
    look = watcher(store).look()
    assert look.failed[DETECTOR] == step.PATIENCE * BATCH
    assert (look.decided, look.waiting, look.undecided) == (0, 3 * BATCH, 7 * BATCH)
