"""Records read from a trace file, and the interface of a store that imports them. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from calibrate.types import Label, Trace

if TYPE_CHECKING:
    from calibrate.ingest.files import InputFile


@dataclass(frozen=True, slots=True)
class Record:
    """One trace of a file, with the labels that came with it.

    Attributes
    ----------
    line : int
        Counts from 1: the line that the row begins on; in Parquet, the row.
    trace : Trace
    labels : tuple of Label
        Each names this trace and has an empty `labeller` and no `created_at`: the store sets both.
    size : int
        About how many bytes the record took in the file.
    repaired : int
        Characters that no database can store (NUL, lone surrogates) and that became U+FFFD.
    left_out : tuple of str
        Names of fields that were not imported.
    """

    line: int
    trace: Trace
    labels: tuple[Label, ...] = ()
    size: int = 0
    repaired: int = 0
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """One line that cannot be imported, and why. `last`: the file is damaged and nothing after it can be read."""

    line: int
    reason: str
    last: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One record as the file has it: field names to JSON values, not checked yet."""

    line: int
    fields: dict[str, Any]
    size: int = 0
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class Format:
    """A format of trace files. Modules of this package list theirs in `FORMATS`; that registers them.

    `sniff` recognizes the first bytes of a file whose name does not tell. `raw` reads rows under the file's own column
    names, `rows` under our field names; the mapping says which column (or key) holds a field.
    """

    name: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    raw: Callable[[InputFile], Iterator[Row | Rejected]]
    rows: Callable[[InputFile, Mapping[str, str]], Iterator[Row | Rejected]]


@dataclass(frozen=True, slots=True)
class Added:
    """What one call of `TraceSink.add` did.

    `imported` + `duplicates` + len(`conflicts`) is the number of records passed. `conflicts` holds (line, reason) of
    records whose trace id exists with other content; `labels` counts the labels that are new in the store.
    """

    imported: int
    duplicates: int = 0
    conflicts: tuple[tuple[int, str], ...] = ()
    labels: int = 0


class TraceSink(Protocol):
    """What an import needs of a store."""

    def add(self, records: Sequence[Record], *, labels_as: str | None, now: datetime) -> Added:
        """Import the records in one transaction: everything that `Added` reports, or nothing.

        A trace id that exists already (in the store or earlier in `records`) with the same `Trace.content_hash()` is a
        duplicate: nothing is written for the trace. With another hash it is a conflict: the first trace stays, and
        `conflict_reason` explains why the record is rejected. `labels_as` names the labeller of the records' labels,
        which are dated `now`; None leaves the labels out. A duplicate's labels are imported too, unless that labeller's
        latest verdict on the trace is the same already: importing a file twice adds nothing.
        """
        ...


def conflict_reason(trace_id: str) -> str:
    """Explain why a record is rejected whose trace id exists with other content."""
    return (
        f"trace id {trace_id!r} is already in the store with other content; the first is kept; give this one its own id"
    )


def attribute_name(column: str, columns: Mapping[str, str]) -> str:
    """Name the attribute of a column that fills no field.

    A column named like a field that the mapping reads from elsewhere gets another name.
    """
    return f"{column} (column)" if column in columns else column
