"""The scoreboard as a page shows it: who leads, the table, the baselines apart from it, and who stays silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from calibrate.report.numbers import count, decimal_interval, decimals, exact_share, interval, limit, listed
from calibrate.report.sentences import scoreboard
from calibrate.types import Interval
from calibrate.workflow.tuning import scoreboard as step
from db import Store
from pages import shell
from pages.components.charts import GREY
from pages.components.text import plain, visible

TABLE = "scoreboard_table"
SEEN = 14  # rows; the rest scrolls


@shell.cached_read("Resampling the labels of every detector …", *shell.EVIDENCE, "points", entries=20)
def load(store: Store, sample: str | None) -> step.Scoreboard:
    return step.scoreboard(store, sample=sample)


def show_leaders(board: step.Scoreboard) -> None:
    """Who leads, in sentences."""
    first, *rest = scoreboard.sentences(board)
    st.markdown(f"**{plain(first)}**")
    if rest:
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in rest))


def choose(board: step.Scoreboard) -> str | None:
    """The tables; the detector whose row is selected, kept across pages and in the address. None without any."""
    lines = [line for line in board.lines if not line.baseline]
    baselines = [line for line in board.lines if line.baseline]
    name = _selected(lines) if lines else None
    if baselines:
        st.caption("**Baselines.** What the wording and the length of an answer tell already:")
        wide = {**_COLUMNS, "Detector": _text("Detector", 174)}  # the boxes of the other table are missing here
        st.dataframe(_cells(baselines), hide_index=True, placeholder="–", column_config=wide)
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        _explain(board)
        st.download_button(
            "Download CSV",
            scoreboard.as_csv(board),
            "scoreboard.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            type="tertiary",
        )
    return name


def show_silent(board: step.Scoreboard) -> None:
    """Detectors that could score nothing, by why."""
    reasons: dict[str, list[str]] = {}
    for name, why in scoreboard.silent(board).items():
        reasons.setdefault(why, []).append(step.title_of(name))
    if reasons:
        st.caption("Could score none of these labels: " + "; ".join(
            f"**{plain(listed(names, 9))}** ({plain(why, 200)})" for why, names in reasons.items()
        ) + ".")  # fmt: skip


def _selected(lines: Sequence[step.Line]) -> str:
    names = [line.name for line in lines]
    wanted = st.query_params.get("detector") or st.session_state.get("detector_at_hand")
    place = names.index(wanted) if wanted in names else 0
    event = st.dataframe(
        _cells(lines),
        hide_index=True,
        placeholder="–",
        column_config=_COLUMNS,
        height=40 + 35 * min(len(lines), SEEN),
        key=TABLE,
        on_select="rerun",
        selection_mode="single-row-required",
        selection_default={"selection": {"rows": [place]}},
    )
    chosen: Mapping[str, Any] = event["selection"]
    name = names[int((chosen["rows"] or [place])[0])]
    st.session_state["detector_at_hand"] = st.query_params["detector"] = name
    return name


def _explain(board: step.Scoreboard) -> None:
    """What labels these are, and what precision and recall are measured at."""
    target = exact_share(step.DEFAULT.number)
    facts = [f"{count(board.n, 'label')}, {count(board.positives)} hallucinated"]
    if board.refused:
        facts.append(f"{count(board.refused, 'refusal')} left out")
    st.caption(
        f"{'; '.join(facts)}. Intervals are 95%. Precision and recall are at the threshold that was *saved*, else "
        f"(*here*) at the one that finds most with a measured precision of {target}, chosen on these same labels, "
        "which flatters it; *nearest* where none reaches that. Costs count every call as paid for.",
        width=900,
    )


def _cells(lines: Sequence[step.Line]) -> Any:
    table = pd.DataFrame([_row(line) for line in lines], columns=list(_COLUMNS))
    return table.style.set_properties(subset=_INTERVALS, **{"color": GREY})


def _row(line: step.Line) -> dict[str, Any]:
    point, spent, nothing = line.point, line.spent, Interval(None)
    precision, recall = (point.precision, point.recall) if point else (nothing, nothing)
    return {
        "Detector": visible(line.title, 60),
        "AUROC": line.auroc.value,
        "AUROC 95%": _area(line.auroc),
        "AP": line.average_precision.value,
        "AP 95%": _area(line.average_precision),
        "Precision": _whole(precision.value),
        "Precision 95%": _bounds(precision),
        "Recall": _whole(recall.value),
        "Recall 95%": _bounds(recall),
        "At": limit(point.threshold, point.flag_when) if point else None,
        "Chosen": point.chosen if point else None,
        "Scored": line.scored,
        "Coverage": _whole(line.coverage),
        "ms": spent.milliseconds,
        "$ / 1,000": "unknown" if spent.cost_per_1000 is None else decimals(spent.cost_per_1000, 2),
        "Calls": spent.calls,
        "Says why": spent.explains,
    }


def _whole(share: float | None) -> float | None:
    """Whole percents: more digits than labels can tell are noise."""
    return None if share is None else round(share, 2)


def _area(figure: Interval) -> str | None:
    return None if figure.low is None else decimal_interval(figure.low, figure.high, 2)


def _bounds(figure: Interval) -> str | None:
    return None if figure.low is None else interval(figure.low, figure.high, unit="")


def _text(name: str, width: int, about: str | None = None) -> Any:
    return st.column_config.TextColumn(name, width=width, help=about)


def _number(width: int, form: str, about: str, name: str | None = None) -> Any:
    return st.column_config.NumberColumn(name, width=width, format=form, help=about)


_COLUMNS: dict[str, Any] = {
    "Detector": _text("Detector", 140),
    "AUROC": _number(55, "%.2f", "The chance that a hallucinated trace scores worse than a clean one; 0.5 is chance"),
    "AUROC 95%": _text("95%", 74),
    "AP": _number(45, "%.2f", "Average precision: precision averaged over recall, to be read against the prevalence"),
    "AP 95%": _text("95%", 74),
    "Precision": _number(66, "percent", "Of the labels it flags there, the share that is hallucinated"),
    "Precision 95%": _text("95%", 58),
    "Recall": _number(
        52, "percent", "Of the hallucinations, the share it flags there; a trace without a score is missed"
    ),
    "Recall 95%": _text("95%", 58),
    "At": _text("At", 64, "The threshold"),
    "Chosen": _text("Chosen", 60, "saved: the operating point; here: by the default policy on these labels"),
    "Scored": _number(54, "localized", "Labels with a score"),
    "Coverage": _number(62, "percent", "Share of traffic that it can score, where it was run"),
    "ms": _number(44, "%.2g", "Median milliseconds a trace"),
    "$ / 1,000": _text("$ / 1,000", 62, "US dollars for 1,000 traces"),
    "Calls": _number(42, "%.3g", "Requests to a chat endpoint for each trace"),
    "Says why": st.column_config.CheckboxColumn(width=62, help="Its scores come with evidence on the trace card"),
}
_INTERVALS = [name for name in _COLUMNS if name.endswith("95%")]
