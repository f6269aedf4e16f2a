"""Releases are numbered without gaps and never change; a proposal is decided once."""

from __future__ import annotations

import hashlib
import threading

import pytest

from db import Store, open_store
from db.engine import writing
from db.releases import ReleaseRequest, decide
from tests.db.make import NOW


def test_each_release_names_the_one_before_it(store: Store) -> None:
    for version in (1, 2):
        with store.releases.adding(lambda n, old: f"{n} after {old}", by="ann", note="why", now=NOW) as row:
            assert row.version == version
    newest, first = store.releases.list()
    assert (newest.document, first.document) == ("2 after 1 after None", "1 after None")
    assert first.sha256 == hashlib.sha256(b"1 after None").hexdigest()
    assert store.releases.get(1) == first
    assert [store.releases.get(version) for version in (3, 2**40)] == [None, None]
    assert store.releases.list(limit=1) == [newest]
    assert store.releases.count() == 2


def test_an_error_while_a_release_is_made_uses_no_number(store: Store) -> None:
    with pytest.raises(OSError, match="full"), store.releases.adding(lambda *_: "x", by="a", note="", now=NOW):
        raise OSError("the disk is full")
    assert store.releases.count() == 0


def test_two_releases_at_once_get_two_numbers(store: Store, store_url: str) -> None:
    def publish() -> None:
        own = open_store(store_url)
        with own.releases.adding(lambda n, _: str(n), by="ann", note="", now=NOW):
            pass
        own.close()

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert [row.document for row in store.releases.list()] == ["4", "3", "2", "1"]


def test_a_proposal_is_decided_once(store: Store) -> None:
    request = ReleaseRequest(
        detectors=["overlap"], ensembles=["both"], tiers={"overlap": "page"}, note="n", reason="r", by="ann"
    )
    proposal = store.proposals.add(request, expected=3, content="digest", now=NOW)
    assert store.proposals.get(proposal.id) == proposal
    assert (proposal.request, proposal.expected, proposal.content) == (request, 3, "digest")
    assert store.proposals.list(waiting=True) == [proposal]
    assert store.proposals.decline(proposal.id, by="bob", now=NOW)
    assert not store.proposals.decline(proposal.id, by="cy", now=NOW)
    with writing(store.engine) as connection:
        assert not decide(connection, proposal.id, "approved", by="dee", now=NOW, version=1)
    declined = store.proposals.get(proposal.id)
    assert declined is not None
    assert (declined.outcome, declined.decided_by, declined.version) == ("declined", "bob", None)
    assert store.proposals.list(waiting=True) == []
    assert store.proposals.list() == [declined]
    assert store.proposals.get(2**40) is None
