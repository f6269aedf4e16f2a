"""The tables, typed. Times are UTC; texts that traces share (sources, contexts) are kept once, by digest."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime, in UTC on every database (SQLite keeps no zone)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a naive time reached the store: {value!r}")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# SQLite counts rows by INTEGER only; PostgreSQL wants room beyond two billion.
Key = BigInteger().with_variant(Integer, "sqlite")
Document = JSON(none_as_null=True)


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_N_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: UtcDateTime, dict[str, Any]: Document, list[Any]: Document, str: Text}  # noqa: RUF012


def table(row: type[Base]) -> Table:
    """The Core table behind a row class: inserts of many rows and whole-row selects go by it."""
    return cast(Table, row.__table__)


class TextRow(Base):
    __tablename__ = "texts"
    digest: Mapped[bytes] = mapped_column(LargeBinary(16), primary_key=True)
    text: Mapped[str]


class TraceRow(Base):
    __tablename__ = "traces"
    id: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    trace_id: Mapped[str] = mapped_column(String(500), unique=True)
    content_hash: Mapped[str] = mapped_column(String(32), index=True)
    timestamp: Mapped[datetime | None]
    model: Mapped[str | None]
    operation: Mapped[str | None]
    source_group: Mapped[str | None]
    question: Mapped[str | None]
    answer: Mapped[str]
    context_digest: Mapped[bytes | None] = mapped_column(ForeignKey("texts.digest"))
    tokens: Mapped[list[Any] | None]
    alternatives: Mapped[list[Any] | None]
    output_schema: Mapped[Any | None] = mapped_column(Document)
    attributes: Mapped[dict[str, Any] | None]
    imported_at: Mapped[datetime]
    __table_args__ = (Index("ix_traces_time", "timestamp", "id"), Index("ix_traces_model", "model", "timestamp"))


class SourceRow(Base):
    __tablename__ = "sources"
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[str]
    text_digest: Mapped[bytes] = mapped_column(ForeignKey("texts.digest"))
    title: Mapped[str | None]
    retrieval_score: Mapped[float | None]


class SampleRow(Base):
    __tablename__ = "samples"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    design: Mapped[str]
    by: Mapped[str | None]
    size: Mapped[int]
    seed: Mapped[int] = mapped_column(BigInteger)
    pool: Mapped[int]
    undated: Mapped[int]
    filter: Mapped[dict[str, Any]]
    strata: Mapped[dict[str, Any]]
    options: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime]


class MemberRow(Base):
    __tablename__ = "sample_members"
    sample_id: Mapped[int] = mapped_column(ForeignKey("samples.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), index=True)
    inclusion_probability: Mapped[float]
    stratum: Mapped[str]
    __table_args__ = (UniqueConstraint("sample_id", "trace_pk"),)


class LabelRow(Base):
    """Append-only: a change of mind is a new row."""

    __tablename__ = "labels"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"))
    labeller: Mapped[str] = mapped_column(String(200))
    verdict: Mapped[str] = mapped_column(String(20))
    kinds: Mapped[list[Any] | None]
    spans: Mapped[list[Any] | None]
    note: Mapped[str | None]
    seconds: Mapped[float | None]
    sample_id: Mapped[int | None] = mapped_column(ForeignKey("samples.id"))
    adjudicates: Mapped[bool]
    created_at: Mapped[datetime]
    __table_args__ = (Index("ix_labels_latest", "trace_pk", "labeller", "id"), Index("ix_labels_recent", "created_at"))


class SkipRow(Base):
    __tablename__ = "skips"
    sample_id: Mapped[int] = mapped_column(ForeignKey("samples.id"), primary_key=True)
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), primary_key=True)
    labeller: Mapped[str] = mapped_column(String(200), primary_key=True)
    skipped_at: Mapped[datetime]


class GoldRow(Base):
    """Derived from `labels` in the transaction that adds one (`resolve_gold`); stored so that pages can count."""

    __tablename__ = "gold"
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), primary_key=True, autoincrement=False)
    verdict: Mapped[str] = mapped_column(String(20), index=True)
    labellers: Mapped[int]
    decided_at: Mapped[datetime]


class ConfigRow(Base):
    """A detector as it was run: name, version, parameters, model revision. `key` is their digest."""

    __tablename__ = "detector_configs"
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(32), unique=True)
    name: Mapped[str] = mapped_column(String(200), index=True)
    version: Mapped[str]
    params: Mapped[dict[str, Any]]
    revision: Mapped[str]
    created_at: Mapped[datetime]


class ScoreRow(Base):
    """One detector configuration's score of one content; traces with the same content share it."""

    __tablename__ = "scores"
    config_id: Mapped[int] = mapped_column(ForeignKey("detector_configs.id"), primary_key=True)
    content_hash: Mapped[str] = mapped_column(String(32), primary_key=True)
    status: Mapped[str] = mapped_column(String(20))
    value: Mapped[float | None]
    reason: Mapped[str | None]
    seconds: Mapped[float]
    evidence: Mapped[list[Any] | None]
    usage: Mapped[list[Any] | None]
    scored_at: Mapped[datetime]
    __table_args__ = (
        Index("ix_scores_recent", "config_id", "scored_at"),
        Index("ix_scores_status", "status", "config_id"),
    )


class RunRow(Base):
    __tablename__ = "runs"
    id: Mapped[int] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(String(20), index=True)
    detectors: Mapped[list[Any]]
    scope: Mapped[dict[str, Any]]
    options: Mapped[dict[str, Any] | None]
    total: Mapped[int]
    done: Mapped[int]
    counts: Mapped[dict[str, Any]]
    stop_requested: Mapped[bool]
    worker: Mapped[str | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class PointRow(Base):
    """An operating point somebody chose and saved; the latest of a detector is the one on offer for release."""

    __tablename__ = "operating_points"
    id: Mapped[int] = mapped_column(primary_key=True)
    detector: Mapped[str] = mapped_column(String(200), index=True)
    config_id: Mapped[int] = mapped_column(ForeignKey("detector_configs.id"))
    sample_id: Mapped[int | None] = mapped_column(ForeignKey("samples.id"))
    point: Mapped[dict[str, Any]]
    data: Mapped[dict[str, Any]]
    chosen_by: Mapped[str]
    chosen_at: Mapped[datetime]


class CertificationRow(Base):
    """One attempt to certify a threshold: the plan of its second stage, fixed before any of that stage's labels, and
    what came of it. `outcome` is NULL until then."""

    __tablename__ = "certifications"
    id: Mapped[int] = mapped_column(primary_key=True)
    detector: Mapped[str] = mapped_column(String(200), index=True)
    config_id: Mapped[int] = mapped_column(ForeignKey("detector_configs.id"))
    sample_id: Mapped[int | None] = mapped_column(ForeignKey("samples.id"))
    fresh_sample_id: Mapped[int | None] = mapped_column(ForeignKey("samples.id"))
    plan: Mapped[dict[str, Any]]
    outcome: Mapped[dict[str, Any] | None]
    started_by: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class EnsembleRow(Base):
    """Append-only: the latest of a name counts."""

    __tablename__ = "ensembles"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), index=True)
    document: Mapped[dict[str, Any]]
    saved_by: Mapped[str]
    saved_at: Mapped[datetime]


class ReleaseRow(Base):
    """Immutable: the exact bytes of the thresholds file."""

    __tablename__ = "releases"
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    document: Mapped[str]
    sha256: Mapped[str] = mapped_column(String(64))
    released_by: Mapped[str]
    released_at: Mapped[datetime]
    note: Mapped[str]


class DrawnRow(Base):
    """Alternatives drawn for a content that came without any. `request` says from which model and how."""

    __tablename__ = "drawn_alternatives"
    content_hash: Mapped[str] = mapped_column(String(32), primary_key=True)
    alternatives: Mapped[list[Any]]
    request: Mapped[dict[str, Any]]
    drawn_at: Mapped[datetime]


class ReplyRow(Base):
    """What a chat endpoint replied, by the digest of the request."""

    __tablename__ = "replies"
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    model: Mapped[str]
    reply: Mapped[dict[str, Any]]
    replied_at: Mapped[datetime]


class BaselineRow(Base):
    """Append-only: the latest of a statistic and model counts."""

    __tablename__ = "baselines"
    id: Mapped[int] = mapped_column(primary_key=True)
    statistic: Mapped[str] = mapped_column(String(100))
    model: Mapped[str]
    centre: Mapped[float]
    spread: Mapped[float]
    n: Mapped[int]
    fitted_at: Mapped[datetime]


class TeamFileRow(Base):
    """Append-only: the latest version of a file counts; NULL means "ours again"."""

    __tablename__ = "team_files"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), index=True)
    text: Mapped[str | None]
    saved_by: Mapped[str]
    saved_at: Mapped[datetime]


class DecisionRow(Base):
    """What a release decided of a trace that production or `watch` scored. `detectors` are those that flagged."""

    __tablename__ = "decisions"
    trace_pk: Mapped[int] = mapped_column(Key, ForeignKey("traces.id"), primary_key=True, autoincrement=False)
    version: Mapped[int] = mapped_column(ForeignKey("releases.version"), primary_key=True, autoincrement=False)
    verdict: Mapped[str] = mapped_column(String(20))
    tier: Mapped[str] = mapped_column(String(20))
    flags: Mapped[list[Any]]
    reasons: Mapped[list[Any]]
    scores: Mapped[dict[str, Any]]
    decided_at: Mapped[datetime]
    __table_args__ = (Index("ix_decisions_recent", "version", "decided_at"), Index("ix_decisions_tier", "tier"))


class ProposalRow(Base):
    """A release that waits for a second person, or waited. `outcome` is NULL until somebody decides."""

    __tablename__ = "proposals"
    id: Mapped[int] = mapped_column(primary_key=True)
    wanted: Mapped[dict[str, Any]]
    outcome: Mapped[str | None] = mapped_column(String(20))
    version: Mapped[int | None]
    proposed_by: Mapped[str]
    proposed_at: Mapped[datetime]
    decided_by: Mapped[str | None]
    decided_at: Mapped[datetime | None]


class RecheckRow(Base):
    """Flagged traces of a release that are labelled one by one until it is known whether its precision holds."""

    __tablename__ = "rechecks"
    id: Mapped[int] = mapped_column(primary_key=True)
    detector: Mapped[str] = mapped_column(String(200), index=True)
    version: Mapped[int] = mapped_column(ForeignKey("releases.version"))
    config_id: Mapped[int] = mapped_column(ForeignKey("detector_configs.id"))
    sample_id: Mapped[int] = mapped_column(ForeignKey("samples.id"))
    plan: Mapped[dict[str, Any]]
    outcome: Mapped[dict[str, Any] | None]
    started_by: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class RevisionRow(Base):
    """The revision of a group of tables: another with every write to one of them (db.revision)."""

    __tablename__ = "revisions"
    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    stamp: Mapped[int] = mapped_column(BigInteger)
