"""The form that draws a sample: the time there is, which traces, who labels them; all else is under Advanced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from calibrate.report.numbers import count, share
from calibrate.report.sentences.labelling import drawing
from calibrate.stats.sampling import designs
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.labelling import assignment
from calibrate.workflow.labelling.assignment import OVERLAP
from calibrate.workflow.sampling import pace as pacing
from calibrate.workflow.sampling import sample as step
from db import Store
from db.labelling.assignments import Assignment
from pages import shell
from pages.components.draw_job import SOON, DrawJob
from pages.components.text import plain
from pages.label.pool import PoolView, choose_pool, show_pool, view_of
from pages.label.sample_design import Choice, choose_other, choose_plain, strata_of
from pages.label.sample_plan import Expected, choose_prevalence, expect, free_name, show_plan, show_strata

MINUTES = (30, 60, 120)
USUAL_MINUTES = 60
EVERYONE, SPLIT, TWICE = "everyone", "split", "twice"
SHARINGS = {EVERYONE: "Everyone", SPLIT: "Split", TWICE: f"Split, {share(OVERLAP)} by two"}
ABOUT_SHARING = (
    "Everyone: all label every trace. Split: each trace is for whoever comes first. With an overlap some traces are "
    "for two people, who do not see each other's verdicts, so that you learn how far people agree."
)


@dataclass(frozen=True, slots=True)
class Order:
    """What the form asks for."""

    where: TraceFilter
    choice: Choice
    size: int
    sharing: Assignment


def draw(order: Order) -> None:
    """Draw the sample. A second press finds the name taken and draws nothing."""
    if going() is not None:
        return
    state, store, now, user = st.session_state, shell.store(), shell.now(), shell.user()
    name, seed = state["draw_name"].strip(), state["draw_seed"]

    def work(on_progress: Callable[[int, int], None]) -> Sample:
        drawn = step.draw(
            store,
            name,
            size=order.size,
            design=order.choice.design,
            by=order.choice.by,
            where=order.where,
            seed=seed,
            now=now,
            cut=order.choice.cut,
            fresh=order.choice.fresh,
            on_progress=on_progress,
        )
        if order.sharing.mode != "everyone":
            assignment.assign(store, drawn, order.sharing.mode, overlap=order.sharing.overlap, by=user, now=now)
        return drawn

    job = state["draw_job"] = DrawJob(work)
    job.wait(SOON)
    if not job.running:
        finish()


def going() -> DrawJob | None:
    """The draw that is under way in this session."""
    job: DrawJob | None = st.session_state.get("draw_job")
    return job if job is not None and job.running else None


def finish() -> None:
    """Take over what a draw that is over has drawn, before the form is shown."""
    state = st.session_state
    job: DrawJob | None = state.pop("draw_job", None)
    if job is None:
        return
    with shell.errors_kept("draw_problem"):
        if drawn := job.sample():
            state["sample_at_hand"] = state["draw_done"] = drawn.name
            st.query_params.pop("sample", None)
            for key in ("draw_name", "draw_size"):
                state.pop(key, None)
    state["draw_stopped"] = job.stopped


def form(store: Store, *, primary: bool, busy: bool) -> None:
    """The form; while a draw is `busy` it keeps what was chosen, and draws nothing."""
    front, advanced = st.container(), st.expander("Advanced", icon=":material/tune:")
    with advanced:
        left, right = st.columns([5, 4], gap="large")
        with left:
            where = choose_pool(store, store.traces.summary().last)
            other = choose_other(store, where)
            _choose_exactly(store)
            details = st.container()
    pool = view_of(store, where, other.by if other else None)
    with right:
        show_pool(pool, where)
    with front, shell.guarded():
        _fill(store, pool, where, other, details, primary=primary, busy=busy)


def _fill(
    store: Store,
    pool: PoolView,
    where: TraceFilter,
    other: Choice | None,
    details: object,
    *,
    primary: bool,
    busy: bool,
) -> None:
    """The form's front, once the window and the design of Advanced are known."""
    shell.show_kept_error("draw_problem")
    minutes = st.segmented_control(
        "How long do you have?", MINUTES, default=USUAL_MINUTES, required=True, key="draw_minutes",
        format_func=lambda each: f"{each} min",
    )  # fmt: skip
    choice = choose_plain(store, where, pool.size, other)
    sharing, people = _choose_sharing(store)
    if not pool.size:
        st.info("No trace is in this pool. Widen the window or the filters under Advanced.")
        return
    if not choice.ready:
        return
    strata = strata_of(store, where, choice)
    total = sum(strata.values())
    pace = pacing.team_pace(store)
    overlap = None if sharing.mode == "everyone" else sharing.overlap
    by_time = pacing.traces_for(pace, minutes, people=max(1, people), overlap=overlap)
    wanted = st.session_state.get("draw_size")
    n = min(int(wanted or max(by_time, len(strata))), total)
    with details:  # type: ignore[attr-defined]
        prevalence = choose_prevalence(store)
        expected = expect(store, where, choice, n, total, prevalence)
        show_plan(store, where, choice, expected, n, pace)
        if len(strata) > 1:
            show_strata({name: (strata[name], drawn) for name, drawn in designs.allocate(strata, n).items()})
    st.markdown(_promise(n, pace, expected, people, sharing))
    st.caption(f"{plain(drawing.pace(pace))}. {expected.basis if expected else ''}")
    text = f"Draw all {count(n)}" if n == total else f"Draw {count(n)} of {count(total)}"
    order = Order(where, choice, n, sharing)
    kind: Literal["primary", "secondary"] = "primary" if primary else "secondary"
    st.button(text, type=kind, icon=":material/casino:", disabled=busy, on_click=draw, args=(order,))


def _promise(n: int, pace: pacing.Pace, expected: Expected | None, people: int, sharing: Assignment) -> str:
    """What is drawn and what it will tell, in Markdown."""
    several = people > 1 and sharing.mode == "split"
    each = n * (1 + sharing.overlap) / people if several else n
    time = drawing.time_needed(round(each), pace)
    parts = [f"**{count(n, 'trace')}**, {time}{' for each labeller' if several else ''}"]
    if expected is not None:
        parts.append(f"**{drawing.precision_known(expected.halfwidth)}**")
    return ", ".join(parts) + "."


def _choose_exactly(store: Store) -> None:
    """The name, the exact number of traces and the seed."""
    name, size, seed = st.columns([2, 1, 1])
    st.session_state.setdefault("draw_name", free_name(store, shell.now()))
    name.text_input("Name", key="draw_name", max_chars=200)
    size.number_input(
        "Traces", min_value=1, max_value=100_000, value=None, step=50, placeholder="by time", key="draw_size",
        help="Exactly so many, instead of what fits into the time.",
    )  # fmt: skip
    about = "The same seed draws the same sample from the same store."
    seed.number_input("Seed", min_value=0, value=None, step=1, placeholder="random", help=about, key="draw_seed")


def _choose_sharing(store: Store) -> tuple[Assignment, int]:
    """How the traces are shared, and among how many."""
    chosen = st.segmented_control(
        "Who labels them?", list(SHARINGS), default=EVERYONE, required=True, format_func=SHARINGS.__getitem__,
        help=ABOUT_SHARING, key="draw_sharing",
    )  # fmt: skip
    if chosen == EVERYONE:
        return assignment.EVERYONE, 1
    names_here = list(dict.fromkeys([shell.user(), *store.labels.labellers()]))
    names = st.multiselect(
        "Labellers", names_here, default=names_here[:10], accept_new_options=True,
        placeholder="Names", width=560, key="draw_labellers",
        help="How many share the work decides how many traces fit. Whoever opens the queue gets its next traces: "
        "nobody is shut out, and an absent one leaves no hole.",
    )  # fmt: skip
    return Assignment("split", OVERLAP if chosen == TWICE else 0.0), len(names)
