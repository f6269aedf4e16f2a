"""What the Tune page shows first: the labels at hand, and what is missing."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from calibrate.report.numbers import count, listed, share
from calibrate.report.sentences.labelling.labels import caution as caution_of
from calibrate.report.sentences.tuning import figures as wording
from calibrate.stats.sweep.sweep import Missing
from calibrate.workflow.evidence import evidence
from db import Store
from pages import shell
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
    st.caption(" · ".join(facts))
    if data.fitted:
        st.caption(f"{plain(wording.fitted_labels(data.fitted))}.")
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
    why, way = wording.missing(data.sweep, waiting=data.waiting, fitted=data.fitted), way_on(data)
    with st.container(border=True):
        st.markdown(f"**No threshold can be chosen yet.** {plain(wording.capitalised(why or ''))}.")
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
