"""Where the live release stands: its thresholds with all that is known of each. Pages and verbs take it from here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from calibrate.thresholds.states import Judged
from calibrate.workflow.releasing import known_bad
from calibrate.workflow.releasing.entries import points_of
from calibrate.workflow.releasing.history import read_release
from calibrate.workflow.upgrade import planning
from calibrate.workflow.watching import drift
from calibrate.workflow.watching.drift_report import Report
from calibrate.workflow.watching.live import LiveThreshold, live_thresholds
from db import Store


@dataclass(frozen=True)
class Standing:
    """The live thresholds, the one that needs most first, and the drift report that their rows are made from; `report`
    and `version` are None before the first release."""

    version: int | None = None
    thresholds: tuple[LiveThreshold, ...] = ()
    report: Report | None = None

    @property
    def known_bad(self) -> tuple[Judged, ...]:
        """What is known against the thresholds and ensembles that are known to be bad."""
        judged = (row.judged for row in self.thresholds)
        return tuple(each for each in judged if each is not None and each.state.known_bad)


UNRELEASED = Standing()


def look(store: Store, *, now: datetime, report: Report | None = None) -> Standing:
    """Find out where every live threshold stands. Computes no score and writes nothing. `report`: `drift.drift`, where
    the caller has it."""
    release = next(iter(store.releases.list(limit=1)), None)
    if release is None:
        return UNRELEASED
    report = report or drift.drift(store, now=now)
    changes = planning.find_changes(store, read_release(release))
    thresholds = live_thresholds(store, judged=judge_live(store), report=report, changes=changes, now=now)
    return Standing(release.version, thresholds, report)


def judge_live(store: Store) -> tuple[Judged, ...]:
    """What is known now of every threshold and ensemble of the live release that may flag."""
    release = next(iter(store.releases.list(limit=1)), None)
    if release is None:
        return ()
    file = read_release(release)
    return tuple(known_bad.judge_live(store, file, points_of(store, file, until=release.released_at)))
