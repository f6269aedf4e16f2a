"""Progress of long work: a bar with the rate and the time left, on standard error."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from calibrate.report import numbers

if TYPE_CHECKING:
    from rich.progress import Progress, Task


class Advance(Protocol):
    def __call__(self, done: float, total: float, step: str = "") -> None:
        """Show how much is done, of how much; `step` names the part under way."""


@contextmanager
def progress(args: Namespace, title: str, unit: str = "trace") -> Iterator[Advance]:
    """Show a progress bar while the block runs; only on a terminal, and never with --json."""
    if args.json or not sys.stderr.isatty():
        yield _ignore
        return
    with _bar(unit) as bar:
        task = bar.add_task(title, total=None)

        def advance(done: float, total: float, step: str = "") -> None:
            bar.update(task, completed=done, total=total, description=step or None)

        yield advance


def _ignore(done: float, total: float, step: str = "") -> None:
    pass


def _bar(unit: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Amount(ProgressColumn):
        def render(self, task: Task) -> Text:
            if task.total is None:
                return Text("")
            done, total = numbers.count(round(task.completed)), numbers.count(round(task.total), unit)
            speed = task.speed
            return Text(f"{done} of {total}" + (f", {numbers.about(speed)} a second" if speed else ""))

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), Amount(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
