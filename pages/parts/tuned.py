"""What the Tune page shows of a threshold: charts, the sentence, figures, and the traces on either side of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from calibrate import registry
from calibrate.stats import wording
from calibrate.stats.intervals import AT_ONCE, figures
from calibrate.stats.policy_text import parse
from calibrate.steps import tune as step
from calibrate.types import Interval, OperatingPoint
from db import Store
from db.scores import Config, Row
from pages.parts import charts, trace_card, tuning
from pages.parts.navigation import page
from pages.parts.text import plain
from pages.parts.words import count, listed, share

NEAR = 3
CARD_HEIGHT = "18rem"
STYLE = """<style>
.st-key-tune-slide {padding: 0 3px 0 59px}
.ts-matrix {border-collapse: collapse; font-size: .875rem; line-height: 1.9; font-variant-numeric: tabular-nums}
.ts-matrix th {font-weight: 400; opacity: .65; padding: 0 .9rem 0 0; text-align: left}
.ts-matrix thead th + th {text-align: right}
.ts-matrix td {text-align: right; padding: 0 .9rem 0 .9rem; font-size: 1.1rem}
.ts-matrix td.bad {font-weight: 700}
.ts-matrix i {display: inline-block; width: .6rem; height: .6rem; border-radius: 50%; margin-right: .4rem}
</style>"""


def show_facts(data: step.Labelled) -> None:
    """What there is to go by: labels, positives, coverage with the reasons for what has no score."""
    sweep = data.sweep
    if not sweep.n:
        return
    facts = [f"**{count(sweep.n, 'label')}**, {sweep.positives:,} hallucinated ({share(sweep.positives / sweep.n)})"]
    if data.sample is not None and sweep.prevalence is not None and data.sample.design != "random":
        facts.append(f"about {share(sweep.prevalence)} of the traffic")
    facts.append(f"**{sweep.scored:,} scored** ({share(sweep.scored / sweep.n)})")
    if data.refused:
        facts.append(f"{count(len(data.refused), 'refusal')} left out")
    if sweep.auroc is not None and sweep.average_precision is not None:
        facts.append(f"AUROC **{sweep.auroc:.3f}**, average precision **{sweep.average_precision:.3f}**")
    st.markdown(" &ensp;·&ensp; ".join(facts))
    if data.reasons:
        why = [f"{n:,} {plain(reason, 160)}" for reason, n in data.reasons.items()]
        st.caption(f"No score for {sweep.n - sweep.scored:,} of {sweep.n:,}: {listed(why, 4)}. They are never flagged.")


def show_missing(data: step.Labelled) -> None:
    """One class, no labels or no scores: what is missing, and where to get it."""
    missing = str(data.sweep.missing)
    no_scores = missing.startswith("none of the")
    not_run = any(row.status is None for row in data.rows)
    with st.container(border=True):
        st.markdown(f"**No threshold can be chosen yet.** {plain(missing[:1].upper() + missing[1:])}.")
        if no_scores and not not_run:
            st.caption("It abstains on what it cannot judge, and says why above. Choose another detector for these.")
        elif no_scores:
            st.page_link(page("detect"), label="Run detectors", icon=":material/play_circle:")
        else:
            st.page_link(page("label"), label="Label traces", icon=":material/check_box:")


def show_overview(store: Store, runs: Mapping[str, Sequence[Config]], sample: str | None) -> None:
    """Every detector that has scores, in the order given, with the point that is saved for it."""
    saved = store.points.latest()
    rows = []
    for name, configs in runs.items():
        sweep = tuning.labelled(store, configs[-1], sample).sweep
        point = saved[name].point if name in saved else None
        rows.append(
            {
                "Detector": name,
                "AUROC": sweep.auroc,
                "Average precision": sweep.average_precision,
                "Coverage": sweep.coverage,
                "Saved point": f"{_sign(point)} {point['threshold']:.4g}" if point else None,
                "Policy": point["policy"] if point else None,
                "Precision there": point["precision"]["value"] if point else None,
                "Recall there": point["recall"]["value"] if point else None,
            }
        )
    number = st.column_config.NumberColumn
    with st.expander(f"All {len(rows)} detectors, by AUROC" if len(rows) > 1 else "This detector at a glance"):
        st.dataframe(
            rows,
            hide_index=True,
            placeholder="–",
            column_config={
                "AUROC": number(
                    format="%.3f", help="The chance that a hallucinated trace scores worse than a clean one"
                ),
                "Average precision": number(format="%.3f", help="Precision averaged over recall"),
                "Coverage": number(format="percent", help="Share of traffic that the detector can score"),
                "Precision there": number(format="percent"),
                "Recall there": number(format="percent"),
            },
        )


def marks_of(
    data: step.Labelled, point: OperatingPoint, ruled: OperatingPoint, elbow: OperatingPoint, live: float | None
) -> list[charts.Mark]:
    """The points worth seeing on the curve: this threshold, the policy's, the elbow, the live release's."""
    marks = [charts.Mark("here", "This threshold", point.threshold, point.precision, point.recall)]
    if ruled.feasible and ruled.policy != elbow.policy:
        marks.append(charts.Mark("policy", _legend(ruled), ruled.threshold, ruled.precision, ruled.recall))
    marks.append(charts.Mark("elbow", "Elbow", elbow.threshold, elbow.precision, elbow.recall))
    if live is not None:
        there = figures(data.sweep, live)
        marks.append(charts.Mark("live", "Live release", live, there.precision, there.recall))
    return marks


def _legend(point: OperatingPoint) -> str:
    """A point's policy: "Precision at least 70%, bounded"."""
    words = wording.policy_in_words(parse(point.policy))
    return f"{words[:1].upper()}{words[1:]}" + (f", {point.strength}" if point.guarantee else "")


def show_charts(data: step.Labelled, setting: tuning.Setting, marks: Sequence[charts.Mark]) -> None:
    thin = data.outline.sweep
    together = st.session_state.get("tune_band", False)
    unit = registry.get(data.config.name).unit
    left, right = st.columns(2, gap="medium")
    with left:
        band = data.outline.together if together else data.outline.pointwise
        words = f"95%, {AT_ONCE} thresholds at once" if together else "95%, pointwise"
        _chart(charts.precision_recall(thin, band, marks, band_name=words), "tune_curve")
        st.toggle(
            "Bounds for all thresholds at once",
            key="tune_band",
            help="Pointwise bounds hold at one threshold, named beforehand. Who looks along the curve for a good place "
            f"needs wider ones: these hold at some {AT_ONCE} thresholds together (Bonferroni).",
        )
    with right:
        bars = charts.scores_by_label(data.histogram, thin, setting.threshold, unit=unit, span=tuning.span_of(data))
        _chart(bars, "tune_bars")
        tuning.slide(data, setting)


def show_figures(
    point: OperatingPoint, per_day: float | None, *, flags: float | None = None, chance: float | None = None
) -> None:
    """The sentence, the counts, and each figure with its interval. `flags` a day, where traffic was counted; `chance`
    that a threshold chosen so is short of its target."""
    rate = point.flag_rate.value
    estimated = None if per_day is None or rate is None else rate * per_day
    # Why a policy is not met stands above the charts already.
    said = wording.sentence(replace(point, why=None), estimated if flags is None else flags, chance=chance)
    st.markdown(f"**{plain(said.partition('. ')[0])}.** {plain(said.partition('. ')[2])}")
    for caution in wording.cautions(point):
        st.caption(f":material/info: {plain(caution)}")
    counts, *places = st.columns([2.3, 1, 1, 1, 1, 1], vertical_alignment="top")
    with counts:
        st.html(STYLE + _matrix(point))
    named = (
        ("Precision", point.precision, "Share of flags that is right"),
        ("Recall", point.recall, "Share of hallucinations that is flagged, end to end"),
        ("False-positive rate", point.fpr, "Share of clean traces that is flagged"),
        ("Flag rate", point.flag_rate, "Share of all traffic that is flagged"),
    )
    for place, (name, figure, about) in zip(places, named, strict=False):
        with place:
            _metric(name, figure, about)
    with places[-1]:
        _flags_a_day(point.flag_rate, per_day)


def show_nearby(store: Store, data: step.Labelled, point: OperatingPoint) -> None:
    """The traces just on either side of the threshold, readable in place; where flag and gold differ is marked."""
    near = data.nearby(point.threshold, most=NEAR)
    rows = [*near.flagged[::-1], *near.passed]
    traces = dict(zip([row.pk for row in rows], _load(store, [row.pk for row in rows]), strict=True))
    st.subheader("Either side of the threshold", anchor=False)
    for number, row in enumerate(rows):
        if number == len(near.flagged):
            _line(point, bool(near.flagged))
        _header(row, flagged=number < len(near.flagged), number=number)
        evidence = _evidence(store, data.config, row.pk)
        trace_card.show(traces[row.pk], evidence=evidence, height=CARD_HEIGHT, key=f"tune_card_{number}")
    if rows and not near.passed:
        _line(point, True)


def _load(store: Store, pks: Sequence[int]) -> list[Any]:
    return store.traces.load(pks)


def _evidence(store: Store, config: Config, pk: int) -> Sequence[Any]:
    return next((score.evidence for one, score in store.scores.of_trace(pk) if one.id == config.id), ())


def _line(point: OperatingPoint, below: bool) -> None:
    words = f"threshold {tuning.at(point)}"
    st.markdown(f":material/expand_less: flagged &emsp; **{plain(words)}** &emsp; not flagged :material/expand_more:")


VERDICTS = {
    (True, True): ("caught", "gray", ":material/check:"),
    (True, False): ("false alarm: gold says clean", "blue", ":material/notifications_off:"),
    (False, True): ("missed: gold says hallucinated", "orange", ":material/visibility_off:"),
    (False, False): ("rightly passed", "gray", ":material/check:"),
}


def _header(row: Row, *, flagged: bool, number: int) -> None:
    words, colour, icon = VERDICTS[flagged, row.gold == "hallucinated"]
    with st.container(horizontal=True, vertical_alignment="center", key=f"tune-near-{number}"):
        st.markdown(f"**{row.value:.4g}**", width="content")
        st.badge(words, icon=icon, color=colour)  # type: ignore[arg-type]


def _chart(figure: Any, key: str) -> None:
    st.plotly_chart(
        figure,
        key=key,
        on_select=lambda: tuning.clicked(key),
        selection_mode="points",
        config=charts.CONFIG,
    )


def _matrix(point: OperatingPoint) -> str:
    """Numbers and our own words only."""
    rows = (
        ("Flagged", point.true_positives, "", point.false_positives, "bad"),
        ("Passed", point.false_negatives, "bad", point.true_negatives, ""),
    )
    body = "".join(
        f'<tr><th>{name}</th><td class="{a}">{hallucinated:,}</td><td class="{b}">{clean:,}</td></tr>'
        for name, hallucinated, a, clean, b in rows
    )
    head = "".join(
        f'<th><i style="background:{colour}"></i>{name}</th>'
        for name, colour in (("hallucinated", charts.VERMILLION), ("clean", charts.BLUE))
    )
    return f'<table class="ts-matrix"><thead><tr><th>Labels</th>{head}</tr></thead><tbody>{body}</tbody></table>'


def _metric(name: str, figure: Interval, about: str) -> None:
    if figure.value is None:
        st.metric(name, "–", "unknown", delta_color="off", delta_arrow="off", help=about)
        return
    st.metric(
        name, wording.percent(figure.value), wording.interval(figure), delta_color="off", delta_arrow="off", help=about
    )


def _flags_a_day(rate: Interval, per_day: float | None) -> None:
    about = "The flag rate times the traces a day in the sample's window"
    if per_day is None or rate.value is None:
        st.metric("Flags a day", "–", "unknown: no times", delta_color="off", delta_arrow="off", help=about)
        return
    reach = None
    if rate.low is not None and rate.high is not None:
        reach = f"{_round(rate.low * per_day)}–{_round(rate.high * per_day)}"
    st.metric("Flags a day", _round(rate.value * per_day), reach, delta_color="off", delta_arrow="off", help=about)


def _round(number: float) -> str:
    """Two digits are all that an estimated rate is worth."""
    return f"{float(f'{number:.2g}'):,.0f}" if number >= 10 else f"{number:.2g}"


def _sign(point: Mapping[str, Any]) -> str:
    return "≥" if point["flag_when"] == "above" else "≤"
