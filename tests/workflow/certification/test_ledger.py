"""What attempts at one precision may err in together: sums in closed form, over any sequence of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.types import TraceFilter
from calibrate.workflow.certification import attempts, certify, ledger, planning
from calibrate.workflow.certification.ledger import Entry, Ledger, open_ledger, shares_traffic
from calibrate.workflow.evidence import loading
from db import Store, open_store
from tests.workflow.certifying import Traffic, traffic
from tests.workflow.making import ABOVE, NOW

WHERE = (
    TraceFilter(), TraceFilter(models=("a",)), TraceFilter(models=("b",)), TraceFilter(operations=("qa",)),
    TraceFilter(operations=("summary",)), TraceFilter(attributes={"tier": "gold"}),
)  # fmt: skip
"""All traffic, and segments of it."""


@dataclass(frozen=True)
class Made:
    """An attempt of a week: its window begins `since` days in, its traces came up to `last` days in."""

    since: int | None
    last: int | None
    part: TraceFilter
    undated: bool

    @property
    def where(self) -> TraceFilter:
        since = None if self.since is None else day(self.since)
        return replace(self.part, since=since, undated=self.undated)

    def entry(self, order: int, target: float = 0.7) -> Entry:
        last = None if self.last is None else day(self.last)
        return Entry(order, target, last, undated=self.undated or last is None)


def day(number: int) -> datetime:
    return datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=number)


made = st.builds(
    Made, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9), st.sampled_from(WHERE), st.booleans()
)


@pytest.mark.parametrize("earlier", range(12))
def test_what_is_spent_and_what_is_left_are_the_five_percent(earlier: int) -> None:
    spent = sum(0.05 * 0.8 * 0.2**k for k in range(earlier))
    assert Ledger(earlier).left == pytest.approx(0.05 - spent) == pytest.approx(0.05 * 0.2**earlier)
    assert Ledger(earlier).level == pytest.approx(0.05 * 0.8 * 0.2**earlier)
    assert Ledger(earlier).left - Ledger(earlier).level == pytest.approx(Ledger(earlier + 1).left)


@given(st.lists(made, max_size=7))
def test_any_attempts_that_share_traffic_err_in_five_percent_together(sequence: list[Made]) -> None:
    entries = [one.entry(order) for order, one in enumerate(sequence)]
    levels = [open_ledger(entries, 0.7, one.where, before=order).level for order, one in enumerate(sequence)]
    shared = {(i, j): shares_traffic(entries[i], sequence[j].where) for i, j in combinations(range(len(sequence)), 2)}
    for size in range(1, len(sequence) + 1):
        for some in combinations(range(len(sequence)), size):
            if all(shared[pair] for pair in combinations(some, 2)):
                assert sum(levels[i] for i in some) <= 0.05


def test_only_earlier_traffic_does_not_count_whatever_its_segment() -> None:
    before = Made(0, 3, TraceFilter(models=("a",)), undated=False).entry(1)
    for where, counts in (
        (TraceFilter(since=day(4), models=("a",)), False),
        (TraceFilter(since=day(3), models=("a",)), True),
        (TraceFilter(since=day(3), models=("b",)), True),
        (TraceFilter(since=day(3), operations=("qa",)), True),
        (TraceFilter(since=day(4), operations=("qa",)), False),
        (TraceFilter(since=day(3), models=("a", "b")), True),
        (TraceFilter(since=day(3)), True),
        (TraceFilter(), True),
    ):
        assert shares_traffic(before, where) == counts
    undated = Entry(1, 0.7, day(3), undated=True)
    assert shares_traffic(undated, TraceFilter(since=day(4)))
    assert not shares_traffic(undated, TraceFilter(since=day(4), undated=False))
    assert open_ledger([before], 0.8, TraceFilter()).attempt == 1
    assert open_ledger([before], 0.704, TraceFilter()).attempt == 2


@pytest.fixture
def world(sqlite_url: str) -> Iterator[Traffic]:
    store = open_store(sqlite_url)
    made = traffic(store)
    made.first()
    made.first(name="w48", seed=2)
    yield made
    store.close()


def planned(store: Store, *names: str, seed: int = 5, target: float = 0.7) -> attempts.Attempt:
    data = loading.load_evidence(store, ABOVE, sample=names)
    found = planning.plan(store, data, target=target, budget=60, seed=seed, by="ann", now=NOW)
    assert isinstance(found, attempts.Attempt)
    return found


def test_neither_order_nor_subset_of_samples_nor_abandoning_begins_anew(world: Traffic) -> None:
    store = world.store
    for number, names in enumerate((("w47",), ("w48",), ("w47", "w48"))):
        one = planned(store, *names)
        assert (one.plan.attempt, one.plan.level) == (number + 1, pytest.approx(0.04 * 0.2**number))
        certify.draw(store, one, now=NOW)  # and nobody labels it
    with pytest.raises(BadInput, match="under way"):
        planned(store, "w48", "w47")
    assert ledger.next_attempt(store, 0.7, TraceFilter()).left == pytest.approx(0.05 * 0.2**3)
    assert ledger.next_attempt(store, 0.6, TraceFilter()).attempt == 1
    assert ledger.next_attempt(store, 0.7, TraceFilter(since=NOW + timedelta(days=1), undated=False)).attempt == 1


def test_of_two_plans_made_at_once_the_later_draw_is_the_later_attempt(world: Traffic) -> None:
    store = world.store
    one, other = planned(store, "w47"), planned(store, "w48")
    assert one.plan.attempt == other.plan.attempt == 1
    certify.draw(store, one, now=NOW)
    with pytest.raises(BadInput, match="attempt 2 and not 1, with a smaller error: plan anew"):
        certify.draw(store, other, now=NOW)
    assert planned(store, "w48").plan.attempt == 2
