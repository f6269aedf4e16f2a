"""The live thresholds as lines: one way to draw them on This week and on Watch, and the one read that they share."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.numbers import ago, count, labelled
from calibrate.report.sentences.watching import live as sentences
from calibrate.types import PointVerdict
from calibrate.workflow.releasing.history import read_release
from calibrate.workflow.watching import drift
from calibrate.workflow.watching.drift_report import DriftState, Report
from calibrate.workflow.watching.live import LiveThreshold
from calibrate.workflow.week.standing import UNRELEASED, Standing, look
from db import Store
from db.releases import Release
from pages import shell
from pages.components.text import plain, visible

DAYS = 30
# Shapes tell as much as colours: a mark stands beside its words and is never read alone.
_MARKS = {PointVerdict.HOLDS: "●", PointVerdict.NOT_SHOWN: "◐", PointVerdict.DO_NOT_RELEASE: "■"}
_MOVED = (DriftState.MOVED, DriftState.RECALIBRATE)
STYLE = """<style>
.ts-live {display: grid; gap: .15rem 1.25rem; align-items: start; font-size: .9375rem; line-height: 1.4}
.ts-live.week {grid-template-columns: 1.3fr .9fr 2.2fr 1.4fr 1.3fr; padding: .45rem 0;
  border-top: 1px solid rgba(138,143,152,.28)}
.ts-live.watch {grid-template-columns: 1.2fr .9fr 1.7fr 1.1fr 1.4fr 1.1fr}
.ts-live > div {min-width: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums}
.ts-live small {display: block; font-size: .8125rem; opacity: .8}
.ts-live b {font-weight: 600}
.ts-live .why {grid-column: 1 / -1; font-size: .875rem}
.ts-live .bad {color: #D55E00}
.ts-spark {display: flex; align-items: flex-end; gap: 1px; height: 1.4rem; max-width: 9rem}
.ts-spark i {flex: 1; min-height: 1px; background: currentColor; opacity: .55}
@media (max-width: 900px) {.ts-live.week, .ts-live.watch {grid-template-columns: 1fr 1fr; gap: .5rem 1rem}}
</style>"""


def standing(store: Store) -> Standing:
    """Where every live threshold stands, read once for all sessions."""
    return _standing(store, day=shell.now().date()) if store.releases.list(limit=1) else UNRELEASED


@shell.cached_read(
    "Comparing the traffic since the release with the window before …",
    "traces", "samples", "scores", "releases", "team", entries=20,
)  # fmt: skip
def report(store: Store) -> Report:
    """The drift report on the live release."""
    return drift.drift(store, now=shell.now())


@shell.cached_read(
    "Looking at the live thresholds …", *shell.EVIDENCE, "points", "releases", "rechecks", "decisions", "team"
)
def _standing(store: Store, day: date) -> Standing:
    return look(store, now=shell.now(), report=report(store))


def show_release(release: Release, now: datetime) -> None:
    """Which release is live, in one line."""
    data = read_release(release).data
    from_labels = f"Released {ago(release.released_at, now)} by {plain(release.released_by, 60)}, from "
    note = f" · {plain(release.note, 120)}" if release.note else ""
    st.markdown(f"**Live: v{release.version}** :gray[:small[{from_labels}{labelled(data.n, data.positives)}{note}]]")


def show_lines(rows: Sequence[LiveThreshold], now: datetime) -> None:
    """A line for each live threshold: promised, known now, flags a day, last checked."""
    if not rows:
        st.caption("Nothing of it may flag: every tier is off.")
        return
    st.html(STYLE + "".join(_line(row, now) for row in rows))


def _line(row: LiveThreshold, now: datetime) -> str:
    cells = (_name(row), _promised(row), _precision(row), _flags(row), _checked(row, now))
    against = sentences.against(row)
    why = f'<div class="why bad">{_text(against)}</div>' if against else ""
    name = _text(title_of(row.name))
    return f'<div class="ts-live week" role="group" aria-label="{name}">{"".join(cells)}{why}</div>'


def watched(row: LiveThreshold, now: datetime) -> str:
    """A row of Watch: promise, estimate, drift, models, last checked, and why something is due."""
    cells = (_name(row), _promised(row), _precision(row), _drift(row), _models(row), _checked(row, now))
    due = sentences.why(row)
    bad = " bad" if sentences.against(row) else ""
    why = f'<div class="why{bad}">{_text(due)}</div>' if due else ""
    return f'{STYLE}<div class="ts-live watch">{"".join(cells)}{why}</div>'


def _cell(heading: str, value: str, *more: str) -> str:
    rest = "".join(f"<small>{line}</small>" for line in more if line)
    return f"<div><small>{heading}</small>{value}{rest}</div>"


def _name(row: LiveThreshold) -> str:
    kind = "ensemble" if row.ensemble else f"{row.name} {row.limit}"
    state = sentences.state(row)
    doubted = bool(sentences.unshown_models(row))
    mark = f"{'▲' if doubted else _MARKS[row.judged.state.verdict]} {_text(state)}" if row.judged else ""
    name = _text(title_of(row.name))
    return f'<div title="{_text(kind)}"><small>{_text(row.tier)}</small><b>{name}</b><small>{mark}</small></div>'


def _promised(row: LiveThreshold) -> str:
    return _cell("Promised precision", _text(sentences.promised(row)))


def _precision(row: LiveThreshold) -> str:
    return _cell(
        "Known now", f"<b>{_text(sentences.precision(row))}</b>", _text(sentences.precision_from(row.estimate))
    )


def _flags(row: LiveThreshold) -> str:
    return _cell("Flags a day", _sparkline(row.flags), _text(sentences.flags(row)))


def _drift(row: LiveThreshold) -> str:
    mark = "▲" if row.drift in _MOVED else "●" if row.drift == DriftState.HOLDS else "○"
    return _cell("Scores", f"{mark} {_text(sentences.drift(row))}", _text(sentences.drift_from(row)))


def _models(row: LiveThreshold) -> str:
    return _cell("Models seen", _text(sentences.models(row)), _text(sentences.models_from(row)))


def _checked(row: LiveThreshold, now: datetime) -> str:
    return _cell("Last checked", _text(sentences.checked(row, now)))


def _sparkline(flags: Mapping[str, int]) -> str:
    """Thirty bars up to the last day that was decided; its numbers are read out, and shown when pointed at."""
    if not any(flags.values()):
        return ""
    last = date.fromisoformat(max(flags))
    days = [(last - timedelta(days=back)).isoformat() for back in range(DAYS - 1, -1, -1)]
    counts = [flags.get(day, 0) for day in days]
    most = max(counts)
    bars = "".join(f'<i style="height:{round(100 * n / most)}%"></i>' for n in counts)
    words = f"up to {count(most)} a day, {count(counts[-1])} on the last"
    return f'<div class="ts-spark" role="img" aria-label="{words}" title="{words}">{bars}</div>'


def _text(text: str) -> str:
    """Escaped: names of models come from traces, reasons from people."""
    return html.escape(visible(text, 700))
