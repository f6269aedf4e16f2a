"""Runs: the progress of the current one, its result, and those before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import streamlit as st

from calibrate import registry, settings
from calibrate.detectors.base import Detector
from calibrate.engines.background import is_starting, log_path, start_worker
from calibrate.errors import UnknownDetector
from calibrate.report.names import title_of
from calibrate.report.numbers import about, ago, count, duration, listed
from calibrate.report.progress import Rate, line
from calibrate.report.sentences.detection import detection as sentences
from calibrate.workflow.detection.detect import free_dead, options_of
from calibrate.workflow.detection.outcomes import failures, retry_specs, state
from db import Store
from db.runs import ENDED, STALE, Run
from pages import shell
from pages.components.text import plain, visible

GRACE = timedelta(seconds=20)  # a worker needs this long to start, its imports included
QUIET = STALE / 2  # a worker is heard of twice as often, however long its batch takes
START_ONE = "All are busy, or none runs. This starts one, on any machine that reaches the store:"
WORDS = {
    "queued": "waiting",
    "running": "running",
    "done": "done",
    "incomplete": "incomplete",
    "stopped": "stopped",
    "failed": "failed",
}


def start(store: Store, run_id: int) -> None:
    """Start a worker process for the run, unless a pool of workers takes it. A second worker finds it claimed."""
    with shell.errors_kept("detect_problem"):
        if settings.runs_here():
            start_worker(store.url, run_id)


def queue(store: Store, detectors: Sequence[Detector], scope: Mapping[str, Any], budget: float | None) -> None:
    """Queue the run and start its worker, unless a run is going already: a second press changes nothing.

    `budget` is what its requests may cost, in US dollars.
    """
    specs = [{"name": detector.name, "params": registry.config_of(detector)} for detector in detectors]
    _queue(store, specs, scope, options_of(budget=budget))


def retry(store: Store, run: Run, name: str | None = None) -> None:
    """Queue the detectors that failed on every trace again, or the one of this name, over what they failed on, under
    the same budget; where one could not run at all, over every trace that has no score."""
    budget = (run.options or {}).get("budget")
    specs = [spec for spec in retry_specs(run) if name in (None, spec["name"])]
    names = {spec["name"] for spec in specs}
    again = not any(failure.unavailable for failure in failures(run) if failure.detector in names)
    _queue(store, specs, run.scope, options_of(budget=budget, again=again))


def _queue(
    store: Store, specs: Sequence[Mapping[str, Any]], scope: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    if any(is_going(run) for run in store.runs.recent(1)):
        return
    with shell.errors_kept("detect_problem"):
        start(store, store.runs.queue(specs, scope, options=options, now=shell.now()).id)


def show_problem() -> None:
    """Show once what went wrong when a run was to be started."""
    shell.show_kept_error("detect_problem")


def stop(store: Store, run_id: int) -> None:
    store.runs.stop(run_id, now=shell.now())


def is_going(run: Run) -> bool:
    return run.status in ("queued", "running")


@st.fragment(run_every=1)
def show_progress(store: Store, run_id: int) -> None:
    """Show the run, once a second until it is over; then redraw the whole page."""
    show_going(store, going(store, run_id))


def going(store: Store, run_id: int) -> Run:
    """The run as it is now; redraws the whole page once it is over."""
    free_dead(store)
    run = store.runs.get(run_id)
    if not is_going(run):
        st.rerun()
    return run


def show_going(store: Store, run: Run) -> None:
    """How far a run is, its rate and the time left, and the button that stops it."""
    now = shell.now()
    with st.container(border=True):
        st.markdown(f"**Run {run.id}** &ensp; {scope_text(run)}")
        if is_interrupted(store, run, now):
            _interrupted(store, run, now)
            return
        text = progress_text(run, now, rate_of(run, now))
        st.progress(min(1.0, run.done / run.total) if run.total else 0.0, text=text)
        stop_button(store, run)


def stop_button(store: Store, run: Run) -> None:
    """Ends the run after its batch; what it has scored is kept."""
    st.button(
        "Stopping …" if run.stop_requested else "Stop",
        icon=":material/stop:",
        disabled=run.stop_requested,
        on_click=stop,
        args=(store, run.id),
    )


def show_detector(run: Run, name: str) -> None:
    """How far a run is with one of its detectors."""
    tally = run.counts.get(name, {})
    done, total = tally.get("done", 0), tally.get("of", 0)
    text = line(done, total, None) if total else "waiting"
    if tally.get("seconds") and tally.get("scored"):
        text += f" · {about(tally['scored'] / tally['seconds'])}/s"
    st.progress(min(1.0, done / total) if total else 0.0, text=text)


def is_interrupted(store: Store, run: Run, now: datetime) -> bool:
    """True when nobody works on the run: its worker is gone, or none took it up."""
    if run.status == "running":
        return run.heartbeat_at is not None and now - run.heartbeat_at > STALE
    if run.status != "queued" or is_starting(store.url, run.id):
        return False
    if not settings.runs_here():
        return now - _waits_since(run) > GRACE
    return run.started_at is not None or now - run.created_at > GRACE


def _waits_since(run: Run) -> datetime:
    """When the run was queued, or its last worker was heard of."""
    return run.heartbeat_at or run.created_at


def scope_text(run: Run) -> str:
    if "sample" in run.scope:
        return f"sample {plain(run.scope['sample'], 60)}"
    return "all labelled traces" if run.scope.get("labelled") else "all traces"


def show_result(store: Store, run: Run) -> None:
    """What the run did, a row per detector, which failed on every trace or could not run, which scored nothing."""
    with st.container(border=True):
        title = f"**Run {run.id} {WORDS[state(run)]}** &ensp; {scope_text(run)}"
        seconds = _seconds_taken(run)
        st.markdown(title if seconds is None else f"{title}, in {duration(seconds)}")
        if run.error:
            st.text(visible(run.error, 2000))
        broken = failures(run)
        if broken:
            st.error("  \n".join(plain(sentences.failed(failure), 400) for failure in broken), icon=":material/error:")
            st.button(
                "Run again what failed", type="primary", icon=":material/replay:", on_click=retry, args=(store, run)
            )
        names = {failure.detector for failure in broken}
        silent = [line for name, tally in run.counts.items() if name not in names and (line := silence_of(name, tally))]
        if silent:
            st.caption("  \n".join(silent))
        if run.counts:
            st.dataframe(list(rows_of(run)), hide_index=True, column_config=_COLUMNS, height="content")


def show_outcome(run: Run) -> None:
    """The same in one line, for a page whose table says what came of each detector."""
    seconds = _seconds_taken(run)
    took = "" if seconds is None else f" in {duration(seconds)}"
    stopped = run.status == "stopped" and run.total
    stored = f": {count(run.done)} of {count(run.total, 'score')} are kept" if stopped else ""
    st.markdown(f"**Run {run.id} {WORDS[state(run)]}**{took}{stored} &ensp; :gray[{scope_text(run)}]", width="content")
    if run.error:
        st.text(visible(run.error, 2000))


def show_history(runs: list[Run], now: datetime) -> None:
    rows = []
    for run in runs:
        about = {"Run": run.id, "Started": ago(run.created_at, now), "Traces": _scope(run), "State": WORDS[state(run)]}
        rows += [{**about, **row} for row in rows_of(run)] or [{**about, "Detector": visible(run.error, 200)}]
    st.dataframe(rows, hide_index=True, column_config=_COLUMNS, height=min(38 + 35 * len(rows), 420))


_COLUMNS: dict[str, Any] = {
    "Run": st.column_config.NumberColumn(width=50),
    "Settings": st.column_config.TextColumn(width=150, help="What differs from the detector's defaults"),
    "Scored": st.column_config.NumberColumn(width=80),
    "Reused": st.column_config.NumberColumn(width=80, help="Scored before, with the same settings; not computed again"),
    "Abstained": st.column_config.NumberColumn(width=90),
    "Refusals": st.column_config.NumberColumn(width=80, help="Answers that decline to answer: nothing to judge"),
    "Failed": st.column_config.NumberColumn(width=80),
    "Seconds": st.column_config.NumberColumn(width=80, format="%.1f"),
    "Why": st.column_config.TextColumn(width="large"),
}


def rows_of(run: Run) -> Iterator[dict[str, Any]]:
    for name, tally in run.counts.items():
        why = tally.get("unavailable") or "; ".join(
            f"{reason} ({count(n)})" for reason, n in tally.get("why", {}).items()
        )
        yield {
            "Detector": title_of(name),
            "Settings": visible(_changed(run, name), 200),
            "Scored": tally["scored"],
            "Reused": tally["reused"],
            "Abstained": tally["abstained"],
            "Refusals": tally.get("refusals", 0),
            "Failed": tally["failed"],
            "Seconds": tally["seconds"],
            "Why": visible(why, 500),
        }


def _changed(run: Run, name: str) -> str:
    """The parameters of the run that differ from the detector's defaults."""
    params: Mapping[str, Any] = next((spec["params"] for spec in run.detectors if spec["name"] == name), {})
    try:
        usual = {parameter.name: parameter.default for parameter in registry.parameters(registry.get(name))}
    except UnknownDetector:
        usual = {}
    return ", ".join(f"{key}={value}" for key, value in params.items() if usual.get(key, ...) != value)


def silence_of(name: str, tally: Mapping[str, Any]) -> str | None:
    """A line for a detector that scored nothing: "ROUGE-L could score 0 of 300: no schema."."""
    missed = tally["abstained"] + tally["failed"] + tally.get("refusals", 0)
    total = missed + tally["scored"]
    if not total or tally["scored"] or tally["reused"]:
        return None
    why = plain(listed(list(tally["why"]), 2), 300)
    return f":material/info: {plain(title_of(name))} could score 0 of {count(total)}: {why}."


def _scope(run: Run) -> str:
    return visible(str(run.scope["sample"]), 60) if "sample" in run.scope else scope_text(run)


def _seconds_taken(run: Run) -> float | None:
    """None for a run that did not finish."""
    if run.status not in ENDED or run.finished_at is None or run.started_at is None:
        return None
    return (run.finished_at - run.started_at).total_seconds()


def progress_text(run: Run, now: datetime, rate: float | None = None) -> str:
    """How far a run is, given its rate in scores a second where that is known."""
    if run.status == "queued" and not settings.runs_here():
        return "Waiting for a worker …"
    if not run.total or run.status != "running":
        return "Starting a worker …"
    text = line(run.done, run.total, rate, "score")
    if run.heartbeat_at is not None and now - run.heartbeat_at > QUIET:
        text += f" · its worker was last heard of {ago(run.heartbeat_at, now)}"
    return text


def rate_of(run: Run, now: datetime) -> float | None:
    """The run's rate over the last seconds in which this session looked at it."""
    name = f"rate_of_run_{run.id}"
    rate: Rate = st.session_state.setdefault(name, Rate())
    rate.read(run.done, now.timestamp())
    return rate.per_second(now.timestamp())


def _interrupted(store: Store, run: Run, now: datetime) -> None:
    remaining = (
        f" {count(run.done)} of {count(run.total, 'score')} are kept; only the rest is computed." if run.total else ""
    )
    if not settings.runs_here():
        st.markdown(f":material/hourglass: **Waiting for a worker.** {waiting_text(run, now)}{remaining} {START_ONE}")
        st.code("python -m calibrate worker --wait", language="sh")
        st.button("Give up", on_click=stop, args=(store, run.id))
        return
    st.markdown(f":material/warning: **Interrupted.** No worker is on it.{remaining}")
    log = log_path(store.url, run.id)
    if log.is_file() and (last_lines := log.read_text(errors="replace").strip().splitlines()[-1:]):
        st.caption("The last the worker said:")
        st.text(visible(last_lines[0], 300))
    with st.container(horizontal=True):
        st.button("Resume", type="primary", icon=":material/play_arrow:", on_click=start, args=(store, run.id))
        st.button("Give up", on_click=stop, args=(store, run.id))


def waiting_text(run: Run, now: datetime) -> str:
    """Why a run waits for a pool of workers."""
    since = _waits_since(run)
    if run.status == "running":
        return f"The one that had it was last heard of {ago(since, now)}; the next that is free goes on with it."
    return f"None took it for {duration((now - since).total_seconds())}."
