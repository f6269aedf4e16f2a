"""No flag is lost between the decision and the webhook: not by a kill, nor by a webhook that is down."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from calibrate import cli
from calibrate.types import Tier
from calibrate.workflow.releasing.announce import message
from calibrate.workflow.watching import telling
from calibrate.workflow.watching.telling import Teller
from db import Store
from db import decisions as module
from db.decisions import StoredDecision
from db.releases import Release
from tests.db.make import records
from tests.runtime.serving import Asked, Server, serving
from tests.workflow.making import NOW
from tests.workflow.watching.test_watch import publish

ROOT = Path(__file__).parents[2]
one_database = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


def posted(hook: Server) -> list[str]:
    """The ids of the traces that the webhook took, in order."""
    return [
        trace_id for asked in hook.asked for trace_id in re.findall(r"• \w+ \w+ (\S+):", json.loads(asked.body)["text"])
    ]


def flagged(store: Store) -> list[str]:
    kept = [one for pk in range(1, store.decisions.newest_trace() + 1) for one in store.decisions.of(pk)]
    return [store.traces.load([one.trace_pk])[0].id for one in kept if one.tier != "off"]


def watch_once(store: Store, hook: Server) -> int:
    return cli.main(["watch", "--once", "--since", "all", "--store", store.url, "--alerts", hook.url])


@contextmanager
def watching(store: Store, hook: Server) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "calibrate", "watch", "--every", "0.1", "--since", "all", "--store", store.url]
    environment = {**os.environ, "TOUCHSTONE_ALERTS_WEBHOOK": hook.url}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(holds: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def accept(asked: Asked) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, b"ok"


def refuse(asked: Asked) -> tuple[int, dict[str, str], bytes]:
    return 500, {}, b"down"


@one_database
def test_a_kill_between_the_decision_and_the_alert_loses_no_alert(store: Store) -> None:
    publish(store, 0.5, tier="page")
    with serving(accept) as hook:
        with watching(store, hook) as process:
            wait_until(lambda: bool(store.decisions.counts(1).get("page")))
            process.kill()
            process.wait()
        wanted = flagged(store)
        assert wanted
        assert not hook.asked, "the alerts of one half minute share a message: the kill came before it"
        assert watch_once(store, hook) == 0
        told = posted(hook)
        assert set(told) <= set(wanted)
        assert f"{len(wanted)} answers flagged" in json.loads(hook.asked[0].body)["text"]
        assert store.outbox.count() == 0
        assert watch_once(store, hook) == 0
        assert len(hook.asked) == 1, "what was told is not told again"


@one_database
def test_a_webhook_that_is_down_keeps_the_alerts_in_order(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    publish(store, 0.5, tier="page")
    with serving(refuse) as hook:
        assert watch_once(store, hook) == 0
        n = len(flagged(store))
        shown = capsys.readouterr()
        assert f"0 sent, {n} kept for the next `watch` (it answered 500)" in shown.out
        assert "could not be sent, and are kept and tried again: it answered 500" in shown.err
        first = posted(hook)
        hook.answer = accept
        hook.asked.clear()
        assert watch_once(store, hook) == 0
        assert posted(hook) == first
        assert f"{n} sent" in capsys.readouterr().out
        assert store.outbox.count() == 0


def decided(pk: int, tier: Tier = "page") -> StoredDecision:
    return StoredDecision(pk, 1, "REVIEW", tier, ("rouge_l",), ("rouge_l 0.2 ≤ 0.5",), {"rouge_l": 0.2}, NOW)


@pytest.fixture
def filled(store: Store) -> Store:
    store.traces.add(records(30), labels_as=None, now=NOW)
    with store.releases.adding(lambda *_: "a document", by="ann", note="", now=NOW):
        pass
    return store


@one_database
def test_attempts_are_spaced_ever_wider_and_counted(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "GROUP_SECONDS", 0)
    monkeypatch.setattr(telling, "PER_MINUTE", 1000)
    monkeypatch.setattr(telling, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(telling, "LONGEST_PAUSE", 0.8)
    filled.decisions.keep([replace(decided(1), decided_at=datetime.now(UTC))], tell={1})
    times: list[float] = []

    def down_at_first(asked: Asked) -> tuple[int, dict[str, str], bytes]:
        times.append(time.monotonic())
        return (503 if len(times) < 6 else 200), {}, b""

    problems: list[str] = []
    with serving(down_at_first) as hook:
        teller = Teller(filled, hook.url, now=lambda: datetime.now(UTC), on_problem=problems.append)
        wait_until(lambda: filled.outbox.count() == 0)
        teller.close(5)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(gaps) == 5
    assert all(gap >= pause for gap, pause in zip(gaps, (0.05, 0.1, 0.2, 0.4, 0.8), strict=True))
    assert problems == ["it answered 503"], "one reason is said once"
    assert teller.told == 1


@one_database
def test_nothing_is_decided_that_cannot_be_put_in_the_outbox(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(decision: StoredDecision) -> dict[str, object]:
        raise OSError("the power went")

    monkeypatch.setattr(module, "_outbox_row", fail)
    with pytest.raises(OSError, match="power"):
        filled.decisions.keep([decided(1)], tell={1})
    assert filled.decisions.of(1) == []


@pytest.mark.both_databases
def test_two_watchers_share_what_is_to_be_told_and_one_that_died_gives_it_back(filled: Store) -> None:
    filled.decisions.keep([decided(3), decided(1), decided(2)], tell={1, 3})
    lease = NOW + timedelta(seconds=10)
    mine = filled.outbox.claim(10, now=NOW, until=lease)
    assert [untold.decision for untold in mine] == [decided(3), decided(1)]
    assert [untold.trace_id for untold in mine] == [trace.id for trace in filled.traces.load([3, 1])]
    assert filled.outbox.claim(10, now=NOW, until=lease) == []
    assert filled.outbox.claim(10, now=lease, until=lease + timedelta(seconds=10)) == mine
    filled.outbox.mark_told([mine[0].key], now=lease)
    assert filled.outbox.count() == 1
    assert [untold.key for untold in filled.outbox.claim(10, now=NOW, until=lease, early=True)] == [mine[1].key]


@one_database
def test_what_a_release_decides_again_is_put_there_once(filled: Store) -> None:
    for _ in range(2):
        filled.decisions.keep([decided(1)], tell={1})
    assert filled.outbox.count() == 1


def test_the_release_webhook_gets_no_acting_characters() -> None:
    text = str(message(_release("a\x1b[31m\u202egnp.exe \u2066x"))["text"])
    assert not set("\x1b\u202e\u2066") & set(text)
    assert "⟦ESC⟧" in text
    assert "⟦RLO⟧" in text


def _release(note: str) -> Release:
    return Release(1, "{}", "0" * 64, "ann", NOW, note)
