"""The tables, typed."""

from db.tables.base import Base, Document, Key, RevisionRow, UtcDateTime, table
from db.tables.labelling import AssignmentRow, FlagRow, GuideRow, LeaseRow, RepeatRow
from db.tables.labels import GoldRow, LabelRow, MemberRow, SampleRow, SkipRow
from db.tables.production import DecisionRow, OutboxRow, RecheckRow
from db.tables.scores import ConfigRow, RunRow, ScoreRow
from db.tables.team import AuditRow, BaselineRow, PurgeRow, ReplyRow, TeamFileRow
from db.tables.thresholds import CertificationRow, EnsembleRow, PointRow, ProposalRow, ReleaseRow
from db.tables.traces import DrawnRow, SourceRow, TextRow, TraceDayRow, TraceRow

__all__ = [
    "AssignmentRow",
    "AuditRow",
    "Base",
    "BaselineRow",
    "CertificationRow",
    "ConfigRow",
    "DecisionRow",
    "Document",
    "DrawnRow",
    "EnsembleRow",
    "FlagRow",
    "GoldRow",
    "GuideRow",
    "Key",
    "LabelRow",
    "LeaseRow",
    "MemberRow",
    "OutboxRow",
    "PointRow",
    "ProposalRow",
    "PurgeRow",
    "RecheckRow",
    "ReleaseRow",
    "RepeatRow",
    "ReplyRow",
    "RevisionRow",
    "RunRow",
    "SampleRow",
    "ScoreRow",
    "SkipRow",
    "SourceRow",
    "TeamFileRow",
    "TextRow",
    "TraceDayRow",
    "TraceRow",
    "UtcDateTime",
    "table",
]
