"""What a system that holds traces offers, and what it is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from calibrate.errors import Unavailable
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.labels.base import Read
from calibrate.types import StatedScore, Tier

OVERLAP = timedelta(hours=1)
"""How far behind the last pull the next one begins: what ended that late is still seen."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class PullRequest:
    """What somebody asks of a system.

    Attributes
    ----------
    project : str or None
        Its project or experiment; None for the one that its own environment variables name.
    url : str or None
        Where it is, where that is not in its own environment variables. It may hold a secret.
    name : str or None
        What the pull is called in the store; None for what the source calls itself.
    options : mapping of str to any
        What only one system takes, like the query of `sql`.
    stored : mapping of str to any
        The settings of the pull of that name, which is in the store already.
    overlap : timedelta
    columns : mapping of str to str
        Field of a trace → attribute or column that holds it.
    tool_results : bool
        Take what tools returned for sources.
    now : callable
        The clock.
    wait : callable
        Sleeps for so many seconds.
    notice : callable
        Hears in a few words what the source is waiting for; "" when it goes on.
    """

    project: str | None = None
    url: str | None = None
    name: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    stored: Mapping[str, Any] = field(default_factory=dict)
    overlap: timedelta = OVERLAP
    columns: Mapping[str, str] = field(default_factory=dict)
    tool_results: bool = False
    now: Callable[[], datetime] = _now
    wait: Callable[[float], None] = time.sleep
    notice: Callable[[str], None] = lambda text: None


@dataclass(frozen=True, slots=True)
class Page:
    """A part of what a system holds. It is stored as a whole, with its cursor.

    Attributes
    ----------
    rows : sequence of Row or Rejected
        Answers, with fields as `calibrate.ingest.record.build` takes them. Rows of one answer may come again.
    scores : mapping of str to sequence of StatedScore
        What other programs scored, by the detector's name.
    labels : sequence of Parsed, LeftOut or Rejected
        What people said of answers.
    cursor : mapping of str to any, or None
        JSON: what `fetch` takes to go on behind this page. None leaves the one before.
    share : float or None
        How much of all has been read, 0 to 1, where that is known.
    left_out : mapping of str to int
        What was there and is nothing of ours, in a few words, with its number.
    ahead : int
        How many rows are dated after the pull, so that the cursor stays before them.
    names : mapping of int to str
        What a refused row is called, by its line, where it has no `trace_id`.
    mixed : bool
        Whether times are written in ways that do not sort as text.
    held_back : bool
        Whether the source's own limit may hide what comes behind the cursor.
    """

    rows: Sequence[Row | Rejected] = ()
    scores: Mapping[str, Sequence[StatedScore]] = field(default_factory=dict)
    labels: Sequence[Read] = ()
    cursor: Mapping[str, Any] | None = None
    share: float | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    ahead: int = 0
    mixed: bool = False
    held_back: bool = False
    names: Mapping[int, str] = field(default_factory=dict)


class Source(Protocol):
    """A system that is open for reading.

    Attributes
    ----------
    name : str
        What this pull is called: the same project of the same server has the same name every time.
    system : str
        One of `SYSTEMS`.
    settings : mapping of str to any
        JSON without a secret: kept in the store, and shown.
    """

    @property
    def name(self) -> str: ...
    @property
    def system(self) -> str: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...

    def fetch(self, since: datetime | None, cursor: Mapping[str, Any] | None) -> Iterator[Page]:
        """Read page by page.

        Parameters
        ----------
        since : datetime or None
            The oldest answers to read where there is no cursor; None for all.
        cursor : mapping of str to any, or None
            What the last stored page had. Pages may repeat what was read before, and must not leave out anything.

        Yields
        ------
        Page
        """


@runtime_checkable
class LateRemarks(Protocol):
    """A source whose scores and labels belong to answers that were read long before."""

    def remarks(self, since: datetime | None, answers: Iterator[Sequence[str]]) -> Iterator[Page]:
        """Read the scores and labels of answers.

        Parameters
        ----------
        since : datetime or None
        answers : iterator of sequence of str
            The ids of the answers since then that came by this pull, some at a time.

        Yields
        ------
        Page
            Without rows.
        """


@dataclass(frozen=True, slots=True)
class NoteScore:
    """One detector's score in a note. `threshold` is None for one that has none."""

    score: float | None
    threshold: float | None
    flagged: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """What a release decided of an answer, to be written where the answer came from.

    `trace_id` and `span_id` are as `split_answer_id` gives them: hexadecimal, UUIDs without hyphens. `key` is the same
    for the same answer and release every time: written twice, a system must hold it once.
    """

    key: str
    trace_id: str
    span_id: str
    version: int
    verdict: str
    tier: Tier
    scores: Mapping[str, NoteScore]
    reasons: tuple[str, ...] = ()
    decided_at: datetime | None = None


class Annotator(Protocol):
    """A system that is open for writing."""

    def annotate(self, notes: Sequence[Note]) -> Mapping[str, str]:
        """Write the notes; each again changes nothing.

        Parameters
        ----------
        notes : sequence of Note

        Returns
        -------
        mapping of str to str
            The key of each note that this system will never take, with the reason: it does not have the answer.

        Raises
        ------
        TouchstoneError
            If the system cannot be reached, or takes nothing now: all notes are written another time.
        """


def need(package: str, what: str, *, install: str | None = None) -> Any:
    """Import a system's client.

    Parameters
    ----------
    package : str
        What is imported.
    what : str
        What needs it, as in "`pull phoenix`".
    install : str, optional
        What pip calls it, where that is another name.

    Returns
    -------
    module

    Raises
    ------
    Unavailable
        If it is not installed.
    """
    import importlib

    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package.partition(".")[0]:
            raise
        name = install or package
        raise Unavailable(f"{what} needs the client {name}, which is not installed: pip install {name}") from None
