"""Personal data and secrets in traces, replaced by placeholders before anything is stored."""

from calibrate.redaction.finders import Find, Finding, finder_of
from calibrate.redaction.redactor import Redactor, redactor_of

__all__ = ["Find", "Finding", "Redactor", "finder_of", "redactor_of"]
