"""Reads ../shared/data into traces. Tests that use it are marked `shared` and skip, saying so, where it is absent."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from calibrate.types import Source, Span, Token, Trace

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


class Labelled(NamedTuple):
    """Traces with their labels: "clean", "hallucinated", or None where the data does not say."""

    traces: tuple[Trace, ...]
    labels: tuple[str | None, ...]

    def scorable(self) -> Labelled:
        """Those with a label."""
        kept = [(t, label) for t, label in zip(self.traces, self.labels, strict=True) if label is not None]
        return Labelled(tuple(t for t, _ in kept), tuple(label for _, label in kept))


def path(name: str) -> Path:
    """../shared/data/NAME.jsonl.gz, or a skip that says it is missing."""
    file = DATA / f"{name}.jsonl.gz"
    if not file.is_file():
        pytest.skip(f"{file} is not here")
    return file


def records(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(path(name), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def to_trace(record: dict[str, Any]) -> Trace:
    """One record of ../shared/data as a trace."""
    tokens = record.get("tokens")
    return Trace(
        id=record["trace_id"],
        answer=record["answer"],
        question=record.get("question"),
        context=record.get("context"),
        sources=tuple(Source(number, text) for number, text in (record.get("sources") or {}).items()),
        tokens=None if tokens is None else tuple(Token(t["token"], t["logprob"]) for t in tokens),
        alternatives=tuple(record.get("samples") or ()),
        schema=record.get("schema"),
        model=record.get("model"),
        operation=record.get("operation"),
        group=record.get("source_id"),
    )


@lru_cache(maxsize=4)
def load(name: str) -> Labelled:
    """Every trace of a set with its label."""
    rows = list(records(name))
    return Labelled(tuple(to_trace(row) for row in rows), tuple(row.get("label") for row in rows))


def spans(record: dict[str, Any]) -> tuple[Span, ...]:
    return tuple(Span(s["start"], s["end"], s.get("type")) for s in record.get("spans") or ())
