"""The charts of the home page: traffic, flags by the live release, and how well its precision is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

import plotly.graph_objects as go
import streamlit as st

from calibrate.report.numbers import count, day, labelled
from calibrate.thresholds.ensembles import EnsembleMetrics
from calibrate.thresholds.model import Metrics, ThresholdsFile
from calibrate.thresholds.states import Judged
from calibrate.types import Guarantee, Interval, LabelState, StateReason, Tier, TraceFilter
from db import Store
from pages.components import bars, charts
from pages.components.text import charted, plain, visible

MONTH = timedelta(days=30)
HEIGHT = 230
MOST_ROWS = 8
_SMALL = '<span style="font-size:11px">{}</span>'
_TIERS: tuple[tuple[Tier, str], ...] = (("page", charts.VERMILLION), ("signal", "#E69F00"))


@dataclass(frozen=True)
class KnownPrecision:
    """How well a precision is known: from `labels` labels, flagged or not, `positives` of them hallucinated."""

    name: str
    precision: Interval
    labels: int
    positives: int
    guarantee: Guarantee | None = None


def show_flags(store: Store, file: ThresholdsFile, newest: datetime | None) -> None:
    """Flags a day by tier, the 30 days up to the newest trace."""
    st.markdown("**Flags a day, by tier**")
    if newest is None:
        st.caption("These traces carry no time, so their flags are on no day.")
        return
    counts = store.decisions.per_day(since=newest - MONTH)
    flags = sum(n for counts in counts.values() for n in counts.values())
    decided = sum(store.decisions.counts(file.version).values())
    if not flags:
        _no_flags(file.version, decided)
        return
    decisions = f"v{file.version} has decided {count(decided, 'trace')} so far" if decided else _unasked(file.version)
    st.caption(f"{count(flags, 'trace')} flagged in the 30 days up to {day(newest)}, by the trace's day; {decisions}")
    st.plotly_chart(flags_a_day(counts, last=newest.date()), key="flags-a-day", config=charts.CONFIG)


def _no_flags(version: int, decided: int) -> None:
    if decided:
        st.caption(f"v{version} decided {count(decided, 'trace')} and flagged none of the last 30 days.")
        return
    sentence = _unasked(version)
    st.caption(f"{sentence}. Run on the server, this scores new traces as they come and decides:")
    st.code("python -m calibrate watch", language=None)


def _unasked(version: int) -> str:
    return f"v{version} has decided no trace of this store yet"


def show_precision(file: ThresholdsFile, live: Sequence[Judged] = ()) -> None:
    """How well the precision of each detector that may flag is known. `live`: what is known now of each."""
    st.markdown("**Precision known to**")
    lost = {judged.name for judged in live if judged.state.why == StateReason.OVERTURNED}
    rows = known_of(file, lost)
    if not rows:
        st.caption(f"Nothing in v{file.version} may flag: every tier is off.")
        return
    more = f"; {len(rows) - MOST_ROWS} more are on the Release page" if len(rows) > MOST_ROWS else ""
    st.caption(
        f"Of what v{file.version} flags, the share that is hallucinated{more}. Below a name: all labels that it was "
        "measured on, flagged or not"
        + (f". Labels have changed since: no longer certified is {', '.join(map(plain, sorted(lost)))}" if lost else "")
    )
    st.plotly_chart(precision_known(rows[:MOST_ROWS]), key="precision-known", config=charts.CONFIG)


def known_of(file: ThresholdsFile, lost: Collection[str] = ()) -> list[KnownPrecision]:
    """The detectors and ensembles of a release that may flag, by name, detectors first. The certificates of `lost` ones
    no longer hold."""
    entries = [(name, entry) for name, entry in sorted(file.detectors.items()) if entry.tier != "off"]
    alone = [
        _known_precision(name, entry.metrics, None if name in lost else entry.guarantee) for name, entry in entries
    ]
    return alone + [_known_precision(name, entry.metrics) for name, entry in file.live_ensembles]


def _known_precision(
    name: str, metrics: Metrics | EnsembleMetrics, guarantee: Guarantee | None = None
) -> KnownPrecision:
    return KnownPrecision(name, metrics.precision, metrics.n, metrics.positives, guarantee)


def flags_a_day(counts: Mapping[Tier, Mapping[str, int]], *, last: date) -> go.Figure:
    """Stacked bars of flagged traces, for the 30 days up to `last`."""
    data = [
        {
            "type": "bar",
            "x": list(counts[tier]),
            "y": list(counts[tier].values()),
            "name": tier,
            "marker": {"color": colour},
            "hovertemplate": f"%{{x|%a %d %b}}: %{{y:,}} {tier}<extra></extra>",
        }
        for tier, colour in _TIERS
        if counts.get(tier)
    ]
    half = timedelta(hours=12)
    span = [datetime.combine(last, datetime.min.time()) + move for move in (half - MONTH, half)]
    layout = {
        **charts.template(height=HEIGHT),
        "barmode": "stack",
        "bargap": 0.25,
        "showlegend": True,
        "xaxis": charts.axis("Day (UTC)", type="date", range=span, showgrid=False, tickformat="%d %b", nticks=8),
        # The margin grows with the ticks, so that they do not touch the title.
        "yaxis": charts.axis(
            "Flagged traces", standoff=16, automargin=True, rangemode="tozero", nticks=4, tickformat=",d"
        ),
    }
    return go.Figure({"data": data, "layout": layout})


def precision_known(rows: Sequence[KnownPrecision]) -> go.Figure:
    """One line per detector: its measured precision with the 95% interval, and what is bounded or certified."""
    names = [
        f"{charted(visible(row.name, 40))}<br>{_SMALL.format(labelled(row.labels, row.positives))}" for row in rows
    ]
    data = [_measured(names, rows)]
    for strength, symbol in (("bounded", "line-ns-open"), ("certified", "triangle-right")):
        pairs = [(name, row.guarantee) for name, row in zip(names, rows, strict=True)]
        guaranteed = [(name, guarantee) for name, guarantee in pairs if guarantee and guarantee.strength == strength]
        if guaranteed:
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "x": [guarantee.target for _, guarantee in guaranteed],
                    "y": [name for name, _ in guaranteed],
                    "customdata": [guarantee.confidence for _, guarantee in guaranteed],
                    "marker": {"symbol": symbol, "size": 13, "color": charts.HERE, "line": {"width": 2}},
                    "name": f"{strength}: at least",
                    "hovertemplate": f"{strength}: at least %{{x:.0%}}, %{{customdata:.0%}} confidence<extra></extra>",
                }
            )
    layout = {
        **charts.template(height=max(HEIGHT, 96 + 40 * len(rows))),
        "showlegend": True,
        "xaxis": charts.share_axis("Precision"),
        "yaxis": charts.axis(
            "", ticklabelstandoff=8, range=[len(rows) - 0.4, -0.6], automargin=True, type="category", showgrid=False
        ),
    }
    return go.Figure({"data": data, "layout": layout})


def _measured(names: Sequence[str], rows: Sequence[KnownPrecision]) -> dict[str, object]:
    figures = [(name, row.precision) for name, row in zip(names, rows, strict=True)]
    drawn = [(name, figure.value, figure.low, figure.high) for name, figure in figures if figure.value is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [value for _, value, _, _ in drawn],
        "y": [name for name, *_ in drawn],
        "customdata": [[low, high] if low is not None else [value, value] for _, value, low, high in drawn],
        "marker": {"size": 9, "color": charts.BLUE},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [high - value if high is not None else 0 for _, value, _, high in drawn],
            "arrayminus": [value - low if low is not None else 0 for _, value, low, _ in drawn],
            "color": charts.BLUE,
            "thickness": 2,
            "width": 5,
        },
        "name": "measured, with its 95% interval",
        "hovertemplate": "%{x:.0%} (%{customdata[0]:.0%} to %{customdata[1]:.0%})<extra></extra>",
    }


def show_traffic(store: Store) -> None:
    """Thirty days up to the newest trace, by label state."""
    newest = store.traces.summary().last
    st.markdown("**Traces a day**")
    if newest is None:
        st.caption("These traces carry no time, so there is no traffic to show.")
        return
    window = TraceFilter(since=newest - MONTH, undated=False)
    states: tuple[LabelState, ...] = ("hallucinated", "clean", "unsure", "disputed", "unlabelled")
    counts = {state: store.traces.per_day(replace(window, label=state)) for state in states}
    st.caption(f"The 30 days up to {day(newest)}, by label")
    bars.days({state: counts for state, counts in counts.items() if counts}, key="traffic")
