"""What files of labels could not hold, and what in them was no label, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from calibrate.ingest.labels.base import Lost
from calibrate.report.numbers import count
from calibrate.sanitize import one_line

_TOOLS = {
    "jsonl": "JSON lines",
    "csv": "CSV",
    "label-studio": "Label Studio",
    "argilla": "Argilla",
    "phoenix": "Phoenix",
}
_NOT_HELD: Mapping[Lost, tuple[str, str]] = {
    "time": ("when {} was made", "when {} were made"),
    "seconds": ("the seconds that {} took", "the seconds that {} took"),
    "sample": ("the sample of {}", "the sample of {}"),
    "earlier": (
        "{} that the same person later replaced, which is left out",
        "{} that the same person later replaced, which are left out",
    ),
    "purged": ("the texts of {} of purged traces", "the texts of {} of purged traces"),
}
MOST = 5


def lost(format: str, labels: Mapping[Lost, int]) -> str:
    """Say in one sentence what a file in this format does not hold of the labels that were exported to it."""
    tool = _TOOLS.get(format, format)
    parts = [words[n != 1].format(count(n, "label")) for what, words in _NOT_HELD.items() if (n := labels.get(what, 0))]
    clauses = [f"a file for {tool} does not hold {_enumerate(parts)}"] if parts else []
    if n := labels.get("past_end", 0):
        clauses.append(
            f"{tool}'s server will refuse {count(n, 'label')} with a span near the end of an answer with emoji (its "
            "page counts UTF-16 units, its server code points)"
        )
    if n := labels.get("no_span", 0):
        clauses.append(
            f"{tool} will refuse {count(n, 'label')} of traces whose id names no OpenTelemetry span; Touchstone reads "
            "them back"
        )
    return "; ".join(clauses)


def left_out(counts: Mapping[str, int]) -> str:
    """Say what else was in a file, and was left out."""
    largest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{one_line(what, 80)} ({count(n)})" for what, n in largest[:MOST]]
    more = f" and {count(len(largest) - MOST, 'other thing')}" if len(largest) > MOST else ""
    return f"left out, as no label of a person on a trace: {', '.join(parts)}{more}"


def _enumerate(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
