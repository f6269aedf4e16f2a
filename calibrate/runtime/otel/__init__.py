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

from calibrate.ingest.spans.answers import Answer
from calibrate.runtime.otel.conversion import trace_id_of
from calibrate.runtime.otel.hand_over import HandOverCounts
from calibrate.runtime.otel.intake import Counts
from calibrate.runtime.otel.processor import TouchstoneSpanProcessor

__all__ = ["Answer", "Counts", "HandOverCounts", "TouchstoneSpanProcessor", "trace_id_of"]
