"""Roles: what a team file may say, whom the gate believes, and what a message comes to that a role does not allow."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.testing.v1 import AppTest

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.workflow.releasing import approval
from calibrate.workflow.releasing import release as releasing
from db import Store, audit
from db.audit import Actor, acting_as
from db.releases import ReleaseRequest
from pages.shell import gate, roles
from pages.traces.import_job import ImportFile, ImportJob, Labels
from tests.faults.test_outside import start
from tests.workflow.making import NOW, draw, fill, save

ROOT = Path(__file__).resolve().parents[2]
LOGIN = settings.read({}).user


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    audit.identify_by(lambda: None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[labeler]\nusers = ['ann']", "names 'labeler'; the roles are labeller, calibrator, approver"),
        ("[labeller]\nuser = ['ann']", "[labeller] names 'user'; it holds the lists users and groups"),
        ("[approver]\nusers = 'ann'", "[approver] cannot hold 'ann'; users and groups are lists of names"),
        ("[approver]\nusers = ['  ']", "[approver] cannot hold ['  ']"),
        ("approver = 1", "[approver] is no section"),
        ("claim = 3", "claim cannot be 3"),
        ("[approver", "is no TOML"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_team_file_with_a_mistake_opens_nothing(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "team.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadInput, match=re.escape(words)):
        roles.read(str(file))


def test_roles_come_by_name_and_by_group_and_add_up(tmp_path: Path) -> None:
    file = tmp_path / "team.toml"
    file.write_text(
        'claim = "teams"\n[labeller]\ngroups = ["people"]\n'
        '[calibrator]\nusers = ["Ann Lee"]\n[approver]\ngroups = ["leads"]'
    )
    team = roles.read(str(file))
    assert team is not None
    assert team.claim == "teams"
    assert team.roles_of(" ann  lee", []) == {"calibrator"}
    assert team.roles_of("bob", ["people", "leads"]) == {"labeller", "approver"}
    assert team.roles_of("people", ["Leads", "ann lee"]) == frozenset()  # a name is no group, nor the other way round
    writes = {"labels", "leases", "skips", "flags", "repeats", "releases"}
    assert roles.writes(team.roles_of("bob", ["people", "leads"])) == writes
    for key in ("detect", "detectors", "tune", "compare", "ensemble", "release", "recalibrate", "import", "sample"):
        assert not roles.opens(frozenset({"labeller"}), key)
    assert roles.read("") is None


def through(headers: dict[str, str], peer: str, *of_request: str) -> dict[str, list[str]]:
    """In a thread of its own: another test of the process may have left a loop running."""
    with ThreadPoolExecutor() as threads:
        return threads.submit(lambda: asyncio.run(passed(headers, peer, *of_request))).result()


async def passed(headers: dict[str, str], peer: str, path: str = "/", kind: str = "websocket") -> dict[str, list[str]]:
    """The headers that reach a page, from a request with these headers over a socket to `peer`."""
    arrived: dict[str, list[str]] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for name, value in scope["headers"]:
            arrived.setdefault(name.decode(), []).append(value.decode())

    async def nothing(*_: Any) -> Any:
        return {}

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "path": path, "headers": raw, "client": (peer, 1234)}
    await gate.Gate(app)(scope, nothing, nothing)
    return arrived


def test_whom_nobody_names_may_not_upload_or_read_the_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "serves_this_machine_only", lambda: False)
    monkeypatch.setenv("TOUCHSTONE_USER_HEADER", "X-Forwarded-User")
    monkeypatch.setenv("TOUCHSTONE_TRUSTED_PROXIES", "10.0.0.7")
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "")
    sent = {"Host": "x", "X-Forwarded-User": "ada"}
    upload = ("/_stcore/upload_file/session/file", "http")
    assert through(sent, "10.0.0.7", *upload)["x-forwarded-user"] == ["ada"]
    assert through(sent, "203.0.113.9", *upload) == {}
    assert through({"Host": "x"}, "10.0.0.7", *upload) == {}
    assert through(sent, "203.0.113.9", "/_stcore/metrics", "http") == {}
    assert through(sent, "203.0.113.9", "/_stcore/health", "http") != {}
    monkeypatch.setattr(gate, "serves_this_machine_only", lambda: True)
    assert through({"Host": "localhost"}, "127.0.0.1", "/_stcore/metrics", "http") != {}


def test_what_waits_of_uploads_is_bounded_over_all_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = MemoryUploadedFileManager("/upload")
    monkeypatch.setattr(gate.Runtime, "exists", lambda: True)
    monkeypatch.setattr(gate.Runtime, "instance", lambda: SimpleNamespace(uploaded_file_mgr=waiting))
    monkeypatch.setattr(gate.config, "get_option", {"server.maxUploadSize": 1, "server.address": "localhost"}.get)
    monkeypatch.setattr(gate, "_is_own_name", lambda scope: True)
    upload = ("/_stcore/upload_file/session/file", "http")
    for session in range(5):
        assert (through({"Host": "localhost"}, "127.0.0.1", *upload) != {}) == (session * 700_000 <= 2 * 2**20)
        waiting.add_file(str(session), UploadedFileRec("f", "f", "text/plain", b"x" * 700_000))
    for session in range(5):
        waiting.remove_session_files(str(session))
    assert through({"Host": "localhost"}, "127.0.0.1", *upload) != {}


def test_a_refusal_is_in_the_log_once_a_minute(store: Store) -> None:
    for name, what in (("bo", "page"), ("bo", "page"), ("cy", "page"), ("bo", "x")):
        with acting_as(Actor(name, "header")):
            store.audit.refused(what)
    refusals = store.audit.entries(verb="refused")
    assert [(entry.who, entry.what) for entry in refusals] == [("bo", "x"), ("cy", "page"), ("bo", "page")]


def test_only_a_trusted_proxy_names_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "serves_this_machine_only", lambda: False)
    monkeypatch.setenv("TOUCHSTONE_USER_HEADER", "X-Forwarded-User")
    monkeypatch.setenv("TOUCHSTONE_TRUSTED_PROXIES", "10.0.0.7")
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "")
    sent = {"Host": "x", "X-Forwarded-User": "ada", "X-Forwarded-For": "10.0.0.7", "X-Touchstone-Peer": "10.0.0.7"}
    forged = through(sent, "203.0.113.9")
    assert "x-forwarded-user" not in forged
    assert forged["x-touchstone-peer"] == ["203.0.113.9"]
    proxied = through(sent, "10.0.0.7")
    assert (proxied["x-forwarded-user"], proxied["x-touchstone-peer"]) == (["ada"], ["10.0.0.7"])
    # Where uvicorn was left to take X-Forwarded-For for the peer, the peer is not known.
    monkeypatch.delenv("FORWARDED_ALLOW_IPS")
    rewritten = through(sent, "10.0.0.7")
    assert "x-forwarded-user" not in rewritten
    assert rewritten["x-touchstone-peer"] == ["proxied"]


@pytest.fixture
def team(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a point to release, and a team file in which whoever runs this calibrates and approves."""
    fill(store, *draw(60))
    save(store, "manual:0.55")
    file = tmp_path / "team.toml"
    file.write_text(f'[calibrator]\nusers = ["{LOGIN}"]\n[approver]\nusers = ["{LOGIN}"]')
    monkeypatch.setenv("TOUCHSTONE_STORE", store.url)
    monkeypatch.setenv("TOUCHSTONE_ROLES", str(file))
    monkeypatch.delenv("TOUCHSTONE_USER", raising=False)
    return file


def release_page() -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "shell" / "workbench.py"), default_timeout=60).run()
    return page.switch_page("../release/page.py").run()


@pytest.mark.parametrize("button", ["Release v1", "Approve and release v1"])
def test_a_press_that_a_role_does_not_allow_does_nothing(
    store: Store, team: Path, monkeypatch: pytest.MonkeyPatch, button: str
) -> None:
    """A page that was open while a role was taken away sends what a forged message would: a button's own callback runs
    before any page is asked for."""
    if button.startswith("Approve"):
        approval.propose(store, ReleaseRequest(note="first", by="cal", reason="a test"), now=NOW)
    page = release_page()
    pressed = next(each for each in page.button if each.label.startswith(button))
    team.write_text(f'[labeller]\nusers = ["{LOGIN}"]')
    pressed.click().run()
    assert store.releases.count() == 0
    assert len(approval.waiting(store)) == (1 if button.startswith("Approve") else 0)
    refused = store.audit.entries(verb="refused")
    assert {entry.who for entry in refused} == {LOGIN}
    assert any("takes the role" in entry.what for entry in refused)
    assert any("not open to your role" in each.value for each in page.markdown)
    team.write_text(f'[calibrator]\nusers = ["{LOGIN}"]\n[approver]\nusers = ["{LOGIN}"]')
    page = release_page()
    next(each for each in page.button if each.label.startswith(button)).click().run()
    assert store.releases.count() == 1


def test_who_may_not_roll_back_is_offered_no_press(store: Store, team: Path) -> None:
    for policy in ("manual:0.55", "manual:0.6"):
        save(store, policy)
        releasing.release(store, ReleaseRequest(by="cal", reason="a test"), now=NOW)
    for role, may in (("approver", False), ("calibrator", True)):
        team.write_text(f'[{role}]\nusers = ["{LOGIN}"]')
        (back,) = (each for each in release_page().button if each.label == "Roll back to v1")
        assert (back.disabled, "a calibrator rolls back" in back.help) == (not may, not may)


def test_a_page_with_an_unusable_team_file_shows_nothing(store: Store, team: Path) -> None:
    team.write_text("[labeler]")
    page = release_page()
    assert [each.label for each in page.button] == []
    assert any("names 'labeler'" in each.value for each in page.text)


def test_a_thread_that_imports_is_held_to_the_role_of_who_started_it(store: Store, tmp_path: Path) -> None:
    """An import runs beside the session, where nobody can be asked."""
    file = tmp_path / "t.jsonl"
    file.write_text('{"trace_id": "t1", "answer": "a", "sources": {"1": "s"}}\n')
    for may_write, traces in ((frozenset({"labels"}), 0), (None, 1)):
        audit.identify_by(lambda allowed=may_write: audit.Actor("lea", "oidc", allowed))  # type: ignore[misc]
        job = ImportJob(store, [ImportFile("t.jsonl", file)], labels=Labels(), strict=False)
        audit.identify_by(lambda: None)
        job._thread.join()
        assert store.traces.summary().traces == traces
        assert ("no role that may change traces" in (job.files[0].problem or "")) is (traces == 0)
    (entry,) = store.audit.entries(verb="traces imported")
    assert (entry.who, entry.how, entry.after) == ("lea", "oidc", {"traces": 1, "labels": 0})


async def talk(port: int, header: dict[str, str]) -> str:
    """Open the workbench's web socket, run its script, and return all it has sent until then."""
    from streamlit.proto.BackMsg_pb2 import BackMsg
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
    from websockets.asyncio.client import connect

    origin, sent = f"http://127.0.0.1:{port}", []
    async with connect(
        f"ws://127.0.0.1:{port}/_stcore/stream", origin=origin, additional_headers=header, subprotocols=["streamlit"]
    ) as socket:
        message = BackMsg()
        message.rerun_script.query_string = "user=ada"
        await socket.send(message.SerializeToString())
        while True:
            frame = ForwardMsg()
            frame.ParseFromString(bytes(await asyncio.wait_for(socket.recv(), 60)))
            sent.append(str(frame))
            if frame.WhichOneof("type") == "script_finished":
                return "\n".join(sent)


@pytest.mark.parametrize(("proxies", "name"), [("127.0.0.1", "lea"), ("10.0.0.7", None)])
def test_a_header_over_a_real_socket_counts_from_a_proxy_only(tmp_path: Path, proxies: str, name: str | None) -> None:
    server, port = start(
        tmp_path, ["-m", "pages.shell.serve"], "127.0.0.1",
        TOUCHSTONE_USER_HEADER="X-Forwarded-User", TOUCHSTONE_TRUSTED_PROXIES=proxies,
    )  # fmt: skip
    header = {"X-Forwarded-User": "lea", "X-Forwarded-For": "10.0.0.7", "X-Touchstone-Peer": "10.0.0.7"}
    try:
        with ThreadPoolExecutor() as threads:
            page = threads.submit(lambda: asyncio.run(talk(port, header))).result()
    finally:
        server.terminate()
        server.wait(timeout=20)
    shown = re.findall(r'shown\\?": \\?"(\w+)', page)  # what the bar says of whoever is here
    assert shown == ([name] if name else [])
    assert ("does not say who you are" in page) is (name is None)
