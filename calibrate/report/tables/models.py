"""The columns of what traces say of their models, or of an attribute: one row for each value."""

from __future__ import annotations

from calibrate.report.numbers import day, estimate, share
from calibrate.report.tables.column import Column, Form
from calibrate.sanitize import one_line
from calibrate.workflow.upgrade.models_seen import Registry, Seen

NONE = "(none)"  # what the store calls traces that carry no value


def name_of(value: str, limit: int = 80) -> str:
    """Name a model or a value, on one line."""
    return "not given" if value == NONE else one_line(value, limit)


def columns(registry: Registry) -> tuple[Column[Seen], ...]:
    """The columns of a registry; only models have a release."""
    name = "Model" if registry.by == "model" else one_line(registry.by, 40)
    release = Column[Seen]("released", "Release", lambda seen: _release(seen, registry.version))
    return (
        Column[Seen]("name", name, lambda seen: name_of(seen.name), width=200),
        Column[Seen]("traces", "Traces", lambda seen: seen.traces, Form.COUNT),
        Column[Seen]("share", "Share", lambda seen: share(seen.share)),
        Column[Seen]("first", "First seen", lambda seen: day(seen.first) if seen.first else "undated"),
        Column[Seen]("last", "Last seen", lambda seen: day(seen.last) if seen.last else "undated"),
        *([release] if registry.by == "model" and registry.version is not None else []),
        Column[Seen](
            "prevalence", "Hallucinated", _prevalence, help="Share of the labelled answers that are hallucinated"
        ),
        Column[Seen](
            "labels", "Labels", lambda seen: seen.labels, Form.COUNT, "Clean or hallucinated ones, of the labels chosen"
        ),
    )


def _release(seen: Seen, version: int | None) -> str:
    return f"v{version} made on it" if seen.released else f"v{version} made without it"


def _prevalence(seen: Seen) -> str:
    figure = seen.prevalence
    if figure.value is None:
        if seen.labels:  # they do not describe the traffic
            return "not known"
        return "not in these labels" if seen.labelled else "no labels"
    return estimate(figure.value, figure.low, figure.high)
