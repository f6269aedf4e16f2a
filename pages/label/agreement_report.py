"""The Disputes page's parts: how labellers agree, what labelling errors would do."""

from __future__ import annotations

from typing import Any

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.numbers import count, interval, share
from calibrate.report.sentences.labelling import agreement as sentences
from calibrate.report.sentences.labelling import drawing
from calibrate.stats.labels.agreement import ENRICHED, SHARE, Agreement
from calibrate.stats.labels.sensitivity import AT_LEAST, Corrected, Errors, Measured
from calibrate.types import Interval
from calibrate.workflow.labelling import agreement as step
from calibrate.workflow.labelling.gold_agreement import gold_agreement
from calibrate.workflow.labelling.repeats import self_agreement
from calibrate.workflow.sampling.pace import pace_of_each
from db import Store
from pages import shell
from pages.components.text import plain, visible

FEW_POSITIVES = 0.2  # a smaller share of hallucinated verdicts leaves alpha hardly known
RATES = {"misses": ("Misses, of hallucinated answers", 0.5), "false_calls": ("False calls, of clean answers", 0.3)}


def show_figures(report: step.AgreementReport) -> None:
    """How far they agree, in two sentences, and on which set."""
    figures = _together(report)
    st.markdown("**Agreement**")
    headline, *rest = sentences.sentences(figures)
    st.markdown(f"{plain(headline)} {plain(' '.join(rest[:1]))}")


def show_themselves(store: Store, report: step.AgreementReport) -> None:
    """How far people agree with themselves; a calibrator sees everybody's pace, all others their own."""
    for figure in self_agreement(store, report.sample):
        st.markdown(f"{plain(sentences.self_agreement(figure))}.")
    paces = pace_of_each(store)
    shown = {who: pace for who, pace in paces.items() if who == shell.user() or shell.has_role("calibrator")}
    if shown:
        st.caption("Pace: " + plain(", ".join(drawing.pace_of(who, pace) for who, pace in shown.items())) + ".")


def show_against_gold(store: Store, report: step.AgreementReport) -> None:
    """A line for each labeller; nothing while no trace has two labels or a decision."""
    if not report.readings:
        return
    st.markdown("**Against gold**")
    lines = [plain(sentences.gold_agreement(each)) for each in gold_agreement(store, report.sample, report.readings)]
    st.markdown("\n".join(f"- {line}." for line in lines))
    waits = count(len(report.disputed), "dispute waits", "disputes wait")
    too_high = f" {waits} without gold: until all are decided, these shares are too high." if report.disputed else ""
    st.caption(f"On traces whose gold a second person or a decision stands for.{too_high}")


def show_details(report: step.AgreementReport) -> None:
    """A row for each pair of labellers, with the coefficients and what they mean."""
    figures = _together(report)
    with st.expander("Details", icon=":material/query_stats:"):
        st.markdown(plain(" ".join(sentences.sentences(figures)[2:])))
        st.caption(_set(report, figures))
        st.dataframe(
            [_cells(pair) for pair in report.pairs],
            hide_index=True,
            placeholder="–",
            column_config=_COLUMNS,
            height=40 + 35 * min(len(report.pairs), 8),
        )
        st.caption(sentences.WHY_THEY_DIFFER + " 95%: the interval. Unsure is no verdict, and counted by itself.")


def _together(report: step.AgreementReport) -> Agreement:
    """Of all labellers together, or of the one pair there is."""
    figures = report.overall if len(report.labellers) > 2 else report.pairs[0]
    assert figures is not None
    return figures


def offer_double(store: Store, report: step.AgreementReport) -> None:
    """The button that draws traces for a second person, and where to label them."""
    drawn = st.session_state.get("agree_drawn")
    if drawn is not None:
        name, size, hallucinated = drawn
        st.markdown(
            f":material/check: **{plain(name, 80)}** is drawn: {count(size, 'trace')} with one person's label, "
            f"{count(hallucinated)} first called hallucinated. Now a second person labels them, blind."
        )
        if st.button("Label them", type="primary", icon=":material/check_box:"):
            st.session_state["sample_at_hand"] = name
            st.switch_page(shell.page("label"))
        return
    if report.sample is not None and report.sample.design == ENRICHED:
        return
    primary = not report.pairs and not report.disputed
    st.button(
        f"Draw {step.DOUBLE} to double-label",
        type="primary" if primary else "secondary",
        icon=":material/casino:",
        on_click=_draw,
        args=(store, report.sample.name if report.sample else None),
        help=f"About {share(SHARE)} of them first called hallucinated. Nothing else is estimated from such a sample.",
    )


def show_nothing_yet(store: Store, report: step.AgreementReport) -> None:
    """What is missing: a second person, or a trace that two have labelled."""
    people = store.labels.labellers()
    with st.container(border=True):
        if not people:
            st.markdown(
                "**Nobody has labelled yet.** Here you would see how far two people agree, and what they dispute."
            )
            st.page_link(shell.page("label"), label="Label traces", icon=":material/check_box:")
            return
        reason = (
            f"Only one person ({plain(people[0])}) has labelled"
            if len(people) == 1
            else "No trace has two people's labels here"
        )
        st.markdown(f"**{reason}: agreement needs two.**")
        offer_double(store, report)


def show_sensitivity(store: Store, report: step.AgreementReport) -> None:
    """What the figures of a saved point would be if labellers erred this often."""
    points = {name: saved for name, saved in store.points.latest().items() if saved.point.recall.value}
    if not points:
        with st.container(border=True):
            st.markdown("**No operating point yet.** Here you would see what wrong labels do to its figures.")
            st.page_link(shell.page("tune"), label="Choose one", icon=":material/tune:")
        return
    left, right = st.columns([1, 2], gap="large")
    with left:
        name = st.selectbox("Operating point of", list(points), format_func=title_of)
        for key, (text, most) in RATES.items():
            st.slider(text, 0.0, most, key=f"agree_{key}", step=0.005, format="percent")
        rates = Errors(st.session_state["agree_misses"], st.session_state["agree_false_calls"])
    with right:
        corrected = step.if_labellers_err(points[name].point, rates)
        for place, key in zip(st.columns(3), ("prevalence", "precision", "recall"), strict=True):
            _corrected(place, key.capitalize(), getattr(corrected, key))
        labels = points[name].data
        st.caption(
            f"Measured on {count(labels.n, 'label')}, {count(labels.positives)} hallucinated. A what-if, not an "
            "estimate: it holds where "
            "one labeller made the labels and errs alike on flagged traces and others. At 2% prevalence, 10% misses "
            "and 2% false calls make a recall of 60% look like 29%: confirm hallucinated labels by a second look."
        )
        for why in sentences.impossible(corrected, rates):
            st.warning(plain(why), icon=":material/block:")
        _show_measured(step.errors(store, report), len(report.disputed))


def _show_measured(measured: tuple[Measured, ...], waiting: int) -> None:
    if waiting:
        st.caption(f"Decide the {count(waiting, 'disputed trace')} first: then measured rates show here.")
        return
    ready = [rates for rates in measured if rates.errors is not None]
    if not ready:
        st.caption(
            f"Measured rates show here once {AT_LEAST} hallucinated and {AT_LEAST} clean traces are labelled twice and "
            "settled."
        )
        return
    st.markdown("**As measured** on traces labelled twice, disputes decided")
    for rates in ready:
        assert rates.errors is not None
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"{plain(rates.labeller)}: misses {share(rates.errors.misses)} of {count(rates.hallucinated)}, "
                f"false calls {share(rates.errors.false_calls)} of {count(rates.clean)}",
                width="content",
            )
            st.button("Use", type="tertiary", key=f"agree-use-{rates.labeller}", on_click=_use, args=(rates.errors,))
    st.caption("Errors that both people make stay unseen, so the true rates are higher.")


def _use(rates: Errors) -> None:
    for key, (_, most) in RATES.items():
        st.session_state[f"agree_{key}"] = min(most, round(getattr(rates, key) / 0.005) * 0.005)


def _draw(store: Store, sample: str | None) -> None:
    with shell.errors_kept("agree_problem"):
        drawn = step.double(store, sample, now=shell.now())
        st.session_state["agree_drawn"] = (drawn.name, drawn.size, drawn.strata["hallucinated"][1])


def _corrected(place: Any, name: str, figure: Corrected) -> None:
    value = "impossible" if figure.value is None else share(figure.value)
    place.metric(name, value, f"labels say {share(figure.apparent)}", delta_color="off", delta_arrow="off")


def _set(report: step.AgreementReport, figures: Agreement) -> str:
    """Which traces the figures come from: alpha depends on the set."""
    positive = figures.hallucinated or 0.0
    of = "all traces labelled more than once" if report.sample is None else f"{plain(report.sample.name, 60)}"
    if report.sample is not None and report.sample.design == ENRICHED:
        of += ", drawn for this with many hallucinated"
    words = f"From {of}: {share(positive)} of the verdicts say hallucinated"
    words += f", {count(figures.unsure, 'trace')} unsure." if figures.unsure else "."
    if positive < FEW_POSITIVES:
        words += " With so few hallucinated, α is only roughly known: double-label a set that holds more of them."
    return words


def _cells(pair: Agreement) -> dict[str, Any]:
    cells: dict[str, Any] = {
        "Labellers": visible(" / ".join(pair.labellers), 80),
        "Traces": pair.traces,
        "Differ": pair.differ,
        "Unsure": pair.unsure,
    }
    for name, figure in (("Agree", pair.raw), ("Halluc. too", pair.positive), ("Clean too", pair.negative)):
        cells[name], cells[f"{name} 95%"] = (
            _rounded(figure),
            None if figure.value is None else interval(figure.low, figure.high, unit=""),
        )
    for name, figure in (("α", pair.alpha), ("AC1", pair.ac1)):
        cells[name], cells[f"{name} 95%"] = _rounded(figure), sentences.coefficient_interval(figure)
    return cells


def _rounded(figure: Interval) -> float | None:
    return None if figure.value is None else round(figure.value, 2) + 0.0  # never -0.00


def _number(help: str, form: str = "percent", width: int = 68) -> Any:
    return st.column_config.NumberColumn(format=form, width=width, help=help)


def _reach(width: int = 62) -> Any:
    return st.column_config.TextColumn("95%", width=width)


_COLUMNS: dict[str, Any] = {
    "Labellers": st.column_config.TextColumn(width=165),
    "Traces": _number("With a clean or hallucinated verdict of both", "localized"),
    "Differ": _number("One says clean, the other hallucinated", "localized"),
    "Unsure": _number("Both looked, and at least one could not tell: no verdict, in no figure", "localized"),
    "Agree": _number("Share of these traces on which both say the same"),
    "Agree 95%": _reach(),
    "Halluc. too": _number("Where one says hallucinated, how often the other does", width=88),
    "Halluc. too 95%": _reach(),
    "Clean too": _number("Where one says clean, how often the other does", width=80),
    "Clean too 95%": _reach(),
    "α": _number("Krippendorff's alpha: 1 perfect, 0 chance", "%.2f", 55),
    "α 95%": _reach(98),
    "AC1": _number("Gwet's AC1: 1 perfect, 0 chance, lenient where hallucinated is rare", "%.2f", 55),
    "AC1 95%": _reach(98),
}
