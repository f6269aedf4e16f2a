"""The scoreboard: who leads, the table, the baselines below it, and the detectors that scored nothing."""

from __future__ import annotations

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.numbers import count, exact_share, listed
from calibrate.report.sentences.tuning import scoreboard
from calibrate.report.tables.column import as_csv
from calibrate.report.tables.scoreboard import IN_FILES, ON_PAGE
from calibrate.workflow.tuning import scoreboard as step
from db import Store
from pages import shell
from pages.components import tables
from pages.components.text import plain

TABLE = "scoreboard_table"
SEEN = 14  # rows; the rest scrolls


@shell.cached_read("Resampling the labels of every detector …", *shell.EVIDENCE, "points", entries=20)
def load(store: Store, sample: str | None) -> step.Scoreboard:
    return step.scoreboard(store, sample=sample)


def show(store: Store, sample: str | None) -> None:
    """Who leads, every detector in a table, the baselines below it, and those that could score nothing."""
    board = load(store, sample)
    if not board.n:
        st.markdown("**No labels yet.** A scoreboard needs traces labelled hallucinated and clean.")
        st.page_link(shell.page("label"), label="Label traces", icon=":material/check_box:")
        return
    first, *rest = scoreboard.sentences(board)
    st.markdown(f"**{plain(first)}**")
    if rest:
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in rest))
    _tables(board)
    _silent(board)


def _tables(board: step.Scoreboard) -> None:
    """Sortable, and all of it as a file."""
    lines = [line for line in board.lines if not line.baseline]
    baselines = [line for line in board.lines if line.baseline]
    if lines:
        tables.show_wide(ON_PAGE, lines, height=40 + 35 * min(len(lines), SEEN), key=TABLE)
    if baselines:
        st.caption("**Baselines.** What the wording of an answer, its length and which model gave it tell already:")
        tables.show_wide(ON_PAGE, baselines)
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        _explain(board)
        st.download_button(
            "Download CSV",
            as_csv(IN_FILES, board.lines),
            "scoreboard.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            type="tertiary",
        )


def _silent(board: step.Scoreboard) -> None:
    """Detectors that could score nothing, by reason."""
    reasons: dict[str, list[str]] = {}
    for name, why in scoreboard.silent(board).items():
        reasons.setdefault(why, []).append(title_of(name))
    if reasons:
        st.caption("Could score none of these labels: " + "; ".join(
            f"**{plain(listed(names, 9))}** ({plain(why, 200)})" for why, names in reasons.items()
        ) + ".")  # fmt: skip


def _explain(board: step.Scoreboard) -> None:
    """Which labels these are, and where precision and recall are measured."""
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
