"""Drift on Watch: facts, a table of the tests, and small charts of both windows' scores."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.numbers import count, listed, share
from calibrate.report.sentences.watching import drift as sentences
from calibrate.report.tables.drift import ON_PAGE
from calibrate.report.weekly_html import figure, unit, urgency
from calibrate.workflow.watching.drift_report import DetectorDrift, Report
from pages.components import tables
from pages.components.charts import CONFIG
from pages.components.text import middle, plain, visible

EACH_ROW = 3
MOST = 12  # charts
KEY = """<style>
.ts-key {font-size: .875rem; opacity: .8}
.ts-key i {display: inline-block; width: 1rem; height: .4rem; border-radius: 2px; margin: 0 .4rem 0 1.2rem}
.ts-key i:first-child {margin-left: 0}
</style><div class="ts-key"><i style="background:#8A8F98"></i>the window before
<i style="background:#009E73"></i>since the release <i style="background:#C8941A"></i>threshold
&emsp; The height is the share of a window's scores.</div>"""


def show_facts(report: Report) -> None:
    models = plain(listed([middle(visible(name, 200), 40) for name in report.models], 6)) or "no model that is named"
    st.caption(
        f"v{report.version} was made on {models}. Since then {count(report.traces, 'trace')}; of each window at most "
        f"{count(report.cap)} were drawn. In a quiet week the chance that something is said to have moved "
        f"is {share(report.alpha)}."
    )


def show_charts(lines: Sequence[DetectorDrift]) -> None:
    """Small multiples, those that need action first."""
    drawn = [line for line in sorted(lines, key=urgency) if line.bins is not None]
    if not drawn:
        return
    st.html(KEY)
    for start in range(0, min(len(drawn), MOST), EACH_ROW):
        for place, line in zip(st.columns(EACH_ROW), drawn[start : start + EACH_ROW], strict=False):
            with place, st.container(border=True, height="stretch"):
                _chart(line)
    if len(drawn) > MOST:
        st.caption(f"{count(len(drawn) - MOST, 'more chart')}: choose a detector above.")


def _chart(line: DetectorDrift) -> None:
    st.markdown(f"**{plain(title_of(line.detector))}**{_badge(line)}  \n:gray[:small[{_model(line)}]]")
    st.plotly_chart(figure(line), config=CONFIG, key=f"drift-{line.detector}-{line.model}")
    score_unit = unit(line.detector)  # as a title of its axis a narrow card would cut it
    verdict = plain(sentences.line_verdict(line), 400)
    st.caption(f"Score: {plain(score_unit)}\n\n{verdict}" if score_unit else verdict)


def _badge(line: DetectorDrift) -> str:
    colour = "orange" if line.state in ("moved", "recalibrate") else "gray"
    return f" :{colour}-badge[{sentences.STATES[line.state]}]"


def _model(line: DetectorDrift) -> str:
    name = "model not given" if line.model == "(none)" else middle(visible(line.model, 200), 40)
    return plain(name)


def show_table(lines: Sequence[DetectorDrift]) -> None:
    """Every test with its figures, those that need action first."""
    st.dataframe(
        tables.frame(ON_PAGE, sorted(lines, key=urgency)),
        hide_index=True,
        placeholder="–",
        column_config=tables.config(ON_PAGE),
    )
