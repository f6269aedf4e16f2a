"""Questions about operating points and releases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, func, insert, select

from calibrate.types import Guarantee, Interval, OperatingPoint, Unmet, UnmetReason, merged_name
from db.chosen import SavedEnsemble
from db.engine import MOST, Aggregate, serialise, writing
from db.tables import EnsembleRow, PointRow, ReleaseRow, SampleRow, table


@dataclass(frozen=True, slots=True)
class PointData:
    """The labels that an operating point was measured on.

    `samples` are the names of the samples they belong to, none for every label there was; `design` is theirs, and the
    window (`since`, `until`) what they were drawn from. `labels` are (content hash, verdict). `probability_map` is the
    document of the detector's map, where one was kept with the point.
    """

    samples: tuple[str, ...]
    design: str | None
    label_set_digest: str
    n: int
    positives: int
    since: datetime | None
    until: datetime | None
    models: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    probability_map: Mapping[str, Any] | None = None

    @property
    def sample(self) -> str | None:
        """The samples as people name them; None for every label there was."""
        return merged_name(self.samples) if self.samples else None

    def to_json(self) -> dict[str, Any]:
        document = {
            "samples": list(self.samples),
            "design": self.design,
            "label_set_digest": self.label_set_digest,
            "n": self.n,
            "positives": self.positives,
            "window": [time and time.isoformat() for time in (self.since, self.until)],
            "models": list(self.models),
            "labels": [list(label) for label in self.labels],
        }
        return document if self.probability_map is None else {**document, "probability_map": dict(self.probability_map)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], known: Container[str]) -> PointData:
        """`known` are the samples of the store, for `sample_names`."""
        since, until = (text and datetime.fromisoformat(text) for text in document["window"])
        return cls(
            samples=sample_names(document, known),
            design=document["design"],
            label_set_digest=document["label_set_digest"],
            n=document["n"],
            positives=document["positives"],
            since=since,
            until=until,
            models=tuple(document["models"]),
            labels=tuple((content, verdict) for content, verdict in document["labels"]),
            probability_map=document.get("probability_map"),
        )


def sample_names(document: Mapping[str, Any], known: Container[str]) -> tuple[str, ...]:
    """The samples that a saved point or ensemble was measured on. Old documents hold no list: they name several samples
    as "W46 + W47", where no sample is called just that."""
    if "samples" in document:
        return tuple(document["samples"])
    name: str | None = document["sample"]
    if not name:
        return ()
    return (name,) if name in known else tuple(name.split(" + "))


@dataclass(frozen=True, slots=True)
class SavedPoint:
    """A chosen operating point, and what it was measured on. `id` is 0 for one that is not stored."""

    id: int
    detector: str
    config_id: int
    sample_id: int | None
    point: OperatingPoint
    data: PointData
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


class Points(Aggregate):
    def save(self, saved: SavedPoint) -> None:
        """Keeps a point as the latest of its detector, under a new id."""
        with writing(self._engine) as connection:
            connection.execute(insert(PointRow), [_point_row(saved)])

    def latest(self) -> dict[str, SavedPoint]:
        """The newest saved point of each detector."""
        newest = select(func.max(PointRow.id)).group_by(PointRow.detector)
        query = select(table(PointRow)).where(PointRow.id.in_(newest)).order_by(PointRow.detector)
        with self._reading() as connection:
            return {saved.detector: saved for saved in _points(connection, query)}

    def of(self, detector: str, *, until: datetime) -> list[SavedPoint]:
        """Every point of a detector that was chosen by then, newest first."""
        query = select(table(PointRow)).where(PointRow.detector == detector, PointRow.chosen_at <= until)
        with self._reading() as connection:
            return _points(connection, query.order_by(PointRow.id.desc()))


def _points(connection: Connection, query: Select[Any]) -> list[SavedPoint]:
    known = set(connection.scalars(select(SampleRow.name)))
    return [
        SavedPoint(**{**row, "point": _point_of(row["point"]), "data": PointData.from_json(row["data"], known)})
        for row in connection.execute(query).mappings()
    ]


def _point_of(document: Mapping[str, Any]) -> OperatingPoint:
    figures = {name: Interval(**document[name]) for name in ("precision", "recall", "fpr", "flag_rate")}
    sure = document.get("guarantee")  # points saved before there were guarantees have none
    why = _why_of(document.get("why"), feasible=document["feasible"])
    return OperatingPoint(**{**document, **figures, "why": why, "guarantee": Guarantee(**sure) if sure else None})


def _why_of(document: Mapping[str, Any] | str | None, *, feasible: bool) -> Unmet | None:
    """Read why a point meets no policy; older points hold a sentence, also some that meet theirs."""
    if feasible or document is None:
        return None
    if isinstance(document, str):
        return Unmet(UnmetReason.POLICY)
    return Unmet(**{**document, "reason": UnmetReason(document["reason"])})


def _point_row(saved: SavedPoint) -> dict[str, Any]:
    columns = ("detector", "config_id", "sample_id", "chosen_by", "chosen_at")
    row = {name: getattr(saved, name) for name in columns}
    return {**row, "point": asdict(saved.point), "data": saved.data.to_json()}


def save_again(connection: Connection, saved: SavedPoint | SavedEnsemble) -> None:
    """Makes a saved point or ensemble the latest, within the caller's transaction: chosen by whom and when it was."""
    if isinstance(saved, SavedPoint):
        connection.execute(insert(PointRow), [_point_row(saved)])
    else:
        row = {name: value for name, value in asdict(saved).items() if name != "id"}
        connection.execute(insert(EnsembleRow), [row])


class Releases(Aggregate):
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
        with self._reading() as connection:
            query = select(table(ReleaseRow)).where(ReleaseRow.version == version)
            row = connection.execute(query).mappings().one_or_none()
        return Release(**row) if row else None

    def count(self) -> int:
        with self._reading() as connection:
            return connection.scalar(select(func.count()).select_from(ReleaseRow)) or 0

    def list(self, limit: int | None = None) -> list[Release]:
        """Newest first."""
        with self._reading() as connection:
            query = select(table(ReleaseRow)).order_by(ReleaseRow.version.desc()).limit(limit)
            return [Release(**row) for row in connection.execute(query).mappings()]
