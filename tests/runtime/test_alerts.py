"""Flags reach a real webhook, grouped; whatever it does, nobody waits for it and every alert is accounted for."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from calibrate.errors import BadInput
from calibrate.runtime import Alerts, Decision, alerts
from calibrate.types import Trace
from tests.runtime.serving import Server, serving

ROOT = Path(__file__).parents[2]
SECRET = "/services/T000/B000/XXXXsecret"
PAGE = Decision(
    ("citation_grounding",), "page", "REVIEW", ("citation_grounding 0.41 ≤ 0.52",), 7, ("citation_grounding",), (), ()
)
SIGNAL = dataclasses.replace(PAGE, flags=("rouge_l",), tier="signal", reasons=("rouge_l 0.1 ≤ 0.3",))
NONE = dataclasses.replace(PAGE, flags=(), tier="off", verdict="ACCEPT", reasons=())
WAITS = 3600.0


def trace(name: str = "t1", answer: str = "an answer") -> Trace:
    return Trace(name, answer)


def taken(_: object) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, b"ok"


def texts(server: Server) -> list[str]:
    return [json.loads(one.body)["text"] for one in server.asked]


def test_what_comes_together_is_one_message() -> None:
    with serving(taken) as server:
        made = Alerts(
            server.url + SECRET,
            tiers=("page", "signal"),
            group_seconds=WAITS,
            trace_url="http://host/traces?trace={id}",
        )
        for number in range(12):
            made.offer(trace(f"t {number}"), PAGE)
        made.offer(trace("s"), SIGNAL)
        made.offer(trace("n"), NONE)
        assert made.counters.waiting == 13
        assert made.flush()
        assert made.counters == alerts.Counters(sent=13)
        (text,) = texts(server)
        lines = text.split("\n")
        assert lines[0] == (
            "Touchstone: 13 answers flagged (12 page, 1 signal) by release v7: citation_grounding 12, rouge_l 1"
        )
        assert lines[1] == ("• page REVIEW <http://host/traces?trace=t%200|t 0>: citation_grounding 0.41 ≤ 0.52")
        assert (len(lines), lines[-1]) == (12, "and 3 answers more")
        assert (server.asked[0].path, server.asked[0].method) == (SECRET, "POST")
        made.close()


def test_a_message_goes_out_by_itself_when_its_time_has_come() -> None:
    with serving(taken) as server:
        made = Alerts(server.url, group_seconds=0.1)
        made.offer(trace("a"), PAGE)
        made.offer(trace("b"), PAGE)
        end = time.monotonic() + 10
        while made.counters.sent < 2 and time.monotonic() < end:
            time.sleep(0.01)
        assert (made.counters.sent, len(server.asked)) == (2, 1)
        made.close()


HOSTILE = "<!channel> & <https://evil.example|click> \u202etxt\nsecond | line\x1b[31m " + "long " * 200


@pytest.mark.parametrize("allowed", [False, True])
def test_text_of_a_trace_is_redacted_or_else_escaped(allowed: bool) -> None:
    with serving(taken) as server:
        made = Alerts(server.url, include_answer=allowed, trace_url="http://host/t?a=1&trace={id}", group_seconds=WAITS)
        made.offer(trace("<!here>|x\nhttp://evil", HOSTILE), PAGE)
        assert made.flush()
        (text,) = texts(server)
        address = "http://host/t?a=1&amp;trace=%3C%21here%3E%7Cx%0Ahttp%3A%2F%2Fevil"
        assert f"<{address}|&lt;!here&gt;/x http://evil>" in text
        assert text.count("<") == text.count(">") - text.count("\n> ") == 1  # the one link is ours
        assert ("&lt;!channel&gt; &amp; &lt;https" in text) == allowed
        assert ("second" in text) == allowed
        assert ("long" in text) == allowed
        assert len(text) < 1000
        assert not {"\u202e", "\x1b"} & set(text)
        made.close()


def test_beyond_the_rate_messages_are_suppressed_and_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(alerts.time, "monotonic", lambda: clock[0])
    with serving(taken) as server:
        made = Alerts(server.url, per_minute=2, group_seconds=0, timeout=5)
        for number in range(5):
            made.offer(trace(str(number)), PAGE)
            assert made.flush()
        assert made.counters == alerts.Counters(sent=2, suppressed=3)
        clock[0] += 60
        made.offer(trace("later"), PAGE)
        assert made.flush()
        assert "Before these, 3 answers flagged without a message being sent." in texts(server)[-1]
        made.offer(trace("last"), PAGE)
        assert made.flush()
        assert "Before these" not in texts(server)[-1]
        assert (made.counters.sent, len(server.asked)) == (4, 4)
        made.close()


def test_a_webhook_that_refuses_is_said_once_without_its_address(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(lambda _: (500, {}, b"no")) as server:
        made = Alerts(server.url + SECRET, group_seconds=0, per_minute=100)
        for _ in range(3):
            made.offer(trace(), PAGE)
            assert made.flush()
        assert made.counters == alerts.Counters(failed=3)
        server.answer = lambda _: (302, {"Location": server.url + "/elsewhere"}, b"")
        made.offer(trace(), PAGE)
        assert made.flush()
        assert made.counters.failed == 4
        assert {one.path for one in server.asked} == {SECRET}
        server.answer = taken
        made.offer(trace(), PAGE)
        assert made.flush()
        assert "Before these, 4 answers flagged" in texts(server)[-1]
        made.close()
    lost = Alerts(server.url + SECRET, group_seconds=0)  # nobody listens there any more
    lost.offer(trace(), PAGE)
    assert lost.flush()
    assert lost.counters.failed == 1
    lost.close()
    said = [record.getMessage() for record in caplog.records if record.name == "touchstone"]
    assert len(said) == 3
    assert "Connection refused" in said[-1]
    assert "secret" not in caplog.text
    assert "secret" not in repr(made)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://host/secret",
        "https:///secret",
        "secret",
        "https://host/sec ret",
        "https://host:x/secret",
        "https://u:secret@host/h",
        None,
    ],
)
def test_an_address_that_is_none_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(BadInput) as caught:
        Alerts(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "setting",
    [{"tiers": "page"}, {"tiers": ("loud",)}, {"tiers": ()}, {"per_minute": 0}, {"max_queue": 0}, {"timeout": 0},
     {"group_seconds": -1}, {"trace_url": "http://host/"}, {"per_minute": "a"}, {"per_minute": 1.5},
     {"max_queue": True}, {"timeout": float("inf")}, {"group_seconds": None}, {"trace_url": 5}, {"tiers": None},
     {"tiers": 5}, {"tiers": [["page"]]}, {"include_answer": "false"}],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_named_alone(setting: dict[str, object]) -> None:
    with pytest.raises(BadInput) as caught:
        Alerts("https://host/", **setting)  # type: ignore[arg-type]
    settings = ("tiers", "per_minute", "max_queue", "timeout", "group_seconds", "trace_url", "include_answer")
    assert [name for name in settings if name in str(caught.value)] == list(setting)


def test_a_trace_id_that_is_no_text_costs_no_other_alert() -> None:
    with serving(taken) as server:
        made = Alerts(server.url, group_seconds=WAITS)
        made.offer(Trace(5, "an answer"), PAGE)  # type: ignore[arg-type]
        made.offer(trace("b"), PAGE)
        assert made.flush()
        assert made.counters == alerts.Counters(sent=2)
        assert "• page REVIEW 5: " in texts(server)[0]
        made.close()


def test_a_webhook_that_hangs_slows_nobody_and_a_full_queue_is_counted() -> None:
    hold = threading.Event()
    with serving(lambda _: taken(hold.wait(30))) as server:
        made = Alerts(server.url, group_seconds=0, timeout=30, max_queue=100)
        made.offer(trace(), PAGE)
        while not server.asked:
            time.sleep(0.005)
        began = time.monotonic()
        for _ in range(10_000):
            made.offer(trace(), PAGE)
        assert time.monotonic() - began < 20  # had one waited for the webhook, it would be 30 and more
        assert made.counters == alerts.Counters(dropped=9900, waiting=101)
        assert not made.flush(0.05)
        hold.set()
        assert made.flush(20)
        assert made.counters == alerts.Counters(sent=101, dropped=9900)
        assert "Before these, 9,900 answers flagged" in texts(server)[-1]
        hold.clear()
        made.offer(trace(), PAGE)
        while len(server.asked) < 3:
            time.sleep(0.005)
        made.offer(trace(), PAGE)
        made.close(0.05)
        made.offer(trace(), PAGE)
        assert made.counters.dropped == 9902
        hold.set()


def test_nothing_offered_raises(caplog: pytest.LogCaptureFixture) -> None:
    made = Alerts("https://127.0.0.1:1/")
    made.offer(None, None)  # type: ignore[arg-type]
    assert "could not be queued" in caplog.text
    assert made.flush()
    made.close()


def test_a_forked_child_tells_its_own_and_the_parent_its_own() -> None:
    with serving(taken) as server:
        made = Alerts(server.url, group_seconds=WAITS)
        made.offer(trace("parent"), PAGE)
        reading, writing = os.pipe()
        with made._changed:  # as when the thread holds the lock at the moment of the fork
            child = os.fork()
            if child == 0:
                made.offer(trace("child"), PAGE)
                done = made.flush(10)
                os.write(writing, json.dumps([done, made.counters.sent]).encode())
                os._exit(0)
        os.waitpid(child, 0)
        assert json.loads(os.read(reading, 100)) == [True, 1]
        assert made.flush()
        assert made.counters == alerts.Counters(sent=1)
        first, second = texts(server)
        assert ("child" in first, "parent" in first) == (True, False)
        assert ("child" in second, "parent" in second) == (False, True)
        made.close()


@pytest.mark.parametrize("hangs", [False, True])
def test_the_end_of_the_program_sends_what_waits_and_is_not_held_up(hangs: bool) -> None:
    hold = threading.Event()
    with serving(lambda _: taken(hold.wait(60) if hangs else None)) as server:
        code = (
            "import sys\n"
            "from calibrate.runtime import Alerts, Decision\n"
            "from calibrate.types import Trace\n"
            "made = Alerts(sys.argv[1], timeout=60)\n"
            "decision = Decision(('d',), 'page', 'REVIEW', ('d 1 ≥ 0',), 1, ('d',), (), ())\n"
            "made.offer(Trace('t', 'a'), decision)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, server.url], cwd=ROOT, timeout=30, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        assert len(server.asked) == 1
        hold.set()
