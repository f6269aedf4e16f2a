"""Score the answers of a program instrumented with OpenTelemetry, beside it: docs/how-to/opentelemetry.md.

Only this package imports opentelemetry; `calibrate.runtime` works without it.
"""

from __future__ import annotations

try:
    import opentelemetry.sdk.trace  # noqa: F401
except ImportError as error:
    raise ImportError(
        "calibrate.runtime.otel needs the OpenTelemetry SDK, which is not installed: pip install opentelemetry-sdk"
    ) from error

from calibrate.runtime.otel.gather import Answer
from calibrate.runtime.otel.intake import Counts
from calibrate.runtime.otel.processor import TouchstoneSpanProcessor
from calibrate.runtime.otel.spans import trace_id_of

__all__ = ["Answer", "Counts", "TouchstoneSpanProcessor", "trace_id_of"]
