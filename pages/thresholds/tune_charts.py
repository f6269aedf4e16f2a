"""What the Tune page shows of a threshold: charts, the sentence, figures, and the traces on either side of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import streamlit as st

from calibrate import registry
from calibrate.report.numbers import about, count, decimals, interval, limit, listed, number, share
from calibrate.report.sentences import figures as wording
from calibrate.report.sentences.evidence import uneven
from calibrate.stats.choosing.policy import parse
from calibrate.stats.intervals.sweep_intervals import AT_ONCE, figures
from calibrate.stats.sweep.sweep import Missing
from calibrate.types import Evidence, Interval, OperatingPoint, Trace
from calibrate.workflow.evidence import evidence, loading
from db import Store
from db.scores import Config, Row
from pages import shell
from pages.components import charts, evidence_choice, trace_card
from pages.components.text import plain
from pages.thresholds import policy_controls, threshold_mark, tune_setting

NEAR = 3
CARD_HEIGHT = "18rem"
BAND = "tune_band"
STYLE = """<style>
.st-key-tune-slider {padding: 0 3px 0 59px}
.ts-matrix {border-collapse: collapse; font-size: .875rem; line-height: 1.9; font-variant-numeric: tabular-nums}
.ts-matrix th {font-weight: 400; opacity: .65; padding: 0 .9rem 0 0; text-align: left}
.ts-matrix thead th + th {text-align: right}
.ts-matrix td {text-align: right; padding: 0 .9rem 0 .9rem; font-size: 1.1rem}
.ts-matrix td.bad {font-weight: 700}
.ts-matrix i {display: inline-block; width: .6rem; height: .6rem; border-radius: 50%; margin-right: .4rem}
.ts-said {margin-bottom: 1rem}
.ts-said p {margin: 0 0 .25rem}
.ts-said .quiet {font-size: .875rem; opacity: .65}
.ts-figures {display: grid; grid-template-columns: 2.3fr repeat(5, 1fr); gap: 1rem}
.ts-figures dl {margin: 0; font-variant-numeric: tabular-nums}
.ts-figures dt {font-size: .875rem; font-weight: 400}
.ts-figures dd {margin: 0; font-size: 1.9rem; line-height: 1.4}
.ts-figures dd + dd {font-size: .875rem; opacity: .65}
</style>"""


def show_facts(store: Store, data: evidence.Evidence) -> None:
    """What there is to go by: labels, positives, coverage with the reasons for what has no score."""
    sweep = data.sweep
    if not sweep.n:
        return
    facts = [
        f"**{count(sweep.n, 'label')}**, {count(sweep.positives)} hallucinated ({share(sweep.positives / sweep.n)})"
    ]
    if data.sample is not None and sweep.prevalence is not None and data.sample.design != "random":
        facts.append(f"about {share(sweep.prevalence)} of the traffic")
    facts.append(f"**{count(sweep.scored)} scored** ({share(sweep.scored / sweep.n)})")
    if sweep.clusters:
        facts.append(f"from **{count(sweep.clusters.count, 'group')}** that share sources, each one piece of evidence")
    if data.refused:
        facts.append(f"{count(len(data.refused), 'refusal')} left out")
    if sweep.auroc is not None and sweep.average_precision is not None:
        facts.append(f"AUROC **{decimals(sweep.auroc)}**, average precision **{decimals(sweep.average_precision)}**")
    st.markdown(" &ensp;·&ensp; ".join(facts))
    if caution := uneven(loading.uneven_labels(store, data.sample)):
        st.warning(f"{plain(caution)}.", icon=":material/balance:")
    if data.reasons:
        why = [f"{count(n)} {plain(reason, 160)}" for reason, n in data.reasons.items()]
        st.caption(
            f"No score for {count(sweep.n - sweep.scored)} of {count(sweep.n)}: {listed(why, 4)}. "
            "They are never flagged."
        )


def show_missing(data: evidence.Evidence) -> None:
    """One class, no labels or no scores: what is missing, and where to get it."""
    no_scores = data.sweep.missing in (Missing.NO_SCORES, Missing.HALLUCINATED_SCORED, Missing.CLEAN_SCORED)
    missing = wording.capitalised(wording.missing(data.sweep) or "")
    not_run = any(row.status is None for row in data.rows)
    with st.container(border=True):
        st.markdown(f"**No threshold can be chosen yet.** {plain(missing)}.")
        if no_scores and not not_run:
            st.caption("It abstains on what it cannot judge, and says why above. Choose another detector for these.")
        elif no_scores:
            st.page_link(shell.page("detect"), label="Run detectors", icon=":material/play_circle:")
        else:
            st.page_link(shell.page("label"), label="Label traces", icon=":material/check_box:")


def show_overview(store: Store, runs: Mapping[str, Sequence[Config]], sample: evidence_choice.SampleNames) -> None:
    """Every detector that has scores, in the order given, with the point that is saved for it."""
    saved = store.points.latest()
    rows = []
    for name, configs in runs.items():
        sweep = evidence_choice.evidence_of(store, configs[-1], sample).sweep
        point = saved[name].point if name in saved else None
        rows.append(
            {
                "Detector": name,
                "AUROC": sweep.auroc,
                "Average precision": sweep.average_precision,
                "Coverage": sweep.coverage,
                "Saved point": limit(point.threshold, point.flag_when) if point else None,
                "Policy": point.policy if point else None,
                "Precision there": point.precision.value if point else None,
                "Recall there": point.recall.value if point else None,
            }
        )
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


def marks_of(
    data: evidence.Evidence, ruled: OperatingPoint, elbow: OperatingPoint, live: float | None
) -> list[charts.Mark]:
    """What is worth seeing on the curve beside the threshold at hand: the policy's point, the elbow, the live one."""
    marks = []
    if ruled.feasible and ruled.policy != elbow.policy:
        marks.append(charts.Mark("policy", _legend(ruled), ruled.threshold, ruled.precision, ruled.recall))
    marks.append(charts.Mark("elbow", "Elbow", elbow.threshold, elbow.precision, elbow.recall))
    if live is not None:
        measured = figures(data.sweep, live)
        marks.append(charts.Mark("live", "Live release", live, measured.precision, measured.recall))
    return marks


def _legend(point: OperatingPoint) -> str:
    """A point's policy: "Precision at least 70%, bounded"."""
    words = wording.policy_in_words(parse(point.policy))
    return f"{words[:1].upper()}{words[1:]}" + (f", {point.strength}" if point.guarantee else "")


def show_charts(data: evidence.Evidence, marks: Sequence[charts.Mark], *, together: bool) -> None:
    """The charts are the same wherever the threshold stands, so the browser does not draw them anew. `together`: with
    bounds for all thresholds at once."""
    curve, bars = tune_setting.once(data, ("charts", together, tuple(marks)), lambda: _charts(data, together, marks))
    with st.container(key="tune-charts"):
        left, right = st.columns(2, gap="medium")
    with left:
        _chart(curve, "tune_curve")
    with right:
        _chart(bars, "tune_bars")


def show_threshold(data: evidence.Evidence, setting: tune_setting.Setting, point: OperatingPoint) -> None:
    """Below the charts: where the threshold stands, to be typed or dragged."""
    with st.container(key="tune-slide"):
        left, right = st.columns(2, gap="medium")
    with left, st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        policy_controls.type_in(data, setting)
        st.toggle(
            "Bounds for all thresholds at once",
            key=BAND,
            help="Pointwise bounds hold at one threshold, named beforehand. Who looks along the curve for a good place "
            f"needs wider ones: these hold at some {AT_ONCE} thresholds together (Bonferroni).",
        )
    with right, st.container(key="tune-slider", gap=None):
        policy_controls.slide(data, setting)
        threshold_mark.show(point, tune_setting.span_of(data))


def _charts(data: evidence.Evidence, together: bool, marks: Sequence[charts.Mark]) -> tuple[Any, Any]:
    band = data.outline.together if together else data.outline.pointwise
    words = f"95%, {AT_ONCE} thresholds at once" if together else "95%, pointwise"
    curve = charts.precision_recall(data.outline.sweep, band, marks, band_name=words)
    unit, span = registry.get(data.config.name).unit, tune_setting.span_of(data)
    return curve, charts.scores_by_label(data.histogram, data.outline.sweep, unit=unit, span=span)


def show_figures(
    point: OperatingPoint, per_day: float | None, *, flags: float | None = None, chance: float | None = None
) -> None:
    """The sentence, the counts, and each figure with its interval. `flags` a day, where traffic was counted; `chance`
    that a threshold chosen so is short of its target."""
    rate = point.flag_rate.value
    estimated = None if per_day is None or rate is None else rate * per_day
    # Why a policy is not met stands above the charts already.
    sentence = wording.sentence(replace(point, why=None), estimated if flags is None else flags, chance=chance)
    first, _, rest = sentence.partition(". ")
    words = [f"<p><b>{escape(first)}.</b> {escape(rest)}</p>"]
    words += [f'<p class="quiet">{escape(caution)}</p>' for caution in wording.cautions(point)]
    named = (
        ("Precision", point.precision, "Share of flags that is right"),
        ("Recall", point.recall, "Share of hallucinations that is flagged, end to end"),
        ("False-positive rate", point.fpr, "Share of clean traces that is flagged"),
        ("Flag rate", point.flag_rate, "Share of all traffic that is flagged"),
    )
    metrics = [_metric(*figure) for figure in named] + [_flags_a_day(point.flag_rate, per_day)]
    # One element of the page and not fourteen: it is drawn anew with every move of the threshold.
    table = f'<div class="ts-figures">{_matrix(point)}{"".join(metrics)}</div>'
    st.html(f'{STYLE}<div class="ts-said">{"".join(words)}</div>{table}')


def show_nearby(store: Store, data: evidence.Evidence, point: OperatingPoint) -> None:
    """The traces just on either side of the threshold, readable in place; where flag and gold differ is marked."""
    near = data.nearby(point.threshold, most=NEAR)
    rows = [*near.flagged[::-1], *near.passed]
    traces = _read(store, data.config, rows)
    cards = [
        trace_card.Shown(*traces[row.pk], _heading(row, flagged=i < len(near.flagged))) for i, row in enumerate(rows)
    ]
    line = f"↑ flagged · threshold {tune_setting.at(point)} · not flagged ↓"
    between = [line] if rows else []
    st.subheader("Either side of the threshold", anchor=False)
    items: list[trace_card.Shown | str] = [*cards[: len(near.flagged)], *between, *cards[len(near.flagged) :]]
    trace_card.show_list(items, height=CARD_HEIGHT, key="tune_near")


def _read(store: Store, config: Config, rows: Sequence[Row]) -> dict[int, tuple[Trace, Sequence[Evidence]]]:
    """The traces of these rows with their evidence. Those shown before the threshold moved are not read again."""
    shown, before = st.session_state.get("tune_near", (None, {}))
    already_read = before if shown == config.id else {}
    missing = [row.pk for row in rows if row.pk not in already_read]
    traces = store.traces.load(missing) if missing else ()
    evidence = store.scores.evidence(config.id, missing) if missing else {}
    read = {pk: (trace, evidence.get(pk, ())) for pk, trace in zip(missing, traces, strict=True)}
    current = {row.pk: already_read.get(row.pk) or read[row.pk] for row in rows}
    st.session_state["tune_near"] = (config.id, current)
    return current


VERDICTS = {
    (True, True): ("caught", "good"),
    (True, False): ("false alarm: gold says clean", "alarm"),
    (False, True): ("missed: gold says hallucinated", "missed"),
    (False, False): ("rightly passed", "good"),
}


def _heading(row: Row, *, flagged: bool) -> trace_card.Heading:
    return trace_card.Heading(number(row.value), *VERDICTS[flagged, row.gold == "hallucinated"])


def _chart(figure: Any, key: str) -> None:
    st.plotly_chart(
        figure,
        key=key,
        on_select=lambda: policy_controls.clicked(key),
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
        f'<tr><th>{name}</th><td class="{a}">{count(hallucinated)}</td><td class="{b}">{count(clean)}</td></tr>'
        for name, hallucinated, a, clean, b in rows
    )
    head = "".join(
        f'<th><i style="background:{colour}"></i>{name}</th>'
        for name, colour in (("hallucinated", charts.VERMILLION), ("clean", charts.BLUE))
    )
    return f'<table class="ts-matrix"><thead><tr><th>Labels</th>{head}</tr></thead><tbody>{body}</tbody></table>'


def _metric(name: str, figure: Interval, about: str) -> str:
    if figure.value is None:
        return _figure(name, "–", "unknown", about)
    return _figure(name, share(figure.value), interval(figure.low, figure.high), about)


def _flags_a_day(rate: Interval, per_day: float | None) -> str:
    name, help = "Flags a day", "The flag rate times the traces a day in the sample's window"
    if per_day is None or rate.value is None:
        return _figure(name, "–", "unknown: no times", help)
    reach = ""
    if rate.low is not None and rate.high is not None:
        reach = f"{about(rate.low * per_day)}–{about(rate.high * per_day)}"
    return _figure(name, about(rate.value * per_day), reach, help)


def _figure(name: str, value: str, reach: str, about: str) -> str:
    """Numbers and our own words only."""
    return f'<dl title="{about}"><dt>{name}</dt><dd>{value}</dd><dd>{reach}</dd></dl>'
