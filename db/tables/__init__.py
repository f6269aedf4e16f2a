"""The tables, typed."""

from db.tables.base import Base, Document, Key, RevisionRow, UtcDateTime, table
from db.tables.exchange import AnnotationRow, OriginRow, PulledRow, PullRow
from db.tables.labelling import (
    AssignmentRow,
    FlagRow,
    GuideRow,
    LeaseRow,
    PromptComparisonRow,
    PromptExampleRow,
    RepeatRow,
)
from db.tables.labels import GoldRow, LabelRow, MemberRow, SampleRow, SkipRow
from db.tables.production import DecisionRow, LoggedRow, OutboxRow, RecheckRow
from db.tables.receiving import JoinerRow, ReceivedRow
from db.tables.scores import ConfigRow, ExternalRow, RunRow, ScoreRow
from db.tables.team import AuditRow, BaselineRow, PurgeRow, ReplyRow, TeamFileRow
from db.tables.thresholds import CertificationRow, EnsembleRow, PointRow, ProposalRow, ReleaseRow
from db.tables.traces import DrawnRow, SourceRow, TextRow, TraceDayRow, TraceRow

__all__ = [
    "AnnotationRow",
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
    "ExternalRow",
    "FlagRow",
    "GoldRow",
    "GuideRow",
    "JoinerRow",
    "Key",
    "LabelRow",
    "LeaseRow",
    "LoggedRow",
    "MemberRow",
    "OriginRow",
    "OutboxRow",
    "PointRow",
    "PromptComparisonRow",
    "PromptExampleRow",
    "ProposalRow",
    "PullRow",
    "PulledRow",
    "PurgeRow",
    "ReceivedRow",
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
