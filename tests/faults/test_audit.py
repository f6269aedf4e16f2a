"""The audit log: what changes the store leaves an entry, and nobody takes one out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from calibrate.cli import main
from calibrate.errors import Forbidden, StoreError
from calibrate.types import Label
from calibrate.workflow.releasing import approval
from calibrate.workflow.releasing import release as step
from db import Store, audit
from db.audit import Actor
from db.engine import writing
from db.releases import ReleaseRequest
from tests.db.make import NOW, records
from tests.workflow.making import DETECTOR, draw, fill, save


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    """Whoever acted in the test before acts no more."""
    audit.identify_by(lambda: None)
    yield
    audit.identify_by(lambda: None)


def acts(name: str, how: Any = "oidc", **more: Any) -> None:
    audit.identify_by(lambda: Actor(name, how, **more))


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET who = 'somebody else'",
        "DELETE FROM audit",
        "DELETE FROM audit WHERE id < 0",
        "INSERT OR REPLACE INTO audit (id, at, who, how, verb, what) VALUES (1, '2026-01-01', 'x', 'oidc', 'x', 'x')",
        "TRUNCATE audit",
    ],
)
def test_the_database_itself_lets_nobody_change_an_entry(store: Store, statement: str) -> None:
    sqlite = store.engine.dialect.name == "sqlite"
    if ("OR REPLACE" in statement and not sqlite) or ("TRUNCATE" in statement and sqlite):
        return  # not a statement of this database
    if statement.endswith("id < 0") and sqlite:
        return  # a trigger of SQLite's is by row, and there is none
    store.audit.note("purged", "a trace", by="ann", after={"texts": 3})
    before = store.audit.entries()
    with pytest.raises(DBAPIError, match="append-only"), store.engine.begin() as connection:
        connection.execute(text(statement))
    assert store.audit.entries() == before


def test_what_is_undone_leaves_no_entry_and_what_is_done_leaves_its_own(store: Store) -> None:
    with pytest.raises(StoreError), writing(store.engine) as connection:  # noqa: PT012  # the transaction is the point
        audit.record(connection, "point saved", "x")
        connection.execute(text("SELECT * FROM nothing"))
    assert store.audit.entries() == []
    acts("ann")
    store.files.save("prompt.txt", "first", by="ann", now=NOW)
    store.files.save("prompt.txt", "second", by="ann", now=NOW)
    newest = store.audit.entries()[0]
    assert (newest.who, newest.how, newest.verb, newest.what) == ("ann", "oidc", "file changed", "prompt.txt")
    assert (newest.before, newest.after) == ({"text": "first"}, {"text": "second"})


def test_a_release_by_two_is_in_the_log_with_both(store: Store) -> None:
    fill(store, *draw())
    acts("ann")
    save(store, "precision>=0.7")
    request = ReleaseRequest(note="first", by="ann")
    proposal = approval.propose(store, request, now=NOW)
    acts("bob", "typed")
    with pytest.raises(Forbidden, match="bob is a name that was typed in"):
        approval.approve(store, proposal.id, by="bob", now=NOW)
    assert store.releases.count() == 0
    acts("bob", "header")
    approval.approve(store, proposal.id, by="bob", now=NOW)
    step.release(store, ReleaseRequest(tiers={DETECTOR: "page"}, by="bob"), now=NOW)
    step.rollback(store, 1, by="bob", now=NOW)
    log = [(entry.who, entry.verb, entry.what) for entry in reversed(store.audit.entries())]
    assert [line for line in log if line[1] != "sample drawn"] == [
        ("ann", "point saved", DETECTOR),
        ("ann", "release proposed", "proposal 1"),
        ("bob", "released", "v1"),
        ("bob", "proposal approved", "proposal 1"),
        ("bob", "released", "v2"),
        ("bob", "rolled back", "v3"),
    ]


def test_a_settled_dispute_names_what_stood_there(store: Store) -> None:
    store.traces.add(records(1), labels_as=None, now=NOW)
    key = store.traces.find("t1")
    assert key is not None
    for labeller, verdict in (("ann", "clean"), ("bob", "hallucinated")):
        store.labels.add(key, Label("t1", labeller, verdict), sample_id=None, now=NOW)  # type: ignore[arg-type]
    assert store.audit.entries() == []  # labels are a log of their own
    store.labels.add(key, Label("t1", "cid", "clean", adjudicates=True), sample_id=None, now=NOW)
    (entry,) = store.audit.entries()
    assert (entry.who, entry.how, entry.verb, entry.what) == ("cid", "unstated", "dispute settled", "t1")
    assert (entry.before, entry.after) == ({"gold": "disputed"}, {"gold": "clean"})


@pytest.mark.both_databases
def test_a_role_holds_in_the_store_whatever_a_page_forgot(store: Store) -> None:
    store.traces.add(records(1), labels_as=None, now=NOW)
    key = store.traces.find("t1")
    assert key is not None
    acts("ann", may_write=frozenset({"labels", "skips"}))
    store.labels.add(key, Label("t1", "ann", "clean"), sample_id=None, now=NOW)
    with pytest.raises(Forbidden, match="ann has no role that may change team"):
        store.files.save("prompt.txt", "mine", by="ann", now=NOW)
    assert store.files.current() == {}
    assert len(store.labels.of_trace(key)) == 1
    assert store.audit.entries() == []  # not even that it was done


def test_the_command_line_names_its_login_and_shows_the_log(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOUCHSTONE_USER", raising=False)
    monkeypatch.setenv("LOGNAME", "somebody-else")  # a variable of the environment is nobody's word
    store.audit.note("purged", "before 2026-01-01", by="ann", after={"texts": 3})
    store.audit.note("restored", "b.db", by="bob")
    assert main(["audit", "--store", store.url, "--json", "--who", "ann"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    assert (entry["verb"], entry["what"], entry["after"]) == ("purged", "before 2026-01-01", {"texts": 3})
    person = audit.actor()
    assert person is not None
    assert (person.how, person.verified, person.name != "somebody-else") == ("login", True, True)
    assert main(["audit", "--store", store.url, "--did", "restored"]) == 0
    assert "bob" in capsys.readouterr().out.splitlines()[1]
    assert main(["audit", "--store", store.url, "--limit", "0"]) == 2
