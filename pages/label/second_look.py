"""The labels that the detectors doubt most, on the labelling surface: whoever looks again decides."""

from __future__ import annotations

import streamlit as st

from calibrate.errors import BadInput
from calibrate.report.numbers import number
from calibrate.report.sentences.labelling import agreement as sentences
from calibrate.workflow.labelling import agreement as step
from db import Store
from pages import shell
from pages.components.labelling import label_surface, trace_card
from pages.components.text import plain, visible

MOST = 10
CARD_HEIGHT = "24rem"
AT_HAND = "second_look"  # in the session: the sample's name and what is looked at, until all of it is decided


@shell.cached_read("Fitting the detectors together…", *shell.EVIDENCE, entries=20)
def _doubted(store: Store, sample: str | None) -> step.SecondLook:
    return step.second_look(store, sample, limit=MOST)


@shell.cached_read("Reading the traces…", *shell.EVIDENCE, entries=20)
def _read(store: Store, keys: tuple[int, ...], _doubted: step.SecondLook) -> tuple[step.Doubted, ...]:
    return step.read_doubts(store, _doubted)


def show(store: Store, report: step.AgreementReport) -> None:
    """The doubted labels one by one, and below them why."""
    name = report.sample.name if report.sample else None
    try:
        if st.session_state.get(AT_HAND, (None, None))[:2] != (store.name, name):
            st.session_state[AT_HAND] = (store.name, name, _doubted(store, name))
    except BadInput as error:
        with st.container(border=True):
            st.markdown("**No second look yet.** Here you would see the labels that the detectors doubt most.")
            st.text(str(error))
            st.page_link(shell.page("detect"), label="Run detectors", icon=":material/play_circle:")
        return
    doubted: step.SecondLook = st.session_state[AT_HAND][2]
    if not doubted.suspects:
        st.caption(plain(sentences.second_look(doubted)) + " Adjudicated traces are left out.")
        st.markdown("**Every label has been looked at twice.**")
        del st.session_state[AT_HAND]
        return
    keys = tuple(suspect.row.pk for suspect in doubted.suspects)
    if label_surface.show(store, label_surface.Disputes(report.sample, keys)) == "over":
        del st.session_state[AT_HAND]
        st.rerun()
    with st.expander("Why these", icon=":material/query_stats:"):
        st.caption(plain(sentences.second_look(doubted)) + " Adjudicated traces are left out.")
        st.dataframe(
            [_cells(suspect) for suspect in doubted.suspects],
            hide_index=True,
            column_config=_COLUMNS,
            height=40 + 35 * len(keys),
        )
        trace_card.show_list(
            [
                trace_card.Shown(
                    doubt.trace,
                    doubt.evidence,
                    trace_card.Heading(
                        number(doubt.value), sentences.against(doubt.detector, doubt.suspect.row.gold or ""), "alarm"
                    ),
                    blind=True,
                )
                for doubt in _read(store, keys, doubted)
            ],
            height=CARD_HEIGHT,
            key="second-look-cards",
        )


def _cells(suspect: step.Suspect) -> dict[str, object]:
    return {
        "Trace": visible(suspect.row.trace_id, 60),
        "Gold": suspect.row.gold,
        "P(hallucinated)": round(suspect.doubt.probability, 2),
        "Against the label": visible("; ".join(sentences.doubts(suspect)) or "nothing single", 600),
    }


_COLUMNS = {
    "Trace": st.column_config.TextColumn(width=300),  # a UUID is seen whole
    "Gold": st.column_config.TextColumn(width=95),
    "P(hallucinated)": st.column_config.NumberColumn(
        format="percent", width=115, help="By all detectors together, fitted without this trace"
    ),
    "Against the label": st.column_config.TextColumn(width=490),
}
