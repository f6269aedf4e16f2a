"""The Drift page's parts: facts, a table of the tests, and small charts of both windows' scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from calibrate.report.numbers import UNKNOWN, count, listed, number, share
from calibrate.report.sentences import drift as sentences
from calibrate.report.weekly_html import figure, unit, urgency
from calibrate.workflow.watching import drift as step
from db import Store
from pages import shell
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


@shell.cached_read(
    "Comparing the traffic since the release with the window before …",
    "traces", "samples", "scores", "releases", "team", entries=20,
)  # fmt: skip
def load(store: Store) -> step.Report:
    return step.drift(store, now=shell.now())


def show_facts(report: step.Report) -> None:
    models = plain(listed([middle(visible(name, 200), 40) for name in report.models], 6)) or "no model that is named"
    st.caption(
        f"v{report.version} was made on {models}. Since then {count(report.traces, 'trace')}; of each window at most "
        f"{count(report.cap)} were drawn. In a quiet week the chance that something is said to have moved "
        f"is {share(report.alpha)}."
    )


def show_charts(lines: Sequence[step.DetectorDrift]) -> None:
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


def _chart(line: step.DetectorDrift) -> None:
    st.markdown(f"**{plain(line.detector)}**{_badge(line)}  \n:gray[:small[{_model(line)}]]")
    st.plotly_chart(figure(line), config=CONFIG, key=f"drift-{line.detector}-{line.model}")
    score_unit = unit(line.detector)  # as a title of its axis a narrow card would cut it
    verdict = plain(sentences.line_verdict(line), 400)
    st.caption(f"Score: {plain(score_unit)}\n\n{verdict}" if score_unit else verdict)


def _badge(line: step.DetectorDrift) -> str:
    colour = "orange" if line.state in ("moved", "recalibrate") else "gray"
    return f" :{colour}-badge[{sentences.STATES[line.state]}]"


def _model(line: step.DetectorDrift) -> str:
    name = "model not given" if line.model == "(none)" else middle(visible(line.model, 200), 40)
    return plain(name)


def show_table(lines: Sequence[step.DetectorDrift]) -> None:
    """Every test with its figures, those that need action first."""
    st.dataframe(
        [_row(line) for line in sorted(lines, key=urgency)], hide_index=True, placeholder="–", column_config=_COLUMNS
    )


def _row(line: step.DetectorDrift) -> dict[str, Any]:
    shift, moved = line.shift, line.moved
    row: dict[str, Any] = {
        "Detector": line.detector,
        "Model": "not given" if line.model == "(none)" else visible(line.model, 80),
        "Verdict": sentences.STATES[line.state],
        "Compared": f"{count(line.compared_before)} / {count(line.compared)}",
    }
    if shift is None or moved is None:
        return {**row, "Says": visible(sentences.line_verdict(line), 300)}
    return {
        **row,
        "Median": _pair(number(shift.before.median, 3), number(shift.now.median, 3)),
        "Flagged": _pair(share(shift.before.flag_rate), share(shift.now.flag_rate)),
        "Scored": _pair(share(shift.before.coverage), share(shift.now.coverage)),
        "p scores": shift.p_scores,
        "p flags": shift.p_flags,
        "p scored": shift.p_coverage,
        "Says": visible(sentences.line_verdict(line), 300),
    }


def _pair(before: str, now: str) -> str:
    return " → ".join("–" if text == UNKNOWN else text for text in (before, now))


def _p(about: str) -> Any:
    return st.column_config.NumberColumn(width=70, format="%.3f", help=f"{about}; each test alone, before correction")


_COLUMNS: dict[str, Any] = {
    "Compared": st.column_config.TextColumn(help="Traces of the window before, and since the release"),
    "Median": st.column_config.TextColumn(help="Of the scores, in the detector's units"),
    "Flagged": st.column_config.TextColumn(help="At the live threshold"),
    "Scored": st.column_config.TextColumn(help="Share of the traces that it could score"),
    "p scores": _p("Energy distance between the scores, permutation test"),
    "p flags": _p("Share flagged"),
    "p scored": _p("Share it could score"),
    "Says": st.column_config.TextColumn(width="large"),
}
