"""Names as people read them. Identifiers are for code, for commands that are typed, and for tooltips."""

from __future__ import annotations

from calibrate import registry
from calibrate.sanitize import one_line

WIDTH = 60
_NO_DETECTORS = {
    "answer_length": "Answer length",
    "answering_model": "Answering model",
}  # what detectors are held against, and is none


def title_of(name: str) -> str:
    """The name that people know a detector by: "Token overlap"; an ensemble's own, or that of one no longer here."""
    if name in _NO_DETECTORS:
        return _NO_DETECTORS[name]
    return one_line(registry.get(name).title if name in registry.names() else name, WIDTH)
