"""The table of detectors in groups: ready, with imported scores, what the traces lack, what needs setup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from calibrate.report.sentences.detection import readiness as sentences
from calibrate.report.sentences.detection import worth as worth_sentences
from calibrate.workflow.detection.readiness import Group, Readiness, by_cause, by_field
from calibrate.workflow.tuning.worth import Measured, Worth, measure_worth, ranked
from db import Store
from db.runs import Run
from pages import shell
from pages.components.run_view import retry, show_detector
from pages.components.text import label, plain, spoken
from pages.detect import imported_scores, sheet

CHOSEN = "detect_chosen"  # {detector: whether it is ticked}, of those that somebody ticked or unticked
HEADS = ("Detector", "Can score", "Time", "Cost", "Scores", "")
ROW = "[class*=st-key-detect-row-]"
STYLE = f"""<style>
{ROW}, .st-key-detect-heads {{
  display: grid; grid-template-columns: minmax(11rem, 1.5fr) 9rem 7rem 4.5rem minmax(12rem, 2.2fr) 2.75rem;
  align-items: center; column-gap: 1rem; row-gap: 0; border-top: 1px solid rgba(138,143,152,.22); padding: .1rem 0}}
.st-key-detect-heads {{border-top: 0}}
{ROW} > *, .st-key-detect-heads > * {{min-width: 0; width: auto !important}}
{ROW} > :nth-child(n+2):nth-child(-n+4), .st-key-detect-heads > :nth-child(n+2):nth-child(-n+4) {{
  text-align: right; font-variant-numeric: tabular-nums}}
{ROW} :is([data-testid=stMarkdownContainer], [data-testid=stCaptionContainer]),
:is([class*=st-key-detect-cause-], [class*=st-key-detect-rank-]) [data-testid=stMarkdownContainer] {{
  margin-bottom: 0 !important}}
:is({ROW}, [class*=st-key-detect-cause-]) p {{margin: 0; font-size: .875rem}}
[class*=st-key-detect-rank-] {{padding: .7rem 0 .3rem; border-top: 1px solid rgba(138,143,152,.22)}}
[class*=st-key-detect-rank-] p {{margin: 0; font-size: .875rem}}
[class*=st-key-detect-cause-] {{padding: .35rem 0 .1rem; border-top: 1px solid rgba(138,143,152,.22)}}
[class*=st-key-detect-cause-] [data-testid=stPageLink-NavLink] {{padding: 0}}
[class*=st-key-detect-cause-] [data-testid=stPageLink-NavLink] [data-testid=stIconMaterial] {{display: none}}
[class*=st-key-detect-cause-] [data-testid=stPageLink-NavLink] p {{font-size: .875rem; text-decoration: underline;
  text-decoration-thickness: 1px; text-underline-offset: 3px}}
{ROW} button {{min-height: 2rem; padding: .1rem .5rem}}
[class*=st-key-detect_sheet_] button [data-testid=stMarkdownContainer] {{
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)}}
[class*=st-key-detect-row-failed-] {{box-shadow: inset 3px 0 #D55E00; padding-left: .6rem}}
@media (max-width: 900px) {{
.st-key-detect-heads {{display: none}}
{ROW} {{grid-template-columns: auto auto 1fr 2.75rem; padding: .4rem 0}}
{ROW} > :nth-child(1) {{grid-area: 1 / 1 / 2 / 4}}
{ROW} > :nth-child(6) {{grid-area: 1 / 4 / 2 / 5}}
{ROW} > :nth-child(2), {ROW} > :nth-child(3), {ROW} > :nth-child(4) {{grid-row: 2; text-align: left}}
{ROW} > :nth-child(5) {{grid-area: 2 / 3 / 3 / 5}}
:is([class*=st-key-detect-row-failed-], [class*=st-key-detect-row-going-]) > :nth-child(5) {{grid-area: 3 / 1 / 4 / 5}}
}}
@media (pointer: coarse) {{ {ROW} button, {ROW} label {{min-height: 44px; min-width: 44px}} }}
</style>"""


def ready(rows: Sequence[Readiness]) -> list[Readiness]:
    return [row for row in rows if row.group == Group.READY]


def chosen(rows: Sequence[Readiness]) -> list[Readiness]:
    """The ticked rows: what somebody ticked, else those that a run is due for."""
    ticked: Mapping[str, bool] = st.session_state.get(CHOSEN, {})
    return [row for row in ready(rows) if ticked.get(row.detector.name, row.is_due)]


def tick(names: Sequence[str], on: bool) -> None:
    st.session_state.setdefault(CHOSEN, {}).update(dict.fromkeys(names, on))


def forget() -> None:
    """Once a run is queued, what is due next is ticked again."""
    st.session_state.pop(CHOSEN, None)


def show(store: Store, rows: Sequence[Readiness], run: Run | None = None) -> None:
    """All three groups. While a run is going, its rows show how far it is with each."""
    st.html(STYLE)
    names = [row.detector.name for row in ready(rows)]
    with st.container(horizontal=True, vertical_alignment="center"):
        _heading(Group.READY, len(names))
        st.button("All", type="tertiary", disabled=run is not None, on_click=tick, args=(names, True))
        st.button("None", type="tertiary", disabled=run is not None, on_click=tick, args=(names, False))
    shown: Worth | None = None
    if ready(rows):
        st.caption(worth_sentences.ORDER)
    if able := ready(rows):
        ticked = {row.detector.name for row in chosen(rows)}
        going = {spec["name"] for spec in run.detectors} if run else set()
        with st.container(gap=None):
            with st.container(key="detect-heads"):
                for word in HEADS:
                    st.caption(word)
            measured = _measured(store)
            by_name = {row.detector.name: row for row in able}
            for worth, row in [
                (worth, by_name[name]) for worth, members in ranked(by_name, measured).items() for name in members
            ]:
                if worth != shown:
                    shown = worth
                    _rank(worth)
                on = row.detector.name in (going if run else ticked)
                _row(
                    store,
                    row,
                    run if row.detector.name in going else None,
                    measured.get(row.detector.name, Measured()),
                    on=on,
                    locked=run is not None,
                )
    else:
        st.caption("No detector can run on these traces as they are.")
    if run is None:
        imported_scores.show(store, rows)
    if fields := by_field(rows):
        _heading(Group.LACKS, sum(map(len, fields.values())))
        for name, waiting in fields.items():
            _lack(name, waiting)
    if causes := by_cause(rows):
        _heading(Group.SETUP, sum(map(len, causes.values())))
        for place, (cause, waiting) in enumerate(causes.items()):
            with st.container(key=f"detect-cause-setup-{place}", gap=None):
                st.markdown(spoken(sentences.setup(cause), 800))
                _names(waiting)


def _heading(group: Group, n: int) -> None:
    st.markdown(f"**{sentences.HEADINGS[group]}** &ensp; :gray[{n}]", width="content")


@shell.cached_read("Comparing with the baselines …", *shell.EVIDENCE, "points", entries=20)
def _measured(store: Store) -> Mapping[str, Measured]:
    return measure_worth(store)


def _rank(worth: Worth) -> None:
    with st.container(key=f"detect-rank-{worth}"):
        st.markdown(f"{worth_sentences.heading(worth)} :gray[· {worth_sentences.MEANS[worth]}]")


def _row(store: Store, row: Readiness, run: Run | None, measured: Measured, *, on: bool, locked: bool) -> None:
    detector, failed = row.detector, run is None and row.failure is not None
    kind = "failed-" if failed else "going-" if run else ""
    with st.container(key=f"detect-row-{kind}{detector.name}"):
        key = f"detect_on_{detector.name}"
        st.session_state[key] = on
        st.checkbox(label(detector.title, 60), key=key, disabled=locked, on_change=_keep, args=(detector.name,))
        st.markdown(sentences.can_score(row))
        st.markdown(sentences.time(row))
        st.markdown(sentences.cost(row))
        if run is not None:
            show_detector(run, detector.name)
        elif failed:
            _failed(store, row, locked=locked)
        else:
            st.caption(plain(sentences.standing(row)))
        st.button(
            f"Settings of {label(detector.title, 60)}",
            icon=":material/tune:",
            type="tertiary",
            key=f"detect_sheet_{detector.name}",
            help=f"Settings and details of {label(detector.name, 60)}. "
            f"{worth_sentences.heading(measured.worth)}: {plain(worth_sentences.because(measured))}",
            disabled=locked,
            on_click=sheet.ask,
            args=(detector.name,),
        )


def _failed(store: Store, row: Readiness, *, locked: bool) -> None:
    with st.container(horizontal=True, wrap=False, vertical_alignment="center", gap="small"):
        st.markdown(f":material/error: {plain(sentences.failed(row), 400)}", width="stretch")
        failed_run = store.runs.find(row.run or 0)
        if failed_run is not None:
            name = row.detector.name
            st.button("Retry", key=f"detect_retry_{name}", icon=":material/replay:", disabled=locked, on_click=retry,
                      args=(store, failed_run, name))  # fmt: skip


def _keep(name: str) -> None:
    tick([name], bool(st.session_state[f"detect_on_{name}"]))


def _lack(name: str, rows: Sequence[Readiness]) -> None:
    with st.container(key=f"detect-cause-{name or 'other'}", gap=None):
        with st.container(horizontal=True, vertical_alignment="center"):
            words = sentences.lacking(name, rows)
            st.markdown(
                f"**{plain(words[:1].upper() + words[1:], 300)}.** {sentences.how_to_log(name)}", width="stretch"
            )
            if name:
                with st.popover("How to log it", type="tertiary"):
                    st.markdown("In the record of a trace:")
                    st.code(sentences.EXAMPLES[name], language=None, wrap_lines=True)
                    st.caption(f"More in {sentences.DOCUMENT}.")
        _names(rows)


def _names(rows: Sequence[Readiness]) -> None:
    """The detectors that wait, each with the way to its page."""
    with st.container(horizontal=True, gap="small"):
        for row in rows:
            detector = row.detector
            st.page_link(
                shell.page("detectors"),
                label=label(detector.title, 60),
                query_params={"detector": detector.name},
                help=label(detector.name, 60),
            )
