"""The conventions by which spans say what a model was asked and answered. One module each."""

from __future__ import annotations

from collections.abc import Collection

from calibrate.ingest.spans.dialects import (
    adk,
    any_agent,
    genai,
    langfuse,
    langsmith,
    mlflow,
    openinference,
    openllmetry,
    vercel,
)
from calibrate.ingest.spans.dialects.base import Dialect

DIALECTS: tuple[Dialect, ...] = (
    *(langsmith, genai, openllmetry, openinference, vercel, any_agent),
    *(langfuse, mlflow, adk),
)
"""In the order in which they are believed, where a span follows several."""


def dialects_of(names: Collection[str]) -> list[Dialect]:
    """The conventions by which a span with attributes of these names may say something."""
    if langsmith.wrote(names):
        return [langsmith]
    heads = {name.partition(".")[0] for name in names}
    return [dialect for dialect in DIALECTS if not dialect.HEADS.isdisjoint(heads)]
