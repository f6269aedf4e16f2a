"""The conventions by which spans say what a model was asked and answered. One module each."""

from __future__ import annotations

from collections.abc import Iterable

from calibrate.ingest.spans.dialects import any_agent, genai, openinference, openllmetry, vercel
from calibrate.ingest.spans.dialects.base import Dialect

DIALECTS: tuple[Dialect, ...] = (genai, openllmetry, openinference, vercel, any_agent)
"""In the order in which they are believed, where a span follows several."""


def dialects_of(names: Iterable[str]) -> list[Dialect]:
    """The conventions by which a span with attributes of these names may say something."""
    heads = {name.partition(".")[0] for name in names}
    return [dialect for dialect in DIALECTS if not dialect.HEADS.isdisjoint(heads)]
