"""What watching decided, as people meet it: on the home page, in the list, on the trace that an alert links to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from calibrate import registry
from calibrate.stats.choosing.policy import parse
from calibrate.types import Label, Record, Trace, TraceFilter
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import release
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.watching.watch import Watcher
from db import Store, open_store
from db.decisions import StoredDecision
from db.releases import ReleaseRequest
from tests.browser.conftest import LONG, App, serve, settled
from tests.workflow.making import DETECTOR, draw, fill

pytestmark = pytest.mark.browser

TITLE = registry.get(DETECTOR).title
NEVER = datetime.min.replace(tzinfo=UTC)


@pytest.fixture(scope="session")  # of the session as the one it stands in for: `_warm` asks for it
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A store of its own: a flag needs a live release of this file's detector, not the one another test left."""
    folder = tmp_path_factory.mktemp("flags")
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    server, address = serve(store.url, folder / "server.log")
    yield App(address, store)
    server.terminate()
    server.wait(timeout=20)
    store.close()


@pytest.fixture(scope="module")
def flagged(app: App) -> str:
    """A release that watched: the id of a trace that it flagged."""
    store = app.store
    labels, scores = draw(30)
    fill(store, labels, scores)
    data = loading.load_evidence(store, DETECTOR)
    now = datetime.now(UTC)
    point, why = operating_points.choose_point(data, parse("manual:0.5")), "a test's few labels"
    operating_points.save_point(store, data, point, reason=why, by="ann", now=now)
    request = ReleaseRequest(detectors=[DETECTOR], tiers={DETECTOR: "page"}, reason=why, by="ann")
    release.release(store, request, now=now)
    return watched(store)


def watched(store: Store) -> str:
    Watcher(store, where=TraceFilter, now=lambda: datetime.now(UTC)).look()
    decided = store.decisions.newest(range(1, store.decisions.newest_trace() + 1))
    flagged = [stored.trace for pk, one in decided.items() if one.flags and (stored := store.traces.get(pk))]
    return max((trace for trace in flagged if trace.timestamp), key=lambda trace: trace.timestamp or NEVER).id


def test_the_link_of_an_alert_opens_the_trace_with_what_was_decided(
    app: App, flagged: str, visit: Callable[..., Any]
) -> None:
    version = app.store.releases.list()[0].version
    [decided] = app.store.decisions.newest([app.store.traces.find(flagged) or 0]).values()
    page = visit(f"/traces?trace={flagged}")
    page.get_by_text(re.compile(rf"v{version} decided RE(VIEW|JECT)")).wait_for()
    settled(page)
    page.get_by_role("heading", name=flagged).wait_for()
    for reason in decided.reasons:
        assert page.get_by_text(reason, exact=True).is_visible()


def test_a_release_that_has_not_looked_yet_leaves_what_was_decided_in_sight(
    app: App, flagged: str, visit: Callable[..., Any]
) -> None:
    before = app.store.releases.list()[0].version
    live = release.release(
        app.store, ReleaseRequest(detectors=[DETECTOR], tiers={DETECTOR: "signal"}, by="ann"), now=datetime.now(UTC)
    ).version
    page = visit(f"/traces?trace={flagged}")
    page.get_by_text(re.compile(rf"v{before} \(v{live} is live now\) decided RE(VIEW|JECT)")).wait_for()
    page.goto(f"{page.url.split('/traces')[0]}/watch?details=flags")
    page.get_by_text(re.compile(f"flagged in the 30 days.*v{live} has decided no trace of this store yet")).wait_for()


def test_home_has_a_line_for_each_live_threshold(app: App, flagged: str, visit: Callable[..., Any]) -> None:
    page = visit("/", viewport={"width": 1440, "height": 900})
    line = page.get_by_role("group", name=TITLE)
    line.wait_for()
    settled(page)
    said = line.inner_text()
    for text in ("Promised precision", "Known now", "Flags a day", "Last checked"):
        assert text in said
    assert re.search(r"\d+% \(\d+–\d+%\)\s+\d+ of \d+ flagged labels", said), said
    page.get_by_role("img", name=re.compile(r"up to \d+ a day")).wait_for()
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight") <= 900, "one screen"


def test_watch_has_a_row_for_each_live_threshold(app: App, flagged: str, visit: Callable[..., Any]) -> None:
    page = visit("/watch")
    row = page.locator(".st-key-live-0")
    row.get_by_text(TITLE).wait_for()
    settled(page)
    for text in ("Promised precision", "Known now", "Scores", "Models seen", "Last checked"):
        assert text in row.inner_text()
    row.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Look at drift").or_(page.get_by_text("Look at drift")).last.click()
    page.wait_for_url(re.compile(f"details=drift.*detector={DETECTOR}|detector={DETECTOR}.*details=drift"))


def test_a_flagged_trace_is_labelled_from_watch(app: App, flagged: str, visit: Callable[..., Any]) -> None:
    """The newest without a label are listed; each leads to its trace."""
    now = datetime.now(UTC)
    fresh = [Trace(f"fresh-{n}", "Wholly made up.", timestamp=now, model="a") for n in range(2)]
    app.store.traces.add([Record(n, trace) for n, trace in enumerate(fresh, 1)], labels_as=None, now=now)
    version, pks = app.store.releases.list()[0].version, [app.store.traces.find(trace.id) or 0 for trace in fresh]
    why, scores = (f"{DETECTOR} 0.1 ≤ 0.5",), {DETECTOR: 0.1}
    app.store.decisions.keep(
        [StoredDecision(pk, version, "REVIEW", "signal", (DETECTOR,), why, scores, now) for pk in pks]
    )
    ids = [trace_id for trace_id, _, _ in app.store.decisions.flagged(TraceFilter(label="unlabelled"), limit=5)]
    assert set(ids) == {"fresh-0", "fresh-1"}
    page = visit("/watch")
    links = page.locator(".st-key-flagged").get_by_role("link", name="Label now")
    links.first.wait_for()
    settled(page)
    assert links.count() == 2
    links.first.click()
    page.get_by_role("heading", name=ids[0]).wait_for()


def test_next_is_what_the_order_says(app: App, flagged: str, visit: Callable[..., Any]) -> None:
    """With no sample drawn that is next; a dispute comes before it, and once it is settled no more."""
    from playwright.sync_api import expect

    page = visit("/")
    button = page.locator(".st-key-week_next").get_by_role("button")
    expect(button).to_have_text(re.compile("Draw"), timeout=LONG)
    now, trace = datetime.now(UTC), Trace("contested", "It is so.", model="a")
    app.store.traces.add([Record(1, trace, ())], labels_as=None, now=now)
    key = app.store.traces.find(trace.id) or 0
    for name, verdict in (("ann", "clean"), ("bob", "hallucinated")):
        app.store.labels.add(key, Label("", name, verdict), sample_id=None, now=now)  # type: ignore[arg-type]
    page.reload()
    expect(button).to_have_text(re.compile("Settle disputes"), timeout=LONG)
    assert "1 label is disputed" in page.locator(".st-key-week_next").inner_text()
    settled(page)
    button.click()
    page.wait_for_url(re.compile("/agreement.*view=disputed"))
    app.store.labels.add(key, Label("", "lead", "clean", adjudicates=True), sample_id=None, now=now)
    page.goto(app.url)
    expect(button).to_have_text(re.compile("Draw"), timeout=LONG)


def test_nobody_sees_a_decision_while_labelling(app: App, flagged: str, visit: Callable[..., Any]) -> None:
    traces = app.store.traces.load([app.store.traces.find(flagged) or 0])
    from calibrate.types import Member

    if not any(one.name == "seen-flags" for one in app.store.samples.list()):
        key = app.store.traces.find(flagged)
        assert key is not None
        app.store.samples.add(
            "seen-flags", design="random", by=None, seed=1, pool=1, undated=0, where=TraceFilter(),
            strata={"all": (1, 1)}, members=[Member(key, 1.0, "all")], now=datetime.now(UTC),
        )  # fmt: skip
    page = visit("/label?sample=seen-flags&user=somebody-new")
    page.get_by_text(traces[0].answer).first.wait_for()
    settled(page)
    said = page.locator(".stApp").inner_text()
    assert "decided" not in said
    assert DETECTOR not in said
