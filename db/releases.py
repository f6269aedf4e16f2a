"""Questions about operating points and releases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, func, insert, select

from db.chosen import SavedEnsemble
from db.engine import serialise, writing
from db.tables import EnsembleRow, PointRow, ReleaseRow, table

MOST = 2**31 - 1  # what a database counts to; to ask for more is an error there


@dataclass(frozen=True, slots=True)
class SavedPoint:
    """A chosen operating point: `point` as calibrate.types.OperatingPoint's fields, `data` what it was measured on."""

    id: int
    detector: str
    config_id: int
    sample_id: int | None
    point: Mapping[str, Any]
    data: Mapping[str, Any]
    chosen_by: str
    chosen_at: datetime


@dataclass(frozen=True, slots=True)
class Release:
    """One numbered, immutable version of the thresholds file: `document` is its exact text."""

    version: int
    document: str
    sha256: str
    released_by: str
    released_at: datetime
    note: str


class Points:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def save(
        self,
        detector: str,
        *,
        config_id: int,
        sample_id: int | None,
        point: Mapping[str, Any],
        data: Mapping[str, Any],
        chosen_by: str,
        now: datetime,
    ) -> None:
        row = {
            "detector": detector,
            "config_id": config_id,
            "sample_id": sample_id,
            "point": dict(point),
            "data": dict(data),
            "chosen_by": chosen_by,
            "chosen_at": now,
        }
        with writing(self._engine) as connection:
            connection.execute(insert(PointRow), [row])

    def latest(self) -> dict[str, SavedPoint]:
        """The newest saved point of each detector."""
        newest = select(func.max(PointRow.id)).group_by(PointRow.detector)
        query = select(table(PointRow)).where(PointRow.id.in_(newest)).order_by(PointRow.detector)
        with self._engine.connect() as connection:
            return {row["detector"]: SavedPoint(**row) for row in connection.execute(query).mappings()}

    def of(self, detector: str, *, until: datetime) -> list[SavedPoint]:
        """Every point of a detector that was chosen by then, newest first."""
        query = select(table(PointRow)).where(PointRow.detector == detector, PointRow.chosen_at <= until)
        with self._engine.connect() as connection:
            rows = connection.execute(query.order_by(PointRow.id.desc())).mappings()
            return [SavedPoint(**row) for row in rows]


def save_again(connection: Connection, saved: SavedPoint | SavedEnsemble) -> None:
    """Makes a saved point or ensemble the latest, within the caller's transaction: chosen by whom and when it was."""
    row = PointRow if isinstance(saved, SavedPoint) else EnsembleRow
    connection.execute(insert(row), [{name: value for name, value in asdict(saved).items() if name != "id"}])


class Releases:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @contextmanager
    def adding(
        self,
        make: Callable[[int, str | None], str],
        *,
        by: str,
        note: str,
        now: datetime,
        settles: Callable[[Connection, int], None] | None = None,
    ) -> Iterator[Release]:
        """Keeps version n+1 as the body of the `with` ends well; an error in it keeps nothing.

        `make(version, previous document)` returns the document; it is called inside the transaction, so two releases
        at once get two numbers and each names the one it replaces. `settles(connection, version)` writes what is kept
        or not with the release.
        """
        with writing(self._engine) as connection:
            serialise(connection)
            newest = select(ReleaseRow.version, ReleaseRow.document).order_by(ReleaseRow.version.desc()).limit(1)
            row = connection.execute(newest).one_or_none()
            version = row.version + 1 if row else 1
            document = make(version, row.document if row else None)
            release = Release(version, document, hashlib.sha256(document.encode()).hexdigest(), by, now, note)
            columns = ("version", "document", "sha256", "released_by", "released_at", "note")
            connection.execute(insert(ReleaseRow), [{name: getattr(release, name) for name in columns}])
            if settles is not None:
                settles(connection, version)
            yield release

    def get(self, version: int) -> Release | None:
        if version > MOST:
            return None
        with self._engine.connect() as connection:
            query = select(table(ReleaseRow)).where(ReleaseRow.version == version)
            row = connection.execute(query).mappings().one_or_none()
        return Release(**row) if row else None

    def count(self) -> int:
        with self._engine.connect() as connection:
            return connection.scalar(select(func.count()).select_from(ReleaseRow)) or 0

    def list(self, limit: int | None = None) -> list[Release]:
        """Newest first."""
        with self._engine.connect() as connection:
            query = select(table(ReleaseRow)).order_by(ReleaseRow.version.desc()).limit(limit)
            return [Release(**row) for row in connection.execute(query).mappings()]
