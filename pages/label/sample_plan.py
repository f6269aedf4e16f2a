"""What n labels will tell, what the sample will hold, and the samples drawn so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.numbers import ago, count, duration, estimate, exact_share, plus_minus, share
from calibrate.report.sentences.labelling import labels
from calibrate.stats.sampling import designs
from calibrate.stats.sampling.sizing import Stratum, halfwidth
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.evidence.prevalence import estimate_prevalence
from calibrate.workflow.sampling.pace import Pace
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


@dataclass(frozen=True, slots=True)
class Expected:
    """How well the labels will know a precision. `basis` says of which threshold; `plan` is None for a design that the
    planner does not compare."""

    halfwidth: float
    basis: str
    plan: Plan | None = None


def expect(store: Store, where: TraceFilter, choice: Choice, n: int, size: int, prevalence: float) -> Expected | None:
    """What n labels of `size` traces will tell; None near a threshold, where it depends on how near."""
    if choice.design == FLAGGED:
        width = halfwidth({"flagged": Stratum(size, 1.0)}, n, precision=AROUND)
        return Expected(width, "For the threshold whose flags are drawn.")
    if choice.design == UNCERTAIN:
        return None
    plan = _planned(store, where, choice.by, WISH, AROUND, prevalence, n)
    width = plan.halfwidth.get(choice.design, plan.halfwidth["random"])
    return Expected(width, f"The precision is that of {_threshold_of(plan).removeprefix('for ')}", plan)


def show_plan(store: Store, where: TraceFilter, choice: Choice, expected: Expected | None, n: int, pace: Pace) -> None:
    """What the labels will tell, compared with a draw at random, and what a wished precision would take."""
    if choice.design == FLAGGED:
        return
    plan = expected.plan if expected else None
    if expected and plan and choice.design != RANDOM:
        st.markdown(
            f"A precision around {exact_share(AROUND)} is known to {plus_minus(expected.halfwidth)}, at random to "
            f"{plus_minus(plan.halfwidth['random'])}."
        )
    if choice.design == UNCERTAIN:
        st.caption("Labels near the threshold tell its figures, and those of others less well.")
    if st.toggle("How many labels for a wished precision?", key="draw_wish"):
        prevalence = float(st.session_state.get("draw_prevalence") or PREVALENCE)
        _show_wish(store, where, choice, prevalence, n, pace)


def _show_wish(store: Store, where: TraceFilter, choice: Choice, prevalence: float, n: int, pace: Pace) -> None:
    """How many labels each design needs, and how long they take."""
    left, right = st.columns(2)
    around = left.number_input("A precision of", 0.05, 0.95, AROUND, 0.05, format="%.2f", key="wish_precision")
    wish = right.number_input("known to ±", 0.01, 0.49, WISH, 0.01, format="%.2f", key="wish_width")
    plan = _planned(store, where, choice.by, float(wish), float(around), prevalence, n)
    rows = [
        {
            "Design": name,
            "Labels needed": count(need) if need is not None else "more than there are",
            "Takes": duration(need * pace.seconds) if need is not None else "",
        }
        for name, need in sorted(plan.labels.items(), key=lambda item: (item[1] is None, item[1]))
    ]
    st.dataframe(rows, hide_index=True)
    sentence = _threshold_of(plan)
    st.caption(sentence[0].upper() + sentence[1:])
    if doubt := labels.doubt(plan.doubt):
        st.caption(f":material/info: {label(doubt[:1].upper() + doubt[1:], 300)}.")


def _threshold_of(plan: Plan) -> str:
    whose = f" of {label(title_of(plan.detector))}" if plan.detector else ""
    basis = f"by the labels of {label(plan.sample, 60)}" if plan.sample else "the share assumed hallucinated"
    return f"for a threshold{whose} that flags {share(plan.flag_rate)} of the window, {basis}."


def choose_prevalence(store: Store) -> float:
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
