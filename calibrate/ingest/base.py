"""What a trace file becomes, and what a store must offer to take it in. Standard library only."""

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
    """One trace of a file, with the labels that came along.

    `line` counts from 1 (in a table file: the line its row begins on; in Parquet: the row). Every label names this
    trace and has an empty `labeller` and no `created_at`: the store sets both when it takes the label in.
    `size` is about how many bytes the record took in the file, `repaired` how many characters that no database can
    hold (NUL, lone surrogates) became U+FFFD, `left_out` the names of fields that were not kept.
    """

    line: int
    trace: Trace
    labels: tuple[Label, ...] = ()
    size: int = 0
    repaired: int = 0
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """One line that could not be taken, and why. `last`: nothing after it could be read, for the file is damaged."""

    line: int
    reason: str
    last: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One record as the file spells it: field names to plain JSON values, nothing checked yet."""

    line: int
    fields: dict[str, Any]
    size: int = 0
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of trace file. A module of this package that names its formats in `FORMATS` is found by itself.

    `sniff` looks at the first bytes of a file whose name says nothing. `raw` gives the rows under the file's own column
    names; `rows` under the names of our fields, where the mapping says which column (or key) holds a field.
    """

    name: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    raw: Callable[[InputFile], Iterator[Row | Rejected]]
    rows: Callable[[InputFile, Mapping[str, str]], Iterator[Row | Rejected]]


@dataclass(frozen=True, slots=True)
class Added:
    """What one call of `TraceSink.add` did.

    `imported` + `duplicates` + len(`conflicts`) is the number of records given. `conflicts` holds (line, reason) of
    records whose trace id was there with other content; `labels` counts the labels that are new in the store.
    """

    imported: int
    duplicates: int = 0
    conflicts: tuple[tuple[int, str], ...] = ()
    labels: int = 0


class TraceSink(Protocol):
    """A store, as far as an import needs one."""

    def add(self, records: Sequence[Record], *, labels_as: str | None, now: datetime) -> Added:
        """Take in the records in one transaction: all that `Added` reports is there afterwards, or nothing is.

        A trace id that is already there (or earlier in `records`) with the same `Trace.content_hash()` is a duplicate:
        nothing is written for the trace. With another hash it is a conflict: the first is kept, the record is not
        taken, `conflict_reason` says so. `labels_as` names the labeller of the records' labels, which are dated `now`;
        None leaves the labels out. A duplicate's labels are taken too, unless that labeller's latest verdict on the
        trace is already the same: importing a file twice adds nothing.
        """
        ...


def conflict_reason(trace_id: str) -> str:
    """Why a record whose id stands for other content is not taken."""
    return (
        f"trace id {trace_id!r} is already in the store with other content; the first is kept; give this one its own id"
    )


def displaced(column: str, columns: Mapping[str, str]) -> str:
    """The name of a column no field is read from: another than the field's that the mapping reads from elsewhere."""
    return f"{column} (column)" if column in columns else column
