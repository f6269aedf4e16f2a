"""A second person, and the way back: what was approved is what is released, and what comes back decides as it did."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrate.errors import BadInput, Forbidden
from calibrate.runtime import decide
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import approval, history
from calibrate.workflow.releasing import release as step
from db import Store
from db.audit import Actor, How, acting_as
from db.releases import ReleaseRequest
from tests.workflow.making import ABOVE, DETECTOR, NOW, draw, fill, give_scores, save


@pytest.fixture
def ready(store: Store) -> Store:
    """Two detectors with a saved point each, live as v1."""
    labels, scores = draw()
    fill(store, labels, scores)
    traces = store.traces.load([row.pk for row in loading.load_evidence(store, DETECTOR).rows])
    give_scores(store, traces, [None if s is None else 1 - s for s in scores], name=ABOVE)
    save(store, "precision>=0.7")
    save(store, "elbow", name=ABOVE)
    step.release(store, ReleaseRequest(note="first", by="ann"), now=NOW)
    return store


def propose(store: Store, **given: Any) -> Any:
    request = ReleaseRequest(**{"tiers": {DETECTOR: "page"}, "note": "louder", "by": "ann", **given})
    return approval.propose(store, request, now=NOW)


def test_nothing_is_released_until_somebody_else_approves(ready: Store) -> None:
    one = propose(ready)
    assert ready.releases.count() == 1
    with pytest.raises(BadInput, match=r"is your own \(ann\): somebody else approves it"):
        approval.approve(ready, one.id, by="ann", now=NOW)
    row = approval.approve(ready, one.id, by="bob", now=NOW)
    file = history.read_release(row)
    assert (row.version, row.released_by, row.note) == (2, "ann", "louder")
    assert file.detectors[DETECTOR].tier == "page"
    assert file.extra["x-approved-by"] == "bob"
    done = ready.proposals.get(one.id)
    assert done is not None
    assert (done.outcome, done.version, done.decided_by) == ("approved", 2, "bob")
    with pytest.raises(BadInput, match="was approved as v2 by bob already"):
        approval.approve(ready, one.id, by="cid", now=NOW)
    assert approval.waiting(ready) == []


@pytest.mark.parametrize("how", ["oidc", "header", "login", "environment", "typed", "unstated"])
def test_a_name_typed_at_a_page_proposes_nothing(ready: Store, how: How) -> None:
    with acting_as(Actor("zoe", how)):
        if how not in ("typed", "unstated"):
            assert propose(ready, by="zoe").proposed_by == "zoe"
            return
        with pytest.raises(Forbidden, match="zoe is a name that was typed in"):
            propose(ready, by="zoe")
    assert approval.waiting(ready) == []


def test_a_declined_one_stays_declined(ready: Store) -> None:
    one = propose(ready)
    approval.decline(ready, one.id, by="bob", now=NOW)
    for does in (approval.approve, approval.decline):
        with pytest.raises(BadInput, match="was declined by bob already"):
            does(ready, one.id, by="cid", now=NOW)
    assert ready.releases.count() == 1
    with pytest.raises(BadInput, match="there is no proposal 9; none is waiting"):
        approval.decline(ready, 9, by="bob", now=NOW)


def moved(store: Store) -> None:
    save(store, "elbow")


def released(store: Store) -> None:
    step.release(store, ReleaseRequest(tiers={ABOVE: "off"}, by="cid"), now=NOW)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("meanwhile", "match"),
    [(moved, "have changed since proposal 1 was made"), (released, "v2 was released after proposal 1 was made")],
)
def test_what_changed_meanwhile_is_not_approved(ready: Store, meanwhile: Callable[[Store], None], match: str) -> None:
    one = propose(ready)
    meanwhile(ready)
    before = ready.releases.count()
    with pytest.raises(BadInput, match=match):
        approval.approve(ready, one.id, by="bob", now=NOW)
    with pytest.raises(BadInput, match=match):
        approval.preview(ready, one, NOW)
    assert ready.releases.count() == before
    assert approval.decline(ready, one.id, by="bob", now=NOW).outcome == "declined"


def test_a_proposal_is_held_to_what_a_release_is(ready: Store) -> None:
    with pytest.raises(BadInput, match="nothing changes against v1"):
        propose(ready, tiers={})
    save(ready, "manual:0.05")
    with pytest.raises(BadInput, match="is worse than in v1"):
        propose(ready)
    one = propose(ready, reason="The pager.")
    with pytest.raises(BadInput, match=f"proposal {one.id} by ann holds the same and waits"):
        propose(ready, by="bob", reason="The pager.")
    row = approval.approve(ready, one.id, by="bob", now=NOW)
    assert history.read_release(row).extra["x-reason"] == "The pager."
    assert row.note == "louder\nReason: The pager."


SCORES = st.one_of(st.none(), st.floats(-0.5, 1.5), st.sampled_from([0.0, 0.2, 0.5, 1.0]))


def test_a_version_that_comes_back_decides_as_it_did(ready: Store, tmp_path: Any) -> None:
    save(ready, "manual:0.9")
    step.release(
        ready, ReleaseRequest(tiers={DETECTOR: "page", ABOVE: "off"}, note="louder", reason="a test", by="ann"), now=NOW
    )
    out = tmp_path / "live.json"
    row = step.rollback(ready, 1, by="bob", now=NOW, out=out)
    assert out.read_text() == row.document
    first, back = (json.loads(one.document) for one in (ready.releases.get(1), row) if one)
    own = {"version", "released_at", "released_by", "note", "replaces", "digest"}
    assert {k: v for k, v in first.items() if k not in own} == {k: v for k, v in back.items() if k not in own}
    assert (row.version, back["replaces"], row.note, row.released_by) == (3, 2, "Back to v1.", "bob")
    one, two, three = (history.read_release(found) for number in (1, 2, 3) if (found := ready.releases.get(number)))
    differed = []

    @settings(max_examples=150, suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(st.sampled_from([DETECTOR, ABOVE, "unknown"]), SCORES))
    def same(scores: dict[str, float | None]) -> None:
        then, now = decide(one, scores), decide(three, scores)
        assert (then.flags, then.tier, then.verdict, then.reasons, then.missing) == (
            now.flags, now.tier, now.verdict, now.reasons, now.missing,
        )  # fmt: skip
        differed.append(decide(two, scores).tier != then.tier)

    same()
    assert any(differed)  # the version between them did decide otherwise


def test_there_must_be_something_to_go_back_to(ready: Store) -> None:
    with pytest.raises(BadInput, match="v1 is live, and equal to v1: there is nothing to roll back"):
        step.rollback(ready, 1, by="bob", now=NOW)
    with pytest.raises(BadInput, match="there is no release 7; the newest is 1"):
        step.rollback(ready, 7, by="bob", now=NOW)


def test_a_release_without_a_change_is_refused_and_names_are_helped(ready: Store) -> None:
    with pytest.raises(BadInput, match="nothing changes against v1"):
        step.release(ready, ReleaseRequest(note="again", by="ann"), now=NOW)
    with pytest.raises(BadInput, match=r"no detector 'rogue_l'; did you mean rouge_l\?"):
        step.release(ready, ReleaseRequest(detectors=["rogue_l"], by="ann"), now=NOW)
    with pytest.raises(BadInput, match=rf"not in this release \(did you mean {DETECTOR}\?\)"):
        step.release(ready, ReleaseRequest(tiers={"token_overlp": "page"}, by="ann"), now=NOW)


def test_a_url_is_written_and_one_that_cannot_be_releases_nothing(ready: Store) -> None:
    import fsspec

    for out in ("http://example.invalid/t.json", "nonsense://x/t.json"):
        with pytest.raises(BadInput, match=out.split(":")[0]):
            step.release(ready, ReleaseRequest(tiers={DETECTOR: "page"}, by="ann"), now=NOW, out=out)
    assert ready.releases.count() == 1
    row = step.release(
        ready, ReleaseRequest(tiers={DETECTOR: "page"}, by="ann"), now=NOW, out="memory://team/live.json"
    )
    assert fsspec.filesystem("memory").cat("/team/live.json").decode() == row.document
