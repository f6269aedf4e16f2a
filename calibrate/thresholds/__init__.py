"""The thresholds file: its model, and how to read, write, check and compare releases.

`docs/reference/thresholds-file.md` describes the format for readers in other languages.
"""

from calibrate.thresholds.canonical import label_set_digest
from calibrate.thresholds.changes import Change, diff
from calibrate.thresholds.checks import FORMAT, schema
from calibrate.thresholds.ensembles import Cuts, EnsembleEntry, EnsembleMetrics
from calibrate.thresholds.files import Staged, encode, read, render, stage, write
from calibrate.thresholds.model import (
    Data,
    DetectorEntry,
    Drawn,
    Metrics,
    Sampling,
    ThresholdsFile,
    Window,
    from_json,
    to_json,
)
from calibrate.thresholds.verification import Verification, verify

__all__ = [
    "FORMAT",
    "Change",
    "Cuts",
    "Data",
    "DetectorEntry",
    "Drawn",
    "EnsembleEntry",
    "EnsembleMetrics",
    "Metrics",
    "Sampling",
    "Staged",
    "ThresholdsFile",
    "Verification",
    "Window",
    "diff",
    "encode",
    "from_json",
    "label_set_digest",
    "read",
    "render",
    "schema",
    "stage",
    "to_json",
    "verify",
    "write",
]
