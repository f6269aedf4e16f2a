"""What the Tune page shows first: the labels at hand, what is missing, every detector at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import streamlit as st

from calibrate.report.numbers import count, decimals, limit, listed, share
from calibrate.report.sentences import figures as wording
from calibrate.report.sentences.labels import caution as caution_of
from calibrate.stats.sweep.sweep import Missing
from calibrate.workflow.evidence import evidence
from db import Store
from db.scores import Config
from pages import shell
from pages.components import evidence_choice
from pages.components.text import plain


def show_facts(store: Store, data: evidence.Evidence) -> None:
    """Labels, positives and coverage, with the reasons why some have no score."""
    sweep = data.sweep
    if not sweep.n:
        return
    facts = [f"**{count(sweep.n, 'label')}**, {count(sweep.positives)} hallucinated"]
    facts.append(f"**{count(sweep.scored)} scored** ({share(sweep.scored / sweep.n)})")
    if sweep.clusters:
        facts.append(f"from **{count(sweep.clusters.count, 'group')}** that share sources, each one piece of evidence")
    if data.refused:
        facts.append(f"{count(len(data.refused), 'refusal')} left out")
    if sweep.can_rank and sweep.auroc is not None and sweep.average_precision is not None:
        facts.append(f"AUROC **{decimals(sweep.auroc)}**, average precision **{decimals(sweep.average_precision)}**")
    st.caption(" · ".join(facts))
    if caution := caution_of(data.caution):
        st.warning(f"{plain(caution)}.", icon=":material/balance:")
    if data.reasons:
        why = [f"{count(n)} {plain(reason, 160)}" for reason, n in data.reasons.items()]
        st.caption(
            f"No score for {count(sweep.n - sweep.scored)} of {count(sweep.n)}: {listed(why, 4)}. "
            "They are never flagged."
        )


def show_missing(data: evidence.Evidence) -> None:
    """What is missing for a sweep (a class, labels or scores), and where to get it."""
    missing, way = wording.capitalised(wording.missing(data.sweep, waiting=data.waiting) or ""), way_on(data)
    with st.container(border=True):
        st.markdown(f"**No threshold can be chosen yet.** {plain(missing)}.")
        if way == "another detector":
            st.caption("It abstains on what it cannot judge, and says why above. Choose another detector for these.")
        elif way == "detect":
            st.page_link(shell.page("detect"), label="Run detectors", icon=":material/play_circle:")
        else:
            st.page_link(shell.page("label"), label="Label traces", icon=":material/check_box:")


def way_on(data: evidence.Evidence) -> Literal["label", "detect", "another detector"]:
    """Where to get what the sweep lacks: labels, scores, or another detector if this one abstained on every trace."""
    if data.sweep.missing not in (Missing.NO_SCORES, Missing.HALLUCINATED_SCORED, Missing.CLEAN_SCORED):
        return "label"
    return "detect" if data.not_run else "another detector"


def show_overview(store: Store, runs: Mapping[str, Sequence[Config]], sample: evidence_choice.SampleNames) -> None:
    """Every detector that has scores, the best AUROC first and those without one last, with its saved point."""
    saved = store.points.latest()
    rows: list[dict[str, Any]] = []
    for name, configs in runs.items():
        sweep = evidence_choice.evidence_of(store, configs[-1], sample).sweep
        point = saved[name].point if name in saved else None
        rows.append(
            {
                "Detector": name,
                "AUROC": sweep.auroc if sweep.can_rank else None,
                "Average precision": sweep.average_precision if sweep.can_rank else None,
                "Coverage": sweep.coverage,
                "Saved point": limit(point.threshold, point.flag_when) if point else None,
                "Policy": point.policy if point else None,
                "Precision there": point.precision.value if point else None,
                "Recall there": point.recall.value if point else None,
            }
        )
    rows.sort(key=lambda row: (row["AUROC"] is None, -(row["AUROC"] or 0.0)))
    column = st.column_config.NumberColumn
    with st.expander(f"All {len(rows)} detectors, by AUROC" if len(rows) > 1 else "This detector at a glance"):
        st.dataframe(
            rows,
            hide_index=True,
            placeholder="–",
            column_config={
                "AUROC": column(
                    format="%.3f", help="The chance that a hallucinated trace scores worse than a clean one"
                ),
                "Average precision": column(format="%.3f", help="Precision averaged over recall"),
                "Coverage": column(format="percent", help="Share of traffic that the detector can score"),
                "Precision there": column(format="percent"),
                "Recall there": column(format="percent"),
            },
        )
