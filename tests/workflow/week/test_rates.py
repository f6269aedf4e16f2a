"""The weekly rate: counted by hand where every trace is labelled, weighted by hand where strata were drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from scipy.stats import binomtest

from calibrate.errors import BadInput
from calibrate.report.sentences.watching import rates as sentences
from calibrate.types import Label, Member, Record, Trace, TraceFilter
from calibrate.workflow.week.rates import Series, weekly_rates
from db import Store

MONDAY = datetime(2026, 11, 2, 9, tzinfo=UTC)
WEEKS = 3
Verdicts = Sequence[str | None]


def add(store: Store, week: int, verdicts: Verdicts, *, model: str = "m", start: int = 0) -> list[int]:
    """Traces of one week, an hour apart; None is without a label. Gives their keys."""
    records = []
    for place, verdict in enumerate(verdicts, start):
        at = MONDAY + timedelta(weeks=week, hours=place % 150)
        trace = Trace(f"w{week}-{model}-{place}", f"answer {week} {model} {place}", timestamp=at, model=model)
        label = () if verdict is None else (Label(trace.id, "", verdict),)
        records.append(Record(place + 1, trace, label))
    store.traces.add(records, labels_as="gold", now=MONDAY + timedelta(weeks=WEEKS))
    return [key for record in records if (key := store.traces.find(record.trace.id)) is not None]


def of(n: int, hallucinated: int, *others: str) -> list[str]:
    return ["hallucinated"] * hallucinated + ["clean"] * (n - hallucinated - len(others)) + list(others)


def only(series: Sequence[Series]) -> Series:
    (one_series,) = series
    return one_series


def test_where_every_trace_is_labelled_a_week_is_its_share(store: Store) -> None:
    for week, hallucinated in enumerate((10, 20, 5)):
        add(store, week, of(40, hallucinated))
    rates = weekly_rates(store)
    weeks = only(rates.series).weeks
    assert [week.monday for week in weeks] == [date(2026, 11, 2), date(2026, 11, 9), date(2026, 11, 16)]
    assert [week.rate.value for week in weeks] == pytest.approx([10 / 40, 20 / 40, 5 / 40])
    assert [(week.traces, week.labels, week.settled) for week in weeks] == [(40, 40, None)] * 3
    for week in weeks:  # wider or as wide as Wilson's, never absurdly so
        wilson = binomtest(week.hallucinated, 40).proportion_ci(method="wilson")
        assert week.rate.low == pytest.approx(wilson.low, abs=0.03)
        assert week.rate.high == pytest.approx(wilson.high, abs=0.03)
    change = only(rates.series).change
    assert change is not None
    assert change.value == pytest.approx(5 / 40 - 20 / 40)
    assert change.high is not None
    assert change.high < 0
    assert "no significant" not in sentences.newest(only(rates.series))


def test_labels_stand_for_what_they_were_drawn_from(store: Store) -> None:
    """Two strata a week: all 20 traces of the one were drawn, and 20 of 180 of the other."""
    rng = np.random.default_rng(1)
    members, shares = [], []
    for week in range(2):
        rare = add(store, week, of(20, 15))
        often = add(store, week, [*of(20, 2), *[None] * 160], start=20)
        members += [Member(pk, 1.0, "rare") for pk in rare] + [Member(pk, 20 / 180, "often") for pk in often[:20]]
        shares.append((15 + 180 * 2 / 20) / 200)
    order = [members[place] for place in rng.permutation(len(members))]
    store.samples.add(
        "both", design="octave", by=None, seed=1, pool=400, undated=0, where=TraceFilter(),
        strata={"rare": (40, 40), "often": (360, 40)}, members=order, now=MONDAY + timedelta(weeks=WEEKS),
    )  # fmt: skip
    rates = weekly_rates(store)
    assert rates.caution is None
    assert [week.rate.value for week in only(rates.series).weeks] == pytest.approx(shares)
    assert all(share < 0.4 for share in shares)  # 43% of the labels are hallucinated


def test_what_is_undecided_is_in_no_rate_and_bounds_it(store: Store) -> None:
    add(store, 0, of(40, 10, "unsure", "unsure"))
    week = only(weekly_rates(store).series).weeks[0]
    assert (week.labels, week.undecided) == (38, 2)
    assert week.rate.value == pytest.approx(10 / 38)
    assert week.settled is not None
    assert (week.settled.low, week.settled.high) == pytest.approx((10 / 40, 12 / 40))
    assert "25–30% with 2 undecided settled" in sentences.figures(week)


def test_a_value_is_a_part_of_each_week_and_few_are_told_apart(store: Store) -> None:
    for model, hallucinated in (("a", 10), ("b", 2)):
        add(store, 0, of(20, hallucinated), model=model)
    for place in range(5):
        add(store, 0, of(3, 1), model=f"rare {place}")
    rates = weekly_rates(store, by="model")
    assert [series.value for series in rates.series][:2] == ["a", "b"]
    assert [series.weeks[0].rate.value for series in rates.series][:2] == pytest.approx([0.5, 0.1])
    assert (len(rates.series), rates.beyond) == (4, 3)
    assert sentences.comparison(rates) is None  # neither is the newer one
    assert "3 values of model" in sentences.remarks(rates)[0]


def test_the_newest_values_are_told_apart_and_compared(store: Store) -> None:
    """Six prompts, one after another: the last has the fewest labels, and is what one asks about."""
    for week, (labels, hallucinated) in enumerate([(60, 20)] * 4 + [(60, 30), (40, 4)]):
        add(store, week, of(labels, hallucinated), model=f"v{week + 1}")
    rates = weekly_rates(store, by="model")
    assert [series.value for series in rates.series] == ["v6", "v5", "v4", "v3"]
    assert rates.step is not None
    assert rates.step.difference.value == pytest.approx(4 / 40 - 30 / 60)
    said = sentences.comparison(rates)
    assert said is not None
    assert re.match(r"v6 hallucinated 10% \(.*\) of 40 labels; v5 hallucinated 50% .* 40 points fewer \(95% int", said)
    assert "Their times differ" in said
    assert "earlier week" not in "".join(sentences.newest(series) for series in rates.series)
    assert sentences.remarks(rates) == ["2 values of model, in use earlier or with fewer labels, are left out."]


def test_a_change_within_one_value_says_so(store: Store) -> None:
    for week, hallucinated in enumerate((5, 30)):
        add(store, week, of(40, hallucinated), model="v2")
        add(store, week, of(40, 30), model="v1", start=40)
    rates = weekly_rates(store, by="model")
    said = next(sentences.newest(series) for series in rates.series if series.value == "v2")
    assert "against its own 12% in 2026-W45" in said


def test_labels_that_describe_no_traffic_have_no_rate(store: Store) -> None:
    add(store, 0, [*of(10, 5), None, None])  # nobody says how the ten were chosen
    rates = weekly_rates(store)
    assert (rates.series, rates.caution is None) == ((), False)
    assert "were chosen" in sentences.remarks(rates)[0]


def test_an_empty_store_says_what_to_do(store: Store) -> None:
    assert "label this week's sample" in sentences.remarks(weekly_rates(store))[0]


def test_an_attribute_that_no_trace_carries_is_refused_and_two_spellings_are_one(store: Store) -> None:
    at = MONDAY
    records = [
        Record(
            n + 1, Trace(f"t{n}", f"a {n}", timestamp=at, attributes={"tier": "gold"}), (Label(f"t{n}", "", "clean"),)
        )
        for n in range(3)
    ]
    store.traces.add(records, labels_as="gold", now=at)
    assert weekly_rates(store, by="attributes.tier").series == weekly_rates(store, by="tier").series
    for unknown in ("nobody", "attributes.", ""):
        with pytest.raises(BadInput, match="no trace carries"):
            weekly_rates(store, by=unknown)
