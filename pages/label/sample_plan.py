"""What n labels will tell, what the sample will hold, and the samples drawn so far."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import streamlit as st

from calibrate.report.numbers import ago, count, decimals, duration, estimate, exact_share, share
from calibrate.report.sentences import labels
from calibrate.stats.intervals.sweep_intervals import expected_precision_halfwidth
from calibrate.stats.sampling import designs
from calibrate.stats.sampling.sizing import Stratum, halfwidth
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.evidence.prevalence import estimate_prevalence
from calibrate.workflow.sampling.sizing import PREVALENCE, Plan, last_prevalence, plan
from db import Store
from db.tables.filters import NONE
from pages import shell
from pages.components.text import label, visible
from pages.label.sample_design import FLAGGED, RANDOM, UNCERTAIN, Choice, in_words

PREVALENCES = (0.01, 0.02, 0.05, 0.1, 0.2)
AROUND, WISH = 0.7, 0.1  # the precision a plan is for, and how closely it should be known


def free_name(store: Store, now: datetime) -> str:
    """The ISO week's name, with a number where it is taken."""
    week = designs.default_name(now)
    taken = {sample.name for sample in store.samples.list()}
    number = 2
    name = week
    while name in taken:
        name, number = f"{week}-{number}", number + 1
    return name


def show_plan(store: Store, where: TraceFilter, choice: Choice, n: int, size: int) -> None:
    """What the labels will tell, for an assumed share of hallucinated answers."""
    if choice.design == FLAGGED:
        width = halfwidth({"flagged": Stratum(size, 1.0)}, n, precision=AROUND)
        st.markdown(
            f"**{count(n, 'label')}** of what is flagged: a precision around {exact_share(AROUND)} known to "
            f"**±{decimals(width, 2)}**."
        )
        _show_pace(store, n)
        return
    prevalence = _choose_prevalence(store)
    by_scores = choice.scored and choice.design != UNCERTAIN
    plan = _planned(store, where, choice.by, WISH, AROUND, prevalence, n) if by_scores else None
    st.markdown(expectation(choice, n, prevalence, plan))
    _show_pace(store, n)
    if st.toggle("How many labels for a wished precision?", key="draw_wish"):
        _show_wish(store, where, choice, prevalence, n)


def expectation(choice: Choice, n: int, prevalence: float, plan: Plan | None) -> str:
    """What n labels will tell, in Markdown; `plan` where the window has scores to plan by."""
    if plan is not None:
        # Where labels tell how much a threshold flags, no share is assumed.
        start = "" if plan.sample else f"At {share(prevalence)} hallucinated, "
        compared = "" if choice.design == RANDOM else f", at random to ±{decimals(plan.halfwidth['random'], 2)}"
        width = plan.halfwidth.get(choice.design, plan.halfwidth["random"])
        return (
            f"{start}**{count(n, 'label')}** make a precision around {exact_share(AROUND)} known to "
            f"**±{decimals(width, 2)}**{compared}, {_threshold_of(plan)}"
        )
    expected = expected_precision_halfwidth(n, prevalence)
    hallucinated = expected.expected_positives
    positives = f"about {count(round(hallucinated), 'positive')}" if round(hallucinated) else "probably no positive"
    start = f"At {share(prevalence)} hallucinated, **{count(n, 'label')}** "
    if choice.design == UNCERTAIN:
        return (
            f"{start}at random would hold {positives}; near the threshold they tell its figures, and others less well."
        )
    return f"{start}hold **{positives}**: precision known to **±{decimals(expected.halfwidth, 2)}**."


def _show_wish(store: Store, where: TraceFilter, choice: Choice, prevalence: float, n: int) -> None:
    """How many labels each design needs, and how long they take."""
    left, right = st.columns(2)
    around = left.number_input("A precision of", 0.05, 0.95, AROUND, 0.05, format="%.2f", key="wish_precision")
    wish = right.number_input("known to ±", 0.01, 0.49, WISH, 0.01, format="%.2f", key="wish_width")
    plan = _planned(store, where, choice.by, float(wish), float(around), prevalence, n)
    pace = _pace(store)
    rows = [
        {
            "Design": name,
            "Labels needed": count(need) if need is not None else "more than there are",
            **({"Takes": duration(need * pace) if need is not None else ""} if pace else {}),
        }
        for name, need in sorted(plan.labels.items(), key=lambda item: (item[1] is None, item[1]))
    ]
    st.dataframe(rows, hide_index=True)
    sentence = _threshold_of(plan)
    st.caption(sentence[0].upper() + sentence[1:])
    if doubt := labels.doubt(plan.doubt):
        st.caption(f":material/info: {label(doubt[:1].upper() + doubt[1:], 300)}.")


def _threshold_of(plan: Plan) -> str:
    whose = f" of {plan.detector}" if plan.detector else ""
    basis = f"by the labels of {label(plan.sample, 60)}" if plan.sample else "the share assumed hallucinated"
    return f"for a threshold{whose} that flags {share(plan.flag_rate)} of the window, {basis}."


def _choose_prevalence(store: Store) -> float:
    measured = last_prevalence(store)
    measured = round(measured, 3) if measured else None
    options = sorted({*PREVALENCES, *([measured] if measured else [])})
    return st.segmented_control(
        "If this share is hallucinated",
        options,
        default=measured or PREVALENCE,
        required=True,
        format_func=lambda p: f"{share(p)} (last sample)" if p == measured else share(p),
        key="draw_prevalence",
    )


def _show_pace(store: Store, n: int) -> None:
    if pace := _pace(store):
        st.caption(
            f"About {duration(n * pace)} of labelling at {max(1, round(pace))} s each, the pace of the last sample."
        )


@shell.cached_read("Planning …", *shell.EVIDENCE, "points", entries=64)
def _planned(
    store: Store, where: TraceFilter, by: str | None, wish: float, around: float, prevalence: float, n: int
) -> Plan:
    return plan(store, where, wish=wish, precision=around, prevalence=prevalence, by=by, n=n)


def show_strata(strata: Mapping[str, tuple[int, int]]) -> None:
    """The strata, each with its traces and how many are drawn, and what one label of each stands for."""
    rows = [
        {
            "Stratum": "not given" if name == NONE else visible(name, 60),
            "Traces": size,
            "Drawn": n,
            "Chance": 100 * n / size if size else None,
            "One label stands for": size / n if n else None,
        }
        for name, (size, n) in strata.items()
    ]
    columns = {
        "Chance": st.column_config.NumberColumn(format="%.2g%%", help="How likely each trace of it was to be drawn"),
        "One label stands for": st.column_config.NumberColumn(format="%.1f traces"),
    }
    st.dataframe(rows, hide_index=True, height=38 + 35 * min(len(rows), 10), column_config=columns)


def show_samples(store: Store, samples: list[Sample], now: datetime) -> None:
    rows = [_row(store, sample, now) for sample in samples]
    progress = st.column_config.ProgressColumn("Labelled", format="%.0f%%", min_value=0, max_value=100)
    st.dataframe(rows, hide_index=True, height=min(38 + 35 * len(rows), 400), column_config={"Labelled": progress})


def _row(store: Store, sample: Sample, now: datetime) -> dict[str, object]:
    gold = store.labels.gold_counts(sample.id)
    hallucinated = estimate_prevalence(store, sample).share
    of = " of flagged" if sample.design == FLAGGED else ""
    return {
        "Sample": visible(sample.name, 80),
        "Labelled": 100 * sum(gold.values()) / sample.size if sample.size else 0.0,
        "Traces": sample.size,
        "Hallucinated": ""
        if hallucinated.value is None
        else estimate(hallucinated.value, hallucinated.low, hallucinated.high) + of,
        "Of a pool of": sample.pool,
        "Design": in_words(sample),
        "Seed": str(sample.seed),
        "Drawn": ago(sample.created_at, now),
    }


def _pace(store: Store) -> float | None:
    """Seconds per label, in the newest sample that this user labelled."""
    paces = (store.labels.place(sample.id, shell.user()).seconds_each for sample in store.samples.list()[:3])
    return next((pace for pace in paces if pace), None)
