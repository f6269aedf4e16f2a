"""What a threshold does: the sentence, figures with intervals, the traces on either side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

import streamlit as st

from calibrate.report.numbers import about, count, interval, number, share
from calibrate.report.sentences.tuning import figures as wording
from calibrate.types import Evidence, Interval, OperatingPoint, Trace
from calibrate.workflow.evidence import evidence
from db import Store
from db.scores import Config, Row
from pages.components import charts
from pages.components.labelling import trace_card
from pages.components.text import plain
from pages.thresholds import tune_setting

NEAR = 3
CARD_HEIGHT = "18rem"
STYLE = """<style>
.ts-matrix {border-collapse: collapse; font-size: .875rem; line-height: 1.9; font-variant-numeric: tabular-nums}
.ts-matrix th {font-weight: 400; opacity: .65; padding: 0 .9rem 0 0; text-align: left}
.ts-matrix thead th + th {text-align: right}
.ts-matrix td {text-align: right; padding: 0 .9rem 0 .9rem; font-size: 1.1rem}
.ts-matrix td.bad {font-weight: 700}
.ts-matrix i {display: inline-block; width: .6rem; height: .6rem; border-radius: 50%; margin-right: .4rem}
.ts-said {margin-bottom: 1rem}
.ts-said p {margin: 0 0 .25rem}
.ts-figures {display: grid; grid-template-columns: 1fr 1fr; gap: .5rem 1rem}
.ts-figures > table {grid-column: 1 / -1; justify-self: start}
.ts-figures dl {margin: 0; font-variant-numeric: tabular-nums}
.ts-figures dt {font-size: .875rem; font-weight: 400}
.ts-figures dd {margin: 0; font-size: 1.2rem; line-height: 1.4}
.ts-figures dd + dd {font-size: .875rem; opacity: .65}
</style>"""
VERDICTS = {
    (True, True): ("caught", "good"),
    (True, False): ("false alarm: gold says clean", "alarm"),
    (False, True): ("missed: gold says hallucinated", "missed"),
    (False, False): ("rightly passed", "good"),
}


def show_cautions(point: OperatingPoint, *, not_run: int = 0, open_ones: str | None = None) -> None:
    """What to know before relying on the figures. On `not_run` labelled traces nobody has run the detector; `open_ones`
    says what undecided labels could change."""
    notes = [f"{wording.capitalised(open_ones)}."] if open_ones else []
    for note in (*notes, *wording.cautions(point, not_run=not_run)):
        st.caption(plain(note, 500))


def show_figures(point: OperatingPoint, per_day: float | None) -> None:
    """The sentence, the counts, and each figure with its interval, which comes first where few labels are behind it.

    Flags are counted where the traffic is scored.
    """
    rate = point.flag_rate.value
    flags = None if per_day is None or rate is None else rate * per_day
    # Why a policy is not met stands above the charts already.
    sentence = wording.sentence(replace(point, why=None), flags, state_apart=True)
    first, _, rest = sentence.partition(". ")
    words = [f"<p><b>{escape(first)}.</b> {escape(rest)}</p>"]
    named = (
        ("Precision", point.precision, "Share of flags that is right", point.true_positives + point.false_positives),
        ("Recall", point.recall, "Share of hallucinations that is flagged, end to end", point.positives),
        ("False-positive rate", point.fpr, "Share of clean traces that is flagged", point.n - point.positives),
    )
    metrics = [*(_metric(*figure) for figure in named), _flag_rate(point), _flags_a_day(point, per_day)]
    # One element of the page and not fourteen: it is drawn anew with every move of the threshold.
    table = f'<div class="ts-figures">{_matrix(point)}{"".join(metrics)}</div>'
    st.html(f'{STYLE}<div class="ts-said">{"".join(words)}</div>{table}')


def show_nearby(store: Store, data: evidence.Evidence, point: OperatingPoint) -> None:
    """The traces just on either side of the threshold; where flag and gold differ is marked."""
    near = data.nearby(point.threshold, most=NEAR)
    rows = [*near.flagged[::-1], *near.passed]
    traces = _read(store, data.config, rows)
    cards = [
        trace_card.Shown(*traces[row.pk], _heading(row, flagged=i < len(near.flagged))) for i, row in enumerate(rows)
    ]
    line = f"↑ flagged · threshold {tune_setting.limit_of(point)} · not flagged ↓"
    between = [line] if rows else []
    items: list[trace_card.Shown | str] = [*cards[: len(near.flagged)], *between, *cards[len(near.flagged) :]]
    st.markdown("**Read at the line**", width="content")
    with st.container(key="tune-near-list"):
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


def _heading(row: Row, *, flagged: bool) -> trace_card.Heading:
    return trace_card.Heading(number(row.value), *VERDICTS[flagged, row.gold == "hallucinated"])


def _matrix(point: OperatingPoint) -> str:
    """The confusion matrix as HTML: numbers and words of ours only."""
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


def _metric(name: str, figure: Interval, about: str, n: int) -> str:
    return _figure(name, *wording.lead(figure, n), about)


def _flag_rate(point: OperatingPoint) -> str:
    rate, counted, about = point.flag_rate, point.counted, "Share of all traffic that is flagged"
    if counted is None or rate.value is None:
        return _metric("Flag rate", rate, about, point.n)
    to_come = interval(rate.low, rate.high)
    help = f"Counted in the window, every trace of which has a score or none. Of traffic like it to come: {to_come}"
    return _figure("Flag rate", share(rate.value), f"{count(counted.flagged)} of {count(counted.traffic)}", help)


def _flags_a_day(point: OperatingPoint, per_day: float | None) -> str:
    rate = point.flag_rate
    name, help = "Flags a day", "The flag rate times the traces a day in the sample's window"
    if per_day is None or rate.value is None:
        return _figure(name, "–", "unknown: no times", help)
    reach = "" if point.counted is None else "counted"
    if point.counted is None and rate.low is not None and rate.high is not None:
        reach = f"{about(rate.low * per_day)}–{about(rate.high * per_day)}"
    return _figure(name, about(rate.value * per_day), reach, help)


def _figure(name: str, value: str, reach: str, about: str) -> str:
    """A figure with its interval as HTML: numbers and words of ours only."""
    return f'<dl title="{about}"><dt>{name}</dt><dd>{value}</dd><dd>{reach}</dd></dl>'
