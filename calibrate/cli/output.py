"""What a verb prints: one JSON object from a typed document, or text with tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path
from typing import Any

from calibrate.sanitize import UNSEEN


def to_json(document: object) -> str:
    """Write a document, of dataclasses and what JSON knows, as one JSON object.

    A field is written under its name, or under the "key" of its metadata where programs read another. Characters that
    act on a terminal or cannot be seen are escaped, which a program reads as the same.
    """
    text = json.dumps(_plain(document), ensure_ascii=False)
    return UNSEEN.sub(lambda match: json.dumps(match.group())[1:-1], text)


def _plain(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.metadata.get("key", field.name): _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {_plain(key): _plain(content) for key, content in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(content) for content in value]
    if isinstance(value, date):  # and datetime, which is one
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value


def warn(cautions: Iterable[str]) -> None:
    """Print what to know beside an answer where no program reads it: to standard error."""
    for caution in cautions:
        print(f"touchstone: caution: {caution}", file=sys.stderr)


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Align rows as columns; the first row is the head. The columns `right` are aligned right.

    On a terminal, cells of a table wider than that are wrapped. A file or a pipe gets one line per row, whatever line
    breaks a name from a trace has.
    """
    rows = [[cell.replace("\n", " ") for cell in row] for row in rows]
    if sys.stdout.isatty():
        return _wrapped(rows, right)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        columns = enumerate(zip(row, widths, strict=True))
        cells = [cell.rjust(width) if i in right else cell.ljust(width) for i, (cell, width) in columns]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _wrapped(rows: Sequence[Sequence[str]], right: Sequence[int]) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text  # cells are text, not rich's markup

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, head in enumerate(rows[0]):
        grid.add_column(Text(head), justify="right" if i in right else "left", overflow="fold")
    for row in rows[1:]:
        grid.add_row(*map(Text, row))
    console = Console()
    with console.capture() as capture:
        console.print(grid)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
