"""Progress of long work: a bar with the rate and the time left, on standard error."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from calibrate.report.progress import Rate, line

if TYPE_CHECKING:
    from rich.progress import Progress, Task


class Advance(Protocol):
    def __call__(self, done: float, total: float | None, step: str = "") -> None:
        """Show how much is done, of how much where that is known; `step` names the part under way."""


@contextmanager
def progress(args: Namespace, title: str, unit: str = "trace", *, estimated: bool = False) -> Iterator[Advance]:
    """Show a progress bar while the block runs; only on a terminal, and never with --json.

    `estimated`: the totals are estimates.
    """
    if args.json or not sys.stderr.isatty():
        yield _ignore
        return
    with _bar(unit, estimated) as bar:
        rate = Rate()
        task = bar.add_task(title, total=None, rate=rate)

        def advance(done: float, total: float | None, step: str = "") -> None:
            rate.read(done, time.monotonic())
            bar.update(task, completed=done, total=total, description=step or None)

        yield advance


def _ignore(done: float, total: float | None, step: str = "") -> None:
    pass


def _bar(unit: str, estimated: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
    from rich.text import Text

    class Amount(ProgressColumn):
        def render(self, task: Task) -> Text:
            if task.total is None and not task.completed:
                return Text("")
            rate = task.fields["rate"].per_second(time.monotonic())
            return Text(line(task.completed, task.total, rate, unit, estimated=estimated))

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), Amount())
    return Progress(*columns, console=Console(stderr=True), transient=True)
