"""Traces for tests of the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from calibrate.types import (
    BestSingle,
    Ensemble,
    EnsembleCut,
    EnsembleCuts,
    EnsembleData,
    EnsembleFigures,
    EnsembleMember,
    Interval,
    Label,
    Record,
    Shares,
    Source,
    Span,
    Token,
    Trace,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def trace(number: int, **given: Any) -> Trace:
    """Trace `t<number>`, an hour older with every number, in one of two models."""
    usual = {
        "answer": f"answer {number}",
        "question": f"question {number}",
        "sources": (Source("1", f"shared text {number // 6}"),),
        "model": "a" if number % 3 else "b",
        "timestamp": NOW - timedelta(hours=number),
        "attributes": {"channel": "web" if number % 2 else "app"},
    }
    return Trace(f"t{number}", **{**usual, **given})


def records(count: int, **given: Any) -> list[Record]:
    return [Record(line, trace(line, **given)) for line in range(1, count + 1)]


def rich(trace_id: str = "rich") -> Trace:
    """A trace with every field filled, in ways that are easy to lose on the way through a database."""
    return Trace(
        trace_id,
        answer="Ünïcode ✓ 漢字 עברית\n[1] \\ \"quoted\" '%s' :name",
        question=None,
        context="a context",
        sources=(Source("1", "text", "title", 0.25), Source("02", "text"), Source("x", "")),
        tokens=(Token("Ün", -0.1, (("Ün", -0.1), ("U", -2.5))), Token(" ", 0.0)),
        alternatives=("one", "", "one"),
        schema={"b": [1, 2.5, None], "a": {"$ref": "#/x"}},
        timestamp=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        model="m",
        operation="op",
        group="g",
        attributes={"n": "3", "flag": "true"},
    )


def label(verdict: str, by: str = "ann", **given: Any) -> Label:
    return Label("", by, verdict, **given)  # type: ignore[arg-type]


SPANS = (Span(0, 3, "fabrication"), Span(5, 9))


def ensemble(**given: Any) -> Ensemble:
    """An ensemble of two that flag by their own thresholds; one is enough."""
    half = Interval(0.5, 0.4, 0.6)
    member = EnsembleMember("1", {"variant": "default"}, "")
    usual: dict[str, Any] = {
        "kind": "k_of_n",
        "rule": {"form": "fixed", "k": 1, "thresholds": {"a": ["below", 0.4], "b": ["above", 0.6]}},
        "detectors": {"a": member, "b": member},
        "budget": 0.2,
        "cuts": EnsembleCuts(EnsembleCut(2.0, 0.05, "bounded", 0.7, 0.72), EnsembleCut(1.0, 0.2)),
        "figures": EnsembleFigures(half, half, half, half),
        "best_single": BestSingle("a", Shares(half, half, half)),
        "difference": Interval(0.1, -0.1, 0.3),
        "data": EnsembleData("W46 + W47", ("W46", "W47"), 60, 20, None, "digest"),
        "sentence": "Flags 20% of traffic.",
        "notes": ("few labels",),
    }
    return Ensemble(**{**usual, **given})
