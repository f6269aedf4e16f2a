"""A draw that is under way. It has a thread of its own, so that the page can show how far it is, and stop it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import streamlit as st

from calibrate.report.progress import Rate, line
from calibrate.types import Sample
from db.audit import acting_as, actor

SOON = 0.8  # seconds; most draws are over before a bar would help

Work = Callable[[Callable[[int, int], None]], Sample]


class _Stopped(Exception):
    """Somebody pressed Stop."""


class DrawJob:
    """Draws a sample; stopped, it draws none."""

    def __init__(self, work: Work) -> None:
        self.done = self.total = 0
        self.stopped = False
        self._work, self._actor = work, actor()
        self._rate, self._stop = Rate(), threading.Event()
        self._sample: Sample | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="draw", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def stop(self) -> None:
        self._stop.set()

    def sample(self) -> Sample | None:
        """What was drawn; None where it was stopped. Raises what went wrong."""
        if self._error is not None:
            raise self._error
        return self._sample

    def text(self) -> str:
        """How far it is: "Ranking 40,000 of 100,000 traces · 52,000/s · about 1 s left"."""
        if not self.total or self.done == self.total:
            return "Drawing …"
        return f"Ranking {line(self.done, self.total, self._rate.per_second(time.monotonic()), 'trace')}"

    def _run(self) -> None:
        with acting_as(self._actor):
            try:
                self._sample = self._work(self._on_progress)
            except _Stopped:
                self.stopped = True
            except Exception as error:
                self._error = error

    def _on_progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        self._rate.read(done, time.monotonic())
        if self._stop.is_set():
            raise _Stopped


@st.fragment(run_every=0.5)
def show_progress(job: DrawJob) -> None:
    """How far the draw is, and Stop; redraws the whole page once it is over."""
    if not job.running:
        st.rerun()
    with st.container(border=True):
        st.progress(min(1.0, job.done / job.total) if job.total else 0.0, text=job.text())
        st.button("Stop", icon=":material/stop:", key="draw_stop", on_click=job.stop)
