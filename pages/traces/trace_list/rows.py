"""What the list asks of the store: the rows after a place, as text, and how many there are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, get_args

from calibrate.errors import BadInput
from calibrate.report.numbers import count, decimals, stamp
from calibrate.report.sentences.traces.purges import IN_PLACE
from calibrate.types import TraceFilter
from db import Store
from db.listing.lines import After, Line, Order, ScoreBand
from pages.components.text import visible
from pages.shell.identity import Person

MOST_ROWS = 500
MOST_COUNTED = 100_000
UNSCORED = {"abstained": "could not score", "failed": "failed", "refusal": "refusal"}


@dataclass(frozen=True)
class View:
    """What the list shows: which traces, whose scores, in which order."""

    where: TraceFilter
    band: ScoreBand | None = None
    order: Order = "newest"

    def blind(self) -> View:
        """What is left of it for whoever only labels: no filter and no order by what they do not see."""
        return View(replace(self.where, models=(), operations=(), attributes={}, label="any"))

    def to_json(self) -> dict[str, Any]:
        band = {"config": self.band.config, "low": self.band.low, "high": self.band.high} if self.band else None
        return {"where": self.where.to_json(), "band": band, "order": self.order}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> View:
        """Raises BadInput for what is no view."""
        try:
            where, order, band = TraceFilter.from_json(document["where"]), document["order"], document["band"]
            if order not in get_args(Order) or (order != "newest" and not band):
                raise ValueError(f"no order is {order!r}")
            return cls(where, _band(band) if band else None, order)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadInput(f"this is no view of the list of traces ({error}): load the page again") from error


def rows(store: Store, person: Person, body: Mapping[str, Any]) -> dict[str, Any]:
    """The rows after a place, at most `limit`; with the first ones also how many there are. Whoever only labels gets
    texts and times alone."""
    view = View.from_json(body.get("view") or {})
    view = view.blind() if person.is_blind else view
    limit = body.get("limit")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_ROWS:
        raise BadInput(f"a window of {limit!r} rows cannot be: ask for 1 to {MOST_ROWS}")
    after = _place(view.order, body["after"]) if body.get("after") else None
    window = store.lines.window(view.where, band=view.band, order=view.order, limit=limit, after=after)
    answer: dict[str, Any] = {
        "rows": [_row(line, blind=person.is_blind) for line in window.lines],
        "after": _place_json(window.after),
    }
    if after is None:
        answer |= count_lines(store, view)
    return answer


def count_lines(store: Store, view: View) -> dict[str, Any]:
    """How many lines a view has, as a number and in words."""
    scored = view.order != "newest"
    lines = store.lines.count(view.where, band=view.band, scored=scored, limit=MOST_COUNTED + 1)
    words = f"over {count(MOST_COUNTED, 'trace')}" if lines > MOST_COUNTED else count(lines, "trace")
    if scored and view.band and not view.band.bounded and lines <= MOST_COUNTED:
        unscored = store.lines.count(view.where, limit=MOST_COUNTED + 1) - lines
        words += f", {count(unscored)} more without a score" if unscored else ""
    return {"total": lines, "words": words}


def _band(document: Mapping[str, Any]) -> ScoreBand:
    config = document["config"]
    if isinstance(config, bool) or not isinstance(config, int):
        raise TypeError("no configuration is named")
    return ScoreBand(config, _finite(document.get("low")), _finite(document.get("high")))


def _finite(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no score")
    return float(value)


def _place(order: Order, document: Any) -> After:
    try:
        first, pk = document
        if isinstance(pk, bool) or not isinstance(pk, int):
            raise TypeError("a place ends with a key")
        if order != "newest":
            return _finite(first), pk
        return (None if first is None else datetime.fromisoformat(first)), pk
    except (TypeError, ValueError) as error:
        raise BadInput(f"this is no place in the list of traces ({error}): load the page again") from error


def _place_json(after: After | None) -> list[Any] | None:
    if after is None:
        return None
    first, pk = after
    return [first.isoformat() if isinstance(first, datetime) else first, pk]


def _row(line: Line, *, blind: bool) -> dict[str, Any]:
    line = replace(line, gold=None, value=None, status=None, model=None) if blind else line
    line = replace(line, question=None, answer=IN_PLACE) if line.purged else line
    return {
        "id": line.id,
        "question": visible(line.question, 160).replace("\n", " "),
        "answer": visible(line.answer, 160).replace("\n", " "),
        "gold": line.gold,
        "score": decimals(line.value) if line.value is not None else UNSCORED.get(line.status or "", ""),
        "model": visible(line.model, 60),
        "when": stamp(line.timestamp) if line.timestamp else "undated",
    }
