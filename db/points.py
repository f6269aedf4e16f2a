"""Operating points and ensembles that somebody chose and saved; the newest of a name counts."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, func, insert, select

from calibrate.types import (
    BestSingle,
    Counted,
    Ensemble,
    EnsembleCut,
    EnsembleCuts,
    EnsembleData,
    EnsembleFigures,
    EnsembleMember,
    Guarantee,
    Interval,
    OperatingPoint,
    PointState,
    SavedEnsemble,
    Segments,
    SegmentThreshold,
    Shares,
    Unmet,
    UnmetReason,
    merged_name,
)
from db.audit import record as audit
from db.engine import Aggregate
from db.tables import EnsembleRow, PointRow, SampleRow, table


@dataclass(frozen=True, slots=True)
class PointData:
    """The labels that an operating point was measured on.

    `samples` are the names of the samples they belong to, none for every label there was; `design` is theirs, and the
    window (`since`, `until`) what they were drawn from. `labels` are (content hash, verdict). `probability_map` is the
    document of the detector's map, where one was saved with the point. `state` is what was known against the point when
    it was saved (None: an older store), and `reason` why it was saved all the same. `segments` have thresholds of their
    own; the point's is for all other traffic.
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
    state: PointState | None = None
    reason: str = ""
    segments: Segments | None = None

    @property
    def sample(self) -> str | None:
        """The samples as people name them; None for every label there was."""
        return merged_name(self.samples) if self.samples else None

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "samples": list(self.samples),
            "design": self.design,
            "label_set_digest": self.label_set_digest,
            "n": self.n,
            "positives": self.positives,
            "window": [time and time.isoformat() for time in (self.since, self.until)],
            "models": list(self.models),
            "labels": [list(label) for label in self.labels],
        }
        if self.probability_map is not None:
            document["probability_map"] = dict(self.probability_map)
        if self.state is not None:
            document["state"] = self.state.to_json()
        if self.reason:
            document["reason"] = self.reason
        if self.segments is not None:
            document["segments"] = asdict(self.segments)
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any], stored: Container[str]) -> PointData:
        """`stored`: the names of the samples that the store has, for `sample_names`."""
        since, until = (text and datetime.fromisoformat(text) for text in document["window"])
        return cls(
            samples=sample_names(document, stored),
            design=document["design"],
            label_set_digest=document["label_set_digest"],
            n=document["n"],
            positives=document["positives"],
            since=since,
            until=until,
            models=tuple(document["models"]),
            labels=tuple((content, verdict) for content, verdict in document["labels"]),
            probability_map=document.get("probability_map"),
            state=PointState.from_json(document["state"]) if "state" in document else None,
            reason=document.get("reason", ""),
            segments=_segments_of(document["segments"]) if "segments" in document else None,
        )


def _segments_of(document: Mapping[str, Any]) -> Segments:
    thresholds = {}
    for name, own in document["thresholds"].items():
        sure, shares = own["guarantee"], {figure: Interval(**own[figure]) for figure in ("precision", "recall")}
        thresholds[name] = SegmentThreshold(**{**own, **shares, "guarantee": Guarantee(**sure) if sure else None})
    return Segments(document["by"], thresholds)


def sample_names(document: Mapping[str, Any], stored: Container[str]) -> tuple[str, ...]:
    """The samples that a saved point or ensemble was measured on. Old documents hold no list: they name several samples
    as "W46 + W47", unless a sample has exactly that name."""
    if "samples" in document:
        return tuple(document["samples"])
    name: str | None = document["sample"]
    if not name:
        return ()
    return (name,) if name in stored else tuple(name.split(" + "))


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


class Points(Aggregate):
    def save(self, saved: SavedPoint) -> None:
        """Makes a point the latest of its detector, under a new id."""
        with self._writing() as connection:
            newest = select(PointRow.point).where(PointRow.detector == saved.detector).order_by(PointRow.id.desc())
            before = connection.scalar(newest.limit(1))
            connection.execute(insert(PointRow), [_point_row(saved)])
            audit(
                connection,
                "point saved",
                saved.detector,
                by=saved.chosen_by,
                before=_shown(before),
                after={**_shown(asdict(saved.point)), "n": saved.data.n, "reason": saved.data.reason},
            )

    def latest(self) -> dict[str, SavedPoint]:
        """The newest saved point of each detector."""
        newest = select(func.max(PointRow.id)).group_by(PointRow.detector)
        query = select(table(PointRow)).where(PointRow.id.in_(newest)).order_by(PointRow.detector)
        return {saved.detector: saved for saved in self._read(query)}

    def of(self, detector: str, *, until: datetime) -> list[SavedPoint]:
        """Every point of a detector that was chosen by then, newest first."""
        query = select(table(PointRow)).where(PointRow.detector == detector, PointRow.chosen_at <= until)
        return self._read(query.order_by(PointRow.id.desc()))

    def _read(self, query: Select[*tuple[Any, ...]]) -> list[SavedPoint]:
        samples = set(self._scalars(select(SampleRow.name)))

        def record(point: Mapping[str, Any], data: Mapping[str, Any], **columns: Any) -> SavedPoint:
            return SavedPoint(point=_point_of(point), data=PointData.from_json(data, samples), **columns)

        return self._records(record, query)


class Ensembles(Aggregate):
    def save(self, name: str, ensemble: Ensemble, *, by: str, now: datetime) -> None:
        row = _ensemble_row(SavedEnsemble(0, name, ensemble, by, now))
        with self._writing() as connection:
            connection.execute(insert(EnsembleRow), [row])
            after = {"detectors": sorted(ensemble.detectors), "rule": ensemble.rule, "reason": ensemble.reason}
            audit(connection, "ensemble saved", name, by=by, after=after)

    def latest(self) -> dict[str, SavedEnsemble]:
        """The newest of each name."""
        newest = select(func.max(EnsembleRow.id)).group_by(EnsembleRow.name)
        query = select(table(EnsembleRow)).where(EnsembleRow.id.in_(newest)).order_by(EnsembleRow.name)
        return {saved.name: saved for saved in self._read(query)}

    def of(self, name: str, *, until: datetime) -> list[SavedEnsemble]:
        """Every ensemble that was saved under the name by then, newest first."""
        query = select(table(EnsembleRow)).where(EnsembleRow.name == name, EnsembleRow.saved_at <= until)
        return self._read(query.order_by(EnsembleRow.id.desc()))

    def _read(self, query: Select[*tuple[Any, ...]]) -> list[SavedEnsemble]:
        samples = set(self._scalars(select(SampleRow.name)))

        def record(document: Mapping[str, Any], **columns: Any) -> SavedEnsemble:
            return SavedEnsemble(ensemble=_ensemble_of(document, samples), **columns)

        return self._records(record, query)


def _point_of(document: Mapping[str, Any]) -> OperatingPoint:
    figures = {name: Interval(**document[name]) for name in ("precision", "recall", "fpr", "flag_rate")}
    sure = document.get("guarantee")  # points saved before there were guarantees have none
    why = _why_of(document.get("why"), feasible=document["feasible"])
    counted = document.get("counted")  # nor counted flags
    more = {
        "why": why,
        "guarantee": Guarantee(**sure) if sure else None,
        "counted": Counted(**counted) if counted else None,
    }
    return OperatingPoint(**{**document, **figures, **more})


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


def _shown(document: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the audit log says of a point."""
    return {name: (document or {}).get(name) for name in ("threshold", "policy")} if document else {}


def save_again(connection: Connection, saved: SavedPoint | SavedEnsemble) -> None:
    """Makes a saved point or ensemble the latest, within the caller's transaction: chosen by whom and when it was."""
    if isinstance(saved, SavedPoint):
        connection.execute(insert(PointRow), [_point_row(saved)])
        audit(connection, "point put back", saved.detector, by=saved.chosen_by, after=_shown(asdict(saved.point)))
    else:
        connection.execute(insert(EnsembleRow), [_ensemble_row(saved)])
        audit(connection, "ensemble put back", saved.name, by=saved.saved_by)


def _ensemble_of(document: Mapping[str, Any], stored: Container[str]) -> Ensemble:
    """Read a saved ensemble; older ones lack the list of samples."""
    best, cuts = document["best_single"], document["cuts"]
    return Ensemble(
        kind=document["kind"],
        rule=document["rule"],
        detectors={name: EnsembleMember(**member) for name, member in document["detectors"].items()},
        budget=document["budget"],
        cuts=EnsembleCuts(EnsembleCut(**cuts["page"]), EnsembleCut(**cuts["signal"])),
        figures=EnsembleFigures(**_intervals(document["figures"])),
        best_single=BestSingle(best["detector"], Shares(**_intervals(best["figures"]))),
        difference=Interval(**document["difference"]),
        data=EnsembleData(**{**document["data"], "samples": sample_names(document["data"], stored)}),
        sentence=document["sentence"],
        notes=tuple(document["notes"]),
        reason=document.get("reason", ""),
    )


def _intervals(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, Interval]:
    return {name: Interval(**figure) for name, figure in figures.items()}


def _ensemble_row(saved: SavedEnsemble) -> dict[str, Any]:
    row = {name: getattr(saved, name) for name in ("name", "saved_by", "saved_at")}
    return {**row, "document": asdict(saved.ensemble)}
