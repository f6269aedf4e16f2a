"""Read traces and labels from files. One module per format."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrate.ingest.base import Rejected
    from calibrate.ingest.formats import read
    from calibrate.ingest.importing import ImportReport, import_file, import_records
    from calibrate.ingest.inspection.previewing import Preview, preview, suggest
    from calibrate.ingest.labels import read_labels, write_labels
    from calibrate.types import Added, Record, TraceSink

__all__ = [
    "Added",
    "ImportReport",
    "Preview",
    "Record",
    "Rejected",
    "TraceSink",
    "import_file",
    "import_records",
    "preview",
    "read",
    "read_labels",
    "suggest",
    "write_labels",
]

_MODULES = {
    "calibrate.ingest.base": ("Rejected",),
    "calibrate.ingest.formats": ("read",),
    "calibrate.ingest.importing": ("ImportReport", "import_file", "import_records"),
    "calibrate.ingest.labels": ("read_labels", "write_labels"),
    "calibrate.ingest.inspection.previewing": ("Preview", "preview", "suggest"),
    "calibrate.types": ("Added", "Record", "TraceSink"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: production processes use the reader of spans and nothing else of this."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
