"""Two people label one sample at once, each in a browser: what one holds the other never gets, but for the overlap."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from calibrate.types import Trace
from calibrate.workflow.labelling import assignment

pytestmark = pytest.mark.browser
SIZE = 44
VERDICTS = {"ann": "a", "bob": "x"}


def handed_to(page: Any) -> set[str]:
    """The ids of the traces that the server hands to this browser from now on."""
    handed: set[str] = set()

    def read(route: Any) -> None:
        response = route.fetch()
        handed.update(trace["id"] for trace in response.json()["traces"])
        route.fulfill(response=response)

    page.route("**/labelling/ahead", read)
    return handed


def shown(page: Any) -> str | None:
    """The id of the trace in sight; None once there is none."""
    card = page.locator(".touchstone-surface article.card")
    page.locator(".touchstone-surface article.card, .touchstone-surface .nothing h2").first.wait_for()
    return card.first.get_attribute("data-trace") if card.count() else None


def press(page: Any, key: str, trace: str) -> None:
    """Answers the trace in sight, and waits until it is gone."""
    page.keyboard.press(key)
    page.wait_for_function(
        "id => document.querySelector('.touchstone-surface article.card')?.dataset.trace !== id", arg=trace
    )


def test_two_people_label_a_split_sample_to_its_end(app: Any, visit: Any) -> None:
    sample = app.fill([Trace(id=f"two-{n}", answer=f"Answer {n}.") for n in range(SIZE)], sample="two people")
    shared = assignment.assign(
        app.store, sample, "split", overlap=0.25, seed=3, by="lead", now=datetime.now(UTC)
    )  # fmt: skip
    key_of = {f"two-{n}": app.store.traces.find(f"two-{n}") or 0 for n in range(SIZE)}
    twice = {name for name, key in key_of.items() if shared.twice(key)}
    assert 4 <= len(twice) <= 20, "another seed: the overlap is no test"

    pages = {who: visit(f"/?user={who}") for who in VERDICTS}
    handed = {who: handed_to(page) for who, page in pages.items()}
    for who, page in pages.items():
        page.goto(f"{app.url}/label?sample=two people&user={who}")
    answered: dict[str, Counter[str]] = {who: Counter() for who in pages}
    open_pages, presses = set(pages), 0
    while open_pages:
        for who in sorted(open_pages):
            trace = shown(pages[who])
            if trace is None:
                open_pages.discard(who)
                continue
            other = "bob" if who == "ann" else "ann"
            assert trace in twice or not answered[other][trace], f"{trace} is {other}'s, and {who} sees it"
            press(pages[who], VERDICTS[who], trace)
            answered[who][trace] += 1
            presses += 1
            if presses == 20:  # what was held before a reload stays theirs
                pages["bob"].reload()
        assert presses < 3 * SIZE
    for page in pages.values():
        page.get_by_text("are labelled").wait_for()
        page.locator(".touchstone-surface .state[data-waiting='0']").wait_for()

    labelled = {
        name: Counter(label.labeller for label in app.store.labels.of_trace(key)) for name, key in key_of.items()
    }
    assert {name: len(people) for name, people in labelled.items()} == {
        name: 2 if name in twice else 1 for name in key_of
    }
    assert all(set(people.values()) == {1} for people in labelled.values()), "nobody labels a trace twice"
    assert all(
        label.verdict == ("clean" if label.labeller == "ann" else "hallucinated")
        for key in key_of.values()
        for label in app.store.labels.of_trace(key)
    )
    # Both did their share, and no trace but those of the overlap was ever in both browsers.
    assert min(sum(people[who] for people in labelled.values()) for who in pages) >= len(twice) + 5
    assert handed["ann"] & handed["bob"] == twice
    assert handed["ann"] | handed["bob"] == set(key_of)
    agreement = {reading.trace_id: dict(reading.verdicts) for reading in app.store.labels.readings(sample.id)}
    assert agreement == {name: {"ann": "clean", "bob": "hallucinated"} for name in twice}
