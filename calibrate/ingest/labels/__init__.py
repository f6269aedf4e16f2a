"""Read and write files of labels: JSON lines, CSV, Label Studio, Argilla and Phoenix. One module a format."""

from calibrate.ingest.labels.base import LeftOut, Written
from calibrate.ingest.labels.formats import (
    LABEL_FORMATS,
    LABELS,
    compare,
    format_for,
    parse_labels,
    read_labels,
    write_labels,
)

__all__ = [
    "LABELS",
    "LABEL_FORMATS",
    "LeftOut",
    "Written",
    "compare",
    "format_for",
    "parse_labels",
    "read_labels",
    "write_labels",
]
