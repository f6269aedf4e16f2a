"""Read traces and labels from files. One module per format."""

from calibrate.ingest.base import Rejected
from calibrate.ingest.formats import read
from calibrate.ingest.importing import ImportReport, import_file
from calibrate.ingest.labels import read_labels, write_labels
from calibrate.ingest.preview import Preview, preview, suggest
from calibrate.types import Added, Record, TraceSink

__all__ = [
    "Added",
    "ImportReport",
    "Preview",
    "Record",
    "Rejected",
    "TraceSink",
    "import_file",
    "preview",
    "read",
    "read_labels",
    "suggest",
    "write_labels",
]
