"""What the Ensemble page shows: choices, the sentence, figures with intervals, charts, saved ensembles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from calibrate.errors import BadInput
from calibrate.report.names import title_of
from calibrate.report.numbers import (
    count,
    decimal_interval,
    decimals,
    exact_share,
    interval,
    listed,
    money,
    number,
    share,
    signed,
)
from calibrate.report.sentences.tuning import ensembles as wording
from calibrate.report.sentences.tuning import point_state
from calibrate.report.sentences.tuning.figures import lead
from calibrate.report.tables.ensembles import KIND_WORDS, on_page
from calibrate.stats.ensembles.combine import PASS, Kind, Recipe
from calibrate.types import Interval
from calibrate.workflow.tuning import ensemble as step
from calibrate.workflow.tuning.point_state import judge_ensemble
from db import Store
from pages import shell
from pages.components import charts, tables
from pages.components.text import plain, visible
from pages.components.verdict_box import NO_REASON, look, save_anyway, verdict_box
from pages.thresholds import ensemble_charts

REASON = "ensemble_reason"
MOST = 12  # members
ABOUT = (
    "Logistic: probabilities fitted to the labels. At least k: each detector flags an equal share. Cascade: cheap ones "
    "first, the costliest on the rest."
)


@dataclass(frozen=True)
class Choice:
    """What the controls say; no names: those that rank best. It is the key under which a report is cached."""

    names: tuple[str, ...]
    kind: Kind
    budget: float
    k: int
    expensive: str
    pass_share: float
    saved_thresholds: bool


NAMES = "ensemble_names"


def _named_in_the_address(offered: Sequence[str]) -> None:
    """Take the members that an address names, once: what is chosen here afterwards counts."""
    members = st.query_params.get("names")
    if members is not None and members != st.session_state.get("ensemble_asked"):
        st.session_state["ensemble_asked"] = members
        st.session_state[NAMES] = [name for name in dict.fromkeys(members.split(",")) if name in offered][:MOST]


def choose(store: Store, offered: Sequence[str], prevalence: float | None = None) -> Choice:
    _named_in_the_address(offered)
    names = st.multiselect(
        "Detectors",
        offered,
        format_func=title_of,
        key=NAMES,
        max_selections=MOST,
        placeholder=f"The {step.DEFAULT} that rank best, picked anew in each fold",
        help="Name detectors that you chose for other reasons than their rank on these labels.",
    )
    if names:
        st.query_params["names"] = st.session_state["ensemble_asked"] = ",".join(names)
    else:
        st.query_params.pop("names", None)
    most = len(names) or min(len(offered), step.DEFAULT)
    with st.container(horizontal=True, vertical_alignment="top"):
        kind: Kind = st.segmented_control(
            "Kind", list(KIND_WORDS), default="logistic", required=True,
            format_func=KIND_WORDS.__getitem__, key="ensemble_kind", help=ABOUT,
        )  # fmt: skip
        usual = round(100 * step.usual_budget(prevalence), 1)
        budget = st.number_input(
            "Budget, % of traffic", 0.1, 50.0, usual, 1.0, format="%.1f", key="ensemble_budget", width=170,
            help="The share of traffic that may be flagged; to begin with half of what is hallucinated, or 5%",
        )  # fmt: skip
        k, part, last, saved = 2, PASS, "", False
        if kind == "k_of_n":
            k = st.number_input("How many must flag", 1, max(most, 1), min(2, max(most, 1)), width=170)
        if kind == "cascade" and offered:
            last = st.selectbox("Asked last", ["", *(names or offered)], format_func=_title_or_costliest, width=220)
            part = st.number_input("Reaches it, % of traffic", 1, 100, round(100 * PASS), 5, width=190) / 100
        if kind == "k_of_n" and len(names) > 1 and step.has_saved_thresholds(store, names):
            saved = st.toggle("Saved thresholds", help="Each flags at its saved operating point; no budget then")
    return Choice(tuple(sorted(names)), kind, budget / 100, k, last, part, saved)


@shell.cached_read("Judging the ensemble on labels it has not seen …", *shell.EVIDENCE, "points", entries=30)
def build_report(store: Store, choice: Choice, sample: str | None) -> step.Report:
    """The ensemble judged out of fold; fifty fits and a thousand resamples take a second."""
    return step.build(
        store,
        Recipe(choice.kind, k=choice.k, expensive=choice.expensive, pass_share=choice.pass_share),
        choice.names,
        sample=sample,
        budget=choice.budget,
        saved_thresholds=choice.saved_thresholds,
    )


def _title_or_costliest(name: str) -> str:
    return title_of(name) if name else "the costliest"


def answer(store: Store, report: step.Report) -> None:
    """Combine or not, in one sentence with the numbers; saving below it, by the primary button where nothing is known
    against the ensemble, else for a reason."""
    state = judge_ensemble(wording.document(report))

    def head() -> None:
        sentence = wording.answer(report, title_of(report.best), known_bad=state.known_bad)
        first, _, rest = sentence.partition(": ")
        st.markdown(f"{look(state.verdict)[1]} **{plain(first)}:** {plain(rest)}")
        if state.known_bad:
            st.markdown(plain(point_state.sentence(state), 500))

    with verdict_box(state, key="ensemble", head=head):
        if state.known_bad:
            instead = f"flag with {title_of(report.best)} alone, label more, or choose another budget."
            st.markdown(f"**Instead:** {plain(instead)}")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("Name", key="ensemble_name", placeholder="grounding", max_chars=100, width=260)
            if not state.known_bad:
                st.button(
                    "Save ensemble", type="primary", icon=":material/bookmark_add:", on_click=_save,
                    args=(store, report), disabled=report.signal.threshold is None,
                )  # fmt: skip
            elif report.signal.threshold is not None:
                save_anyway(_save, (store, report), key=REASON, label="Save ensemble anyway")
        if done := st.session_state.pop("ensemble_saved", None):
            st.markdown(f":material/check: {plain(done)}", width="content")
    shell.show_kept_error("ensemble_problem")


def show_details(store: Store, report: step.Report) -> None:
    """The figures behind the answer, each group in a tab of its own."""
    with st.expander("Details", key="ensemble-details"):
        figures, charted, alike, together, tiers, saved = st.tabs(
            ["Figures", "What each finds", "How alike", "Together", "Two tiers", "Saved"]
        )
    with figures:
        show_sentence(report)
        show_figures(report)
    with charted:
        show_recalls(report)
        show_frontier(report)
    with alike:
        show_likeness(report)
    with together:
        show_joint(report)
    with tiers:
        show_tiers(report)
    with saved:
        show_saved(store)


def show_sentence(report: step.Report) -> None:
    st.markdown(plain(" ".join(wording.sentences(report))))
    basis = f"{count(report.n, 'label')}, {count(report.positives)} hallucinated"
    traffic = report.gathered.traffic
    cut = "from the labels" if report.gathered.from_labels else f"from {count(traffic.n, 'trace')}"
    st.caption(
        f"{basis}; the cut is read {cut}. Figures are out of fold: 10 times 5 folds, traces that share sources kept "
        "together, and the best single detector chosen inside each fold as well."
    )
    for note in wording.notes(report):
        st.caption(f":material/info: {plain(note.replace('`', ''))}")


def show_figures(report: step.Report) -> None:
    figures, n, apart = report.figures, f"n = {count(report.n)}", report.apart
    recalled = f"Share of {count(report.positives, 'labelled hallucination')} that is flagged"
    flagged = round((figures.flag_rate.value or 0.0) * report.n)
    against = f"In recall, against {title_of(report.best)}, on the same folds and resamples"
    difference = "–" if apart.value is None else signed(100 * apart.value, 0)
    named = (
        ("Recall", *lead(figures.recall, report.positives), recalled),
        ("Precision", *lead(figures.precision, flagged), "Share of flags that is right"),
        ("Difference, points", difference, _reach(apart), against),
    )
    places = st.columns(4)
    for place, (name, value, small, about) in zip(places, named, strict=False):
        place.metric(name, value, small, delta_color="off", delta_arrow="off", help=f"{about}; {n}")
    area = report.auroc
    reach = decimal_interval(area.low, area.high, 2)
    value = "–" if area.value is None else decimals(area.value)
    about = f"The chance that a hallucinated trace is ranked above a clean one, within folds; {n}"
    places[3].metric("AUROC", value, reach, delta_color="off", delta_arrow="off", help=about)


def show_recalls(report: step.Report) -> None:
    st.header(f"What each finds when it flags {share(report.budget)} of traffic", anchor=False)
    chosen = wording.kind_name(report.recipe)
    figure = ensemble_charts.recalls(report.compared, chosen, report.best_figures.recall)
    st.plotly_chart(figure, key="ensemble_recalls", config=charts.CONFIG)
    st.caption(
        f"95% intervals, {count(report.positives, 'hallucinated label')}. Grey: one detector; blue: ensembles; "
        "gold: the one chosen. Dotted: the best single detector, chosen by AUROC inside the folds. The highest of "
        "many, picked here by eye, is flattered."
    )


def show_likeness(report: step.Report) -> None:
    clean = report.n - report.positives
    if not np.isfinite(report.correlation.rho).any():
        st.caption(f"{count(clean, 'clean label')}: too few to say how alike the detectors rank.")
        return
    st.plotly_chart(ensemble_charts.heat_map(report.correlation), key="ensemble_heat", config=charts.CONFIG)
    st.caption(
        f"Rank correlation among {count(clean, 'clean label')}, pair by pair where both have a score. Near 1, the "
        "second detector adds little."
    )


def show_joint(report: step.Report) -> None:
    """The share of clean traces that at least 1, 2, … of the detectors flag."""
    if not report.joint:
        st.caption("One detector alone raises no false alarms together with others.")
        return
    st.header("False alarms together", anchor=False)
    st.markdown(plain(wording.joint_sentence(report.joint[0], report.able, report.budget)))
    rows = [
        {
            "Flagged by": "any of them" if row.k == 1 else f"at least {row.k}",
            "Measured": _percent(row.measured),
            "95%": interval(row.measured.low, row.measured.high),
            "Clean labels": report.n - report.positives,
        }
        for row in report.joint
    ]
    st.dataframe(rows, hide_index=True)


def show_frontier(report: step.Report) -> None:
    if (frontier := report.frontier) is None:
        return
    price = frontier.price
    st.header(f"What asking {plain(title_of(price.detector))} about less traffic costs in recall", anchor=False)
    st.plotly_chart(ensemble_charts.frontier(frontier), key="ensemble_frontier", config=charts.CONFIG)
    cost = []
    if price.calls is not None:
        cost.append(f"{price.calls:g} {'call' if price.calls == 1 else 'calls'} a trace")
    if price.dollars is not None:
        cost.append(f"{money(1000 * price.dollars)} per 1,000 traces")
    if price.seconds:
        cost.append(f"{number(price.seconds, 2)} s a trace")
    st.caption(
        f"{listed([title_of(name) for name in frontier.filters], 6)} let the most suspicious traces through. Median of "
        f"{count(price.n, 'score')}: {', '.join(cost)}. Recall on {count(report.positives, 'hallucinated label')} at "
        f"{share(report.budget)} of traffic flagged; nothing is fitted."
    )


def show_tiers(report: step.Report) -> None:
    st.header("Two tiers", anchor=False)
    signal, page = report.signal, report.page
    if signal.threshold is not None:
        st.markdown(f"**Signal** from {number(signal.threshold)}: {share(signal.share)} of traffic, the alert budget.")
    if page.threshold is not None and page.target is not None:
        st.markdown(
            f"**Page** from {number(page.threshold)}: {share(page.share)} of traffic, at least "
            f"{exact_share(page.target)} of it hallucinated by its lower bound. Approximate: no certificate, which "
            "takes labels drawn among its flags."
        )
    else:
        why = wording.no_page(report)
        st.markdown(f"**Page**: no cut yet. {plain(why[:1].upper() + why[1:])}.")


def show_saved(store: Store) -> None:
    saved = step.saved(store)
    if not saved:
        st.caption("No ensemble is saved yet.")
        return
    shown = on_page(shell.now())
    st.dataframe(tables.frame(shown, saved), hide_index=True, column_config=tables.config(shown))


def _save(store: Store, report: step.Report) -> None:
    """Save the ensemble. A second press saves the same one again, and the latest of a name counts."""
    name = str(st.session_state.get("ensemble_name") or "")
    reason = str(st.session_state.get(REASON) or "").strip()
    with shell.errors_kept("ensemble_problem"):
        ensemble = wording.document(report)
        if judge_ensemble(ensemble).known_bad and not reason:
            raise BadInput(NO_REASON)
        step.save(store, name, ensemble, reason=reason, by=shell.user(), now=shell.now())
        st.session_state[REASON] = ""
        st.session_state["ensemble_saved"] = f"Saved: {visible(name.strip(), 100)}."


def _reach(difference: Interval) -> str:
    if difference.low is None or difference.high is None:
        return "interval unknown"
    return f"{signed(100 * difference.low, 0)} to {signed(100 * difference.high, 0)}"


def _percent(figure: Interval) -> str:
    return "–" if figure.value is None else share(figure.value)
