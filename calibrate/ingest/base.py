"""Records read from a trace file, and the interface of a store that imports them. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrate.ingest.files import InputFile
    from calibrate.types import Label


@dataclass(frozen=True, slots=True)
class Rejected:
    """One line that cannot be imported, and why. `last`: the file is damaged and nothing after it can be read."""

    line: int
    reason: str
    last: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One record as the file has it: field names to JSON values, not checked yet.

    `labels` are what people said of its answer in the system that it comes from, each under its author's name, and
    `left_out` names what was said and is no label and no score.
    """

    line: int
    fields: dict[str, Any]
    size: int = 0
    repaired: int = 0
    labels: tuple[Label, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """A format of trace files. Modules and packages of this package list theirs in `FORMATS`; that registers them.

    `sniff` recognizes the beginning of a file, up to 64 kB of its decompressed content: many formats share an ending.
    `raw` reads rows under the file's own column names, `rows` under our field names; the mapping says which column (or
    key) holds a field. `title` is what people read: "Langfuse export". A `plain` format holds records under names of
    the team's own choice, is sniffed after all others, and its columns may be chosen. The labels in a `benchmark` were
    published with it: they are of no team's traffic.
    """

    name: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    raw: Callable[[InputFile], Iterator[Row | Rejected]]
    rows: Callable[[InputFile, Mapping[str, str]], Iterator[Row | Rejected]]
    title: str = ""
    plain: bool = False
    benchmark: bool = False


def attribute_name(column: str, columns: Mapping[str, str]) -> str:
    """Name the attribute of a column that fills no field.

    A column named like a field that the mapping reads from elsewhere gets another name.
    """
    return f"{column} (column)" if column in columns else column
