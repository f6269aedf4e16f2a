"""A label as another tool's file has it, and the interface of a format of label files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TextIO

from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.files import InputFile
from calibrate.ingest.values import FieldError
from calibrate.sanitize import one_line
from calibrate.types import Label, Trace

Units = Literal["code points", "utf-16"]
Lost = Literal["earlier", "time", "seconds", "sample", "past_end", "no_span", "purged"]
"""What a format cannot hold of a label, or what its tool will not take."""

NO_KIND = "hallucinated"
"""The name of a span without a kind, where a tool wants a name for each span."""

ANSWERS = ("answer", "response", "output", "text")
"""The fields in which other tools' files may hold the answer, the likeliest first."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """One label as a file has it, before it is compared with the trace that it is about.

    `ids` are those the trace may have, the likeliest first; without any, the label's own counts. `answer` is the
    answer that was labelled, where the file holds it, and `quotes` the text of each span. `units` are what the offsets
    of the spans count. `where` names the label's place in the file's own words.
    """

    line: int
    label: Label
    ids: tuple[str, ...] = ()
    answer: str | None = None
    quotes: tuple[str | None, ...] = ()
    units: Units = "code points"
    where: str = ""

    @property
    def trace_ids(self) -> tuple[str, ...]:
        return self.ids or (self.label.trace_id,)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in a file that is no label, such as the answer to another question, and is left out."""

    what: str


Read = Parsed | LeftOut | Rejected


@dataclass(frozen=True, slots=True)
class Written:
    """How many labels were written, and how many lost what."""

    labels: int
    lost: Mapping[Lost, int]


@dataclass(frozen=True, slots=True)
class LabelFormat:
    """A format of label files.

    `rows` reads a file's records, `recognises` the format by one of them, and `read` the labels in them. `write`
    writes labels, given their traces, and counts what the format does not hold. A file that it wrote begins with one
    of `begins`.
    """

    name: str
    title: str
    begins: tuple[bytes, ...]
    rows: Callable[[InputFile], Iterator[Row | Rejected]]
    recognises: Callable[[Mapping[str, object]], bool]
    read: Callable[[Iterable[Row]], Iterator[Read]]
    write: Callable[[Iterable[Label], Callable[[Sequence[str]], Mapping[str, Trace]], TextIO], Written]


def rejection(line: int, where: str, error: FieldError) -> Rejected:
    """Reject a label with its place in the file. What the file holds is made safe for a terminal."""
    return Rejected(line, one_line(f"{where}: {error}" if where else str(error)))


def voice(label: Label) -> tuple[str, bool]:
    """Who says it: somebody who labels and adjudicates a trace has two voices."""
    return label.labeller, label.adjudicates


def standing(labels: Iterable[Label], lost: Counter[Lost]) -> list[Label]:
    """Keep each voice's latest label of one trace, and count the earlier ones."""
    latest: dict[tuple[str, bool], Label] = {}
    for label in labels:
        if latest.pop(voice(label), None) is not None:
            lost["earlier"] += 1
        latest[voice(label)] = label
    return list(latest.values())


def by_trace(labels: Iterable[Label]) -> dict[str, list[Label]]:
    """Group labels by trace, in the order in which the traces come first."""
    groups: dict[str, list[Label]] = {}
    for label in labels:
        groups.setdefault(label.trace_id, []).append(label)
    return groups


def in_batches(
    groups: Mapping[str, list[Label]], load: Callable[[Sequence[str]], Mapping[str, Trace]], size: int = 500
) -> Iterator[tuple[str, list[Label], Trace | None]]:
    """Each trace's id and labels with the trace itself, which are loaded some at a time."""
    ids = list(groups)
    for start in range(0, len(ids), size):
        traces = load(ids[start : start + size])
        for trace_id in ids[start : start + size]:
            yield trace_id, groups[trace_id], traces.get(trace_id)
