"""Runs of detectors: queue one, claim it, store its progress, ask it to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import select, update

from db.engine import MOST, Aggregate, insert_row
from db.tables import RunRow, table

RunStatus = Literal["queued", "running", "done", "incomplete", "stopped", "failed"]
ENDED: tuple[RunStatus, ...] = (
    "done",
    "incomplete",
)  # it went over all its traces; incomplete: a detector failed on each
STALE = timedelta(seconds=120)  # a running run whose worker has not been heard of for so long is free again


@dataclass(frozen=True, slots=True)
class Run:
    """A run of detectors over traces. `counts` is {detector: {scored, abstained, failed, reused, seconds, why, …}}.
    It is incomplete where a detector failed on every trace."""

    id: int
    status: RunStatus
    detectors: Sequence[Mapping[str, Any]]
    scope: Mapping[str, Any]
    options: Mapping[str, Any] | None
    total: int
    done: int
    counts: Mapping[str, Any]
    stop_requested: bool
    worker: str | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    heartbeat_at: datetime | None
    finished_at: datetime | None


COLUMNS = table(RunRow)


class Runs(Aggregate):
    def queue(
        self,
        detectors: Sequence[Mapping[str, Any]],
        scope: Mapping[str, Any],
        *,
        options: Mapping[str, Any] | None = None,
        now: datetime,
    ) -> Run:
        """`options`: {"budget": US dollars the run may spend, "again": "failed" for only what failed before,
        "engine", "workers", "address": where it executes}."""
        row = {
            "status": "queued",
            "detectors": [dict(d) for d in detectors],
            "scope": dict(scope),
            "options": dict(options) if options else None,
            "total": 0,
            "done": 0,
            "counts": {},
            "stop_requested": False,
            "created_at": now,
        }
        with self._writing() as connection:
            run_id = insert_row(connection, RunRow, row)
        return self.get(run_id)

    def claim(self, worker: str, *, now: datetime, run_id: int | None = None) -> Run | None:
        """Give this worker the oldest run that waits or whose worker died; None when there is none."""
        free = sa.or_(RunRow.status == "queued", sa.and_(RunRow.status == "running", RunRow.heartbeat_at < now - STALE))
        where = (free, *([RunRow.id == run_id] if run_id is not None else []))
        candidate = select(RunRow.id).where(*where).order_by(RunRow.id).limit(1)
        if self._scalar(candidate) is None:  # a worker that looks every other second takes no write lock
            return None
        with self._writing() as connection:
            key = connection.scalar(candidate.with_for_update(skip_locked=True))
            if key is None:
                return None
            claimed = {"status": "running", "worker": worker, "heartbeat_at": now, "error": None}
            started = sa.func.coalesce(RunRow.started_at, sa.literal(now, table(RunRow).c.started_at.type))
            connection.execute(update(RunRow).where(RunRow.id == key).values(**claimed, started_at=started))
        return self.get(key)

    def progress(
        self, run_id: int, worker: str, *, total: int, done: int, counts: Mapping[str, Any], now: datetime
    ) -> bool:
        """Store the progress of a run. False when it should end: somebody pressed Stop, or it has another worker."""
        mine = (RunRow.id == run_id, RunRow.worker == worker)
        with self._writing() as connection:
            connection.execute(
                update(RunRow).where(*mine).values(total=total, done=done, counts=dict(counts), heartbeat_at=now)
            )
            stop = connection.scalar(select(RunRow.stop_requested).where(*mine, RunRow.status == "running"))
        return stop is False

    def is_wanted(self, run_id: int, worker: str) -> bool:
        """Whether this worker still carries out the run, and nobody has asked it to stop."""
        mine = (RunRow.id == run_id, RunRow.worker == worker, RunRow.status == "running")
        return self._scalar(select(RunRow.stop_requested).where(*mine)) is False

    def finish(self, run_id: int, worker: str, status: RunStatus, *, now: datetime, error: str | None = None) -> None:
        values = {"status": status, "finished_at": now, "heartbeat_at": now, "error": error}
        self._execute(update(RunRow).where(RunRow.id == run_id, RunRow.worker == worker).values(values))

    def beat(self, run_id: int, worker: str, *, now: datetime) -> None:
        """Notes that the run's worker is alive, however long its batch takes."""
        mine = (RunRow.id == run_id, RunRow.worker == worker, RunRow.status == "running")
        self._execute(update(RunRow).where(*mine).values(heartbeat_at=now))

    def requeue(self, run_id: int, worker: str, *, now: datetime) -> None:
        """Gives a run back whose worker is gone, or ends it where somebody had asked for that."""
        mine = (RunRow.id == run_id, RunRow.worker == worker, RunRow.status == "running")
        with self._writing() as connection:
            ended = update(RunRow).where(*mine, RunRow.stop_requested)
            connection.execute(ended.values(status="stopped", finished_at=now))
            connection.execute(update(RunRow).where(*mine).values(status="queued", worker=None))

    def stop(self, run_id: int, *, now: datetime) -> None:
        """Asks a running run to stop after its batch; stops one that waits, or whose worker is gone, at once."""
        gone = sa.or_(RunRow.status == "queued", RunRow.heartbeat_at < now - STALE)
        with self._writing() as connection:
            at_once = update(RunRow).where(RunRow.id == run_id, gone, RunRow.finished_at.is_(None))
            connection.execute(at_once.values(status="stopped", finished_at=now))
            connection.execute(update(RunRow).where(RunRow.id == run_id).values(stop_requested=True))

    def get(self, run_id: int) -> Run:
        [run] = self._records(Run, select(COLUMNS).where(RunRow.id == run_id))
        return run

    def find(self, run_id: int) -> Run | None:
        if not 0 < run_id <= MOST:
            return None
        return next(iter(self._records(Run, select(COLUMNS).where(RunRow.id == run_id))), None)

    def recent(self, limit: int = 20) -> list[Run]:
        """Newest first."""
        return self._records(Run, select(COLUMNS).order_by(RunRow.id.desc()).limit(limit))
