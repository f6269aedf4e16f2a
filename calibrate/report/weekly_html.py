"""The drift report as one HTML file that needs nothing else, and the small charts that it is made of.

No text of a trace is in it; names of models, which come from traces, are escaped and never inside a chart, where plotly
reads a kind of HTML.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import numpy as np

from calibrate import registry
from calibrate.report.names import title_of
from calibrate.report.numbers import UNKNOWN, count, minute, number, share
from calibrate.report.rate_chart import rate_chart
from calibrate.report.sentences.labelling import labels
from calibrate.report.sentences.watching import drift, weekly
from calibrate.report.sentences.watching import rates as rate_sentences
from calibrate.report.tables import rates as rate_table
from calibrate.sanitize import visible
from calibrate.workflow.watching.drift_report import DetectorDrift
from calibrate.workflow.week.rates import Rates
from calibrate.workflow.week.weekly import Weekly

BEFORE, NOW, LIMIT = "#8A8F98", "#009E73", "#C8941A"
_FILL = "rgba(138,143,152,.28)"
_GRID = "rgba(138,143,152,.18)"


def urgency(line: DetectorDrift) -> tuple[int, bool]:
    """A key that sorts the lines that ask for something first."""
    return list(drift.STATES).index(line.state), not (line.moved and line.moved.any)


def figure(line: DetectorDrift, *, height: int = 170) -> dict[str, Any] | None:
    """Both windows' scores as shares, the threshold marked, as plotly's JSON; None where nothing was compared."""
    bins = line.bins
    if bins is None or not len(bins.before):
        return None
    top = float(max(bins.before.max(), bins.now.max())) * 1.08
    axis = {"zeroline": False, "gridcolor": _GRID, "fixedrange": True}
    threshold = {
        "type": "line", "x0": line.threshold, "x1": line.threshold, "y0": 0, "y1": top,
        "line": {"color": LIMIT, "width": 2, "dash": "dot"},
    }  # fmt: skip
    return {
        "data": [
            _steps(bins.edges, bins.before, "before", {"color": BEFORE, "width": 1}, fill=_FILL),
            _steps(bins.edges, bins.now, "since the release", {"color": NOW, "width": 2}),
        ],
        "layout": {
            "height": height, "margin": {"l": 44, "r": 8, "t": 8, "b": 24}, "showlegend": False,
            "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "font": {"size": 12, "color": "#7A828E"},
            "xaxis": {**axis, "showgrid": False, "nticks": 5},
            "yaxis": {**axis, "range": [0, top], "tickformat": ".0%", "nticks": 4},
            "shapes": [threshold], "hovermode": "x",
        },
    }  # fmt: skip


def unit(detector: str) -> str:
    """What a score is, for beside a chart that is too small for it; "" for a detector that is no longer installed."""
    return registry.get(detector).unit if detector in registry.names() else ""


def _steps(edges: Any, shares: Any, name: str, line: dict[str, Any], *, fill: str | None = None) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "x": edges.tolist(), "y": np.append(shares, shares[-1]).tolist(),
        "line": {**line, "shape": "hv"}, "name": name, "hovertemplate": f"%{{y:.1%}} {name}<extra></extra>",
        **({"fill": "tozeroy", "fillcolor": fill} if fill else {}),
    }  # fmt: skip


def page(done: Weekly) -> str:
    """The whole file."""
    from plotly.offline import get_plotlyjs

    title = f"Touchstone, {done.week}"
    parts = [f"<h1>{html.escape(title)}</h1>", f"<p class=quiet>{minute(done.now)}</p>"]
    if done.report is None:
        parts.append("<p><strong>Nothing is released yet, so there is nothing that could drift.</strong></p>")
    else:
        parts.append(f"<p class=verdict>{_text(drift.verdict(done.report))}</p>")
    if steps := weekly.next_steps(done):
        items = "".join(f"<li>{_text(step[:1].upper() + step[1:])}</li>" for step in steps)
        parts.append(f"<h2>Next</h2><ul>{items}</ul>")
    parts += [*_done(done), *_rates(done.rates), *_lines(done)]
    drifts = done.report is not None and any(figure(line) for line in done.report.lines)
    charts = drifts or bool(done.rates.series)
    script = f"<script>{get_plotlyjs()}</script>" if charts else ""  # 5 MB, so that the file needs no network
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style>{script}</head><body><main>{''.join(parts)}</main>"
        "</body></html>\n"
    )


def _done(done: Weekly) -> Iterator[str]:
    yield "<h2>Done</h2><ul>"
    if done.sample:
        word = "drawn" if done.drawn else "there already"
        traces = f"{count(done.sample.size)} of {count(done.sample.pool, 'trace')}"
        size = f"{traces}, by {done.sample.design.replace('-', ' ')}"
        yield f"<li>Sample {_text(done.sample.name)} {word}: {size}</li>"
    if done.at_hand:
        for sentence in (labels.facts(done.at_hand), *labels.open_ones(done.at_hand)):
            yield f"<li>{_text(sentence[:1].upper() + sentence[1:])}</li>"
    for row in done.scored:
        yield f"<li>{_text(title_of(row.detector))}: {_text(weekly.scored(row))}</li>"
    yield "</ul>"


def _rates(rates: Rates) -> Iterator[str]:
    import plotly.graph_objects as go

    yield "<h2>Hallucinated, by week</h2>"
    if rates.series:
        yield "<p class=quiet>Of the traffic, by the labels that count, whose numbers stand below; bars are 95%</p>"
        yield go.Figure(rate_chart(rates)).to_html(
            full_html=False, include_plotlyjs=False, div_id="rates", config={"displayModeBar": False}
        )
        head, *rows = rate_table.rows(rates)
        cells = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
        yield f"<table><tr>{''.join(f'<th>{_text(name)}</th>' for name in head)}</tr>{cells}</table>"
    if newest := rate_sentences.comparison(rates):
        yield f"<p>{_text(newest)}</p>"
    for series in rates.series:
        name = f"{_text(series.value)}: " if rates.by else ""
        yield f"<p>{name}{_text(rate_sentences.newest(series))}</p>"
    for remark in rate_sentences.remarks(rates):
        yield f"<p class=quiet>{_text(remark)}</p>"


def _lines(done: Weekly) -> Iterator[str]:
    if done.report is None or not done.report.lines:
        return
    yield f"<h2>Scores since v{done.report.version}</h2>"
    yield (
        '<p class=quiet><i style="background:#8A8F98"></i> the window before &ensp; '
        '<i style="background:#009E73"></i> since the release &ensp; <i style="background:#C8941A"></i> threshold</p>'
    )
    for place, line in enumerate(sorted(done.report.lines, key=urgency)):
        title = f"{_text(title_of(line.detector))} · {_text(line.model)} <small>{drift.STATES[line.state]}</small>"
        verdict = _text(drift.line_verdict(line))
        yield f"<section><h3>{title}</h3><p>{verdict}</p>{_chart(line, place)}{_table(line)}</section>"


def _chart(line: DetectorDrift, place: int) -> str:
    import plotly.graph_objects as go

    chart = figure(line)
    if chart is None:
        return ""
    drawn = go.Figure(chart).to_html(
        full_html=False, include_plotlyjs=False, div_id=f"chart-{place}", config={"displayModeBar": False}
    )
    score = unit(line.detector)
    return str(drawn) + (f"<p class=quiet>Score: {_text(score)}</p>" if score else "")


def _table(line: DetectorDrift) -> str:
    if line.shift is None:
        return ""
    sides = (("before", line.shift.before), ("since the release", line.shift.now))
    rows = "".join(
        f"<tr><th>{name}</th><td>{count(side.traces)}</td><td>{_or_dash(number(side.median, 3))}</td>"
        f"<td>{_or_dash(share(side.flag_rate))}</td><td>{_or_dash(share(side.coverage))}</td></tr>"
        for name, side in sides
    )
    head = "<tr><th></th><th>traces</th><th>median</th><th>flagged</th><th>scored</th></tr>"
    return f"<table>{head}{rows}</table>"


def _or_dash(text: str) -> str:
    return "–" if text == UNKNOWN else text


def _text(text: str | None) -> str:
    return html.escape(visible(text, 1000)).replace("`", "")


_STYLE = """
:root {color-scheme: light dark}
body {font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem}
h1, h2, h3 {font-weight: 600; line-height: 1.25} h2 {margin-top: 2rem}
.verdict {font-size: 1.15rem; font-weight: 600} .quiet, small {color: #7A828E; font-weight: 400}
section {border-top: 1px solid rgba(138,143,152,.3); padding: .5rem 0 1rem}
table {border-collapse: collapse; font-size: 14px} th {font-weight: 400; text-align: left; color: #7A828E}
td, th {padding: .15rem 1.2rem .15rem 0} td {text-align: right; font-variant-numeric: tabular-nums}
i {display: inline-block; width: .9rem; height: .35rem; border-radius: 2px; vertical-align: middle}
"""
