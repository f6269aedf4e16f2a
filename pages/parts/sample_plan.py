"""What a sample of n labels will buy, what it will hold, and the samples there are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import streamlit as st

from calibrate import sampling
from calibrate.stats.intervals import expected_precision_halfwidth
from calibrate.types import Sample
from db import Store
from db.traces import NONE
from pages.parts.text import visible
from pages.parts.words import ago, count, share, span

PREVALENCES = (0.01, 0.02, 0.05, 0.1, 0.2)
FEW = 20  # definite labels, below which a share of them is no guide


def free_name(store: Store, now: datetime) -> str:
    """The ISO week's name, with a number where it is taken."""
    week = sampling.default_name(now)
    taken = {sample.name for sample in store.samples.list()}
    number = 2
    name = week
    while name in taken:
        name, number = f"{week}-{number}", number + 1
    return name


def show_plan(store: Store, n: int, pool: int) -> None:
    """One sentence on what the labels will tell, for an assumed share of hallucinated answers."""
    seen = _last_prevalence(store)
    options = sorted({*PREVALENCES, *([seen] if seen else [])})
    prevalence = st.segmented_control(
        "If this share is hallucinated",
        options,
        default=seen or 0.05,
        required=True,
        format_func=lambda p: f"{share(p)} (last sample)" if p == seen else share(p),
        key="draw_prevalence",
    )
    n = min(n, pool)
    plan = expected_precision_halfwidth(n, prevalence)
    positives = "about 1 positive" if round(plan.expected_positives) == 1 else (
        f"about {plan.expected_positives:.0f} positives" if plan.expected_positives >= 1 else "probably no positive"
    )  # fmt: skip
    st.markdown(
        f"At {share(prevalence)} hallucinated, **{count(n, 'label')}** hold **{positives}**: "
        f"precision known to **±{plan.halfwidth:.2f}**."
    )
    pace = _pace(store)
    if pace:
        st.caption(f"About {span(n * pace)} of labelling at {pace:.0f} s each, the pace of the last sample.")


def show_strata(strata: Mapping[str, int], n: int) -> None:
    """How a stratified sample divides, and what one label of each stratum stands for."""
    rows = [
        {
            "Stratum": "not given" if name == NONE else visible(name, 60),
            "Traces": strata[name],
            "Drawn": drawn,
            "One label stands for": strata[name] / drawn if drawn else None,
        }
        for name, drawn in sampling.allocate(strata, n).items()
    ]
    number = st.column_config.NumberColumn(format="%.1f")
    st.dataframe(
        rows, hide_index=True, height=min(38 + 35 * len(rows), 250), column_config={"One label stands for": number}
    )


def show_samples(store: Store, samples: list[Sample], now: datetime) -> None:
    rows = [_row(store, sample, now) for sample in samples]
    progress = st.column_config.ProgressColumn("Labelled", format="percent", min_value=0, max_value=1)
    st.dataframe(rows, hide_index=True, height=min(38 + 35 * len(rows), 400), column_config={"Labelled": progress})


def _row(store: Store, sample: Sample, now: datetime) -> dict[str, object]:
    gold = store.labels.gold_counts(sample.id)
    definite = gold.get("clean", 0) + gold.get("hallucinated", 0)
    return {
        "Sample": visible(sample.name, 80),
        "Labelled": sum(gold.values()) / sample.size if sample.size else 0.0,
        "Traces": sample.size,
        "Hallucinated": share(gold.get("hallucinated", 0) / definite) if definite else "",
        "Of a pool of": sample.pool,
        "Design": f"stratified by {visible(sample.by, 40)}" if sample.by else sample.design,
        "Seed": str(sample.seed),
        "Drawn": ago(sample.created_at, now),
    }


def _last_prevalence(store: Store) -> float | None:
    """The share found in the newest sample that has enough labels to be a guide."""
    for sample in store.samples.list()[:3]:
        gold = store.labels.gold_counts(sample.id)
        positives, definite = gold.get("hallucinated", 0), gold.get("clean", 0) + gold.get("hallucinated", 0)
        if definite >= FEW and positives:
            return round(positives / definite, 3)
    return None


def _pace(store: Store) -> float | None:
    """Seconds a label, in the newest sample that was labelled here."""
    from pages.parts.workbench import user

    paces = (store.labels.place(sample.id, user()).seconds_each for sample in store.samples.list()[:3])
    return next((pace for pace in paces if pace), None)
