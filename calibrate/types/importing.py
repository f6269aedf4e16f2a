"""What a trace file hands to a store, and what an import needs of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from calibrate.types.label import Label
from calibrate.types.score import StatedScore
from calibrate.types.trace import Trace


@dataclass(frozen=True, slots=True)
class Record:
    """One trace of a file, with the labels that came with it.

    Attributes
    ----------
    line : int
        Counts from 1: the line that the row begins on; in Parquet, the row.
    trace : Trace
    labels : tuple of Label
        Each names this trace. Those of the file's own records have an empty `labeller` and no `created_at`: the store
        sets both. Annotations of another system have their author's name and time.
    size : int
        About how many bytes the record took in the file.
    repaired : int
        Characters that no database can store (NUL, lone surrogates) and that became U+FFFD.
    left_out : tuple of str
        Names of fields that were not imported.
    redacted : mapping of str to int
        How often each kind of personal data or secret was replaced by a placeholder.
    scores : tuple of (str, StatedScore)
        Scores that came with the trace, by the name of the detector.
    """

    line: int
    trace: Trace
    labels: tuple[Label, ...] = ()
    size: int = 0
    repaired: int = 0
    left_out: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    scores: tuple[tuple[str, StatedScore], ...] = ()


@dataclass(frozen=True, slots=True)
class Added:
    """What one call of `TraceSink.add` did.

    `imported` + `duplicates` + len(`conflicts`) + len(`purged`) is the number of records passed. `conflicts` holds
    (line, trace id) of records whose id exists with other content, `purged` of those that were purged from the store
    and stay out; `labels` counts the labels that are new in the store.
    """

    imported: int
    duplicates: int = 0
    conflicts: tuple[tuple[int, str], ...] = ()
    labels: int = 0
    purged: tuple[tuple[int, str], ...] = ()


class TraceSink(Protocol):
    """What an import needs of a store."""

    def add(self, records: Sequence[Record], *, labels_as: str | None, now: datetime, again: bool = False) -> Added:
        """Import the records in one transaction: everything that `Added` reports, or nothing.

        A trace id that exists already (in the store or earlier in `records`) with the same `Trace.content_hash()` is a
        duplicate: nothing is written for the trace. With another hash it is a conflict: the first trace stays and the
        record is rejected. `labels_as` names the labeller of labels without one; labels without a time are dated
        `now`; None leaves all labels out. A duplicate's labels are imported too, unless that labeller's latest verdict
        on the trace is the same already: importing a file twice adds nothing. A trace whose id or content was purged
        stays out with its labels; `again` takes it in.
        """
        ...
