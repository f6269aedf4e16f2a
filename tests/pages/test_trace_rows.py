"""What the list's requests may hold: a view comes back as it went, and what is none is refused in a sentence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from calibrate.errors import BadInput
from calibrate.types import Record, Trace, TraceFilter
from db import Store
from db.listing.lines import ScoreBand
from pages.shell.identity import Person
from pages.traces.trace_list.rows import View, rows

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANYBODY = Person("ann", "login")
VIEWS = (
    View(TraceFilter()),
    View(TraceFilter(text="tank", models=("m",), since=NOW, undated=False), ScoreBand(4, 0.25, None), "highest"),
)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_comes_back(view: View) -> None:
    assert View.from_json(view.to_json()) == view


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"view": VIEWS[0].to_json()},
        {"view": VIEWS[0].to_json(), "limit": 0},
        {"view": VIEWS[0].to_json(), "limit": 501},
        {"view": VIEWS[0].to_json(), "limit": True},
        {"view": {**VIEWS[0].to_json(), "order": "highest"}, "limit": 5},
        {"view": {**VIEWS[1].to_json(), "order": "random()"}, "limit": 5},
        {"view": {**VIEWS[1].to_json(), "band": {"config": "1; DROP"}}, "limit": 5},
        {"view": {**VIEWS[1].to_json(), "band": {"config": 1, "low": "0"}}, "limit": 5},
        {"view": {**VIEWS[0].to_json(), "where": {"since": "yesterday"}}, "limit": 5},
        {"view": {**VIEWS[0].to_json(), "where": []}, "limit": 5},
        {"view": VIEWS[0].to_json(), "limit": 5, "after": ["later", 1]},
        {"view": VIEWS[0].to_json(), "limit": 5, "after": [None]},
        {"view": VIEWS[1].to_json(), "limit": 5, "after": ["2026-11-20", 1]},
    ],
)
def test_what_is_no_request_is_refused(body: dict[str, Any], store: Store) -> None:
    with pytest.raises(BadInput):
        rows(store, ANYBODY, body)


def test_rows_are_text_that_shows_what_it_hides(store: Store) -> None:
    trace = Trace("t\u202e1", "An\u202eswer <b>", question="Line\none", timestamp=NOW)
    store.traces.add([Record(1, trace, ())], labels_as=None, now=NOW)
    answer = rows(store, ANYBODY, {"view": View(TraceFilter()).to_json(), "limit": 5})
    (row,) = answer["rows"]
    assert row["id"] == trace.id
    assert "\u202e" not in row["answer"]
    assert "<b>" in row["answer"]
    assert row["question"] == "Line one"
    assert (answer["total"], answer["words"], answer["after"]) == (1, "1 trace", None)
