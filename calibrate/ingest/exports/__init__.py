"""What other systems export, read as traces. Importing this registers the formats."""

from calibrate.ingest.exports import files, traced

FORMATS = (*files.FORMATS, *traced.FORMATS)

__all__ = ["FORMATS"]
