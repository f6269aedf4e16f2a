"""The words of Touchstone as frozen dataclasses. Standard library only: production runtimes import this."""

from calibrate.types.drawing import DrawnCut, Moment, RankedBy, SampleOptions, TopUp
from calibrate.types.ensemble import (
    BestSingle,
    Ensemble,
    EnsembleCut,
    EnsembleCuts,
    EnsembleData,
    EnsembleFigures,
    EnsembleMember,
    Shares,
)
from calibrate.types.importing import Added, Record, TraceSink
from calibrate.types.label import KINDS, VERDICTS, GoldVerdict, Label, Span, Verdict, resolve_gold
from calibrate.types.point import (
    STRENGTHS,
    FlagWhen,
    Guarantee,
    Interval,
    OperatingPoint,
    Strength,
    Tier,
    Unmet,
    UnmetReason,
)
from calibrate.types.sample import LabelState, Member, Sample, Stratum, TraceFilter, merged_name
from calibrate.types.score import Baseline, Evidence, Score, ScoreStatus, Usage
from calibrate.types.trace import Source, Token, Trace

__all__ = [
    "KINDS",
    "STRENGTHS",
    "VERDICTS",
    "Added",
    "Baseline",
    "BestSingle",
    "DrawnCut",
    "Ensemble",
    "EnsembleCut",
    "EnsembleCuts",
    "EnsembleData",
    "EnsembleFigures",
    "EnsembleMember",
    "Evidence",
    "FlagWhen",
    "GoldVerdict",
    "Guarantee",
    "Interval",
    "Label",
    "LabelState",
    "Member",
    "Moment",
    "OperatingPoint",
    "RankedBy",
    "Record",
    "Sample",
    "SampleOptions",
    "Score",
    "ScoreStatus",
    "Shares",
    "Source",
    "Span",
    "Stratum",
    "Strength",
    "Tier",
    "Token",
    "TopUp",
    "Trace",
    "TraceFilter",
    "TraceSink",
    "Unmet",
    "UnmetReason",
    "Usage",
    "Verdict",
    "merged_name",
    "resolve_gold",
]
