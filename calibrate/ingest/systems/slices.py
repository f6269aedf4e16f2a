"""Read a system by time: slices that grow where little happened, and an overlap for what ends late.

The cursor is `{"at": …, "horizon": …}`. Everything that began before `at` has been read. A pass reads up to its
horizon, the time at which it began; the next pass begins the overlap behind that horizon, as what began shortly before
it may have ended, and come to the system, only after it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.systems.base import Page

T = TypeVar("T")
Rows = list[Row | Rejected]

FIRST, SHORTEST, LONGEST = timedelta(hours=1), timedelta(milliseconds=1), timedelta(days=3650)
FEW = 200  # items in a slice; with fewer, the next one is longer
MOST = 5_000  # items in a slice that holds traces; with more, it is read in two


class Slices:
    """Walks from the cursor to now.

    Parameters
    ----------
    since : datetime or None
        Where to begin without a cursor.
    cursor : mapping of str to any, or None
    now : datetime
    overlap : timedelta
    oldest : datetime or None
        Where to begin without either. None for the epoch.
    """

    def __init__(
        self,
        since: datetime | None,
        cursor: Mapping[str, Any] | None,
        *,
        now: datetime,
        overlap: timedelta,
        oldest: datetime | None = None,
    ) -> None:
        self._now, self._overlap = now, overlap
        self._length = FIRST
        begin = since or oldest or datetime(1970, 1, 1, tzinfo=UTC)
        if cursor is None:
            self._at, self._horizon = begin, now
        else:
            self._at, self._horizon = _moment(cursor, "at"), _moment(cursor, "horizon")
        self._first = self._at

    def __iter__(self) -> Iterator[tuple[datetime, datetime]]:
        """Yield (begin, end), end exclusive. After each, `read` or `halve` says how it went."""
        while True:
            if self._at >= self._horizon:
                if self._horizon >= self._now:
                    return
                self._at = max(self._horizon - self._overlap, datetime(1970, 1, 1, tzinfo=UTC))
                self._horizon = self._now
            yield self._at, min(self._horizon, self._at + self._length)

    def read(self, end: datetime, items: int) -> None:
        """Go on behind a slice that was read. The next one is longer where this one held few items.

        Parameters
        ----------
        end : datetime
            Its end.
        items : int
            How much it held.
        """
        self._at = end
        if items < FEW:
            self._length = min(LONGEST, self._length * 2)

    def halve(self) -> bool:
        """Take a shorter slice from the same beginning, because this one holds too much.

        Returns
        -------
        bool
            False where it cannot be shorter.
        """
        if self._length <= SHORTEST:
            return False
        self._length = max(SHORTEST, min(self._length, self._horizon - self._at) / 2)
        return True

    @property
    def cursor(self) -> dict[str, Any]:
        """What to save with a page that holds everything before this moment."""
        return {"at": self._at.isoformat(), "horizon": self._horizon.isoformat()}

    @property
    def share(self) -> float:
        """How much of the time has been read, 0 to 1."""
        whole = (self._now - self._first).total_seconds()
        return 1.0 if whole <= 0 else max(0.0, min(1.0, (self._at - self._first).total_seconds() / whole))


def _moment(cursor: Mapping[str, Any], name: str) -> datetime:
    try:
        moment = datetime.fromisoformat(cursor[name])
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"the cursor of this pull cannot be read ({name}): begin anew with --restart") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def pages_of(
    slices: Slices,
    place: dict[str, Any],
    read: Callable[[datetime, datetime, int | None], list[T] | None],
    convert: Callable[[list[T], datetime, datetime], tuple[Rows, int]],
) -> Iterator[Page]:
    """Yield a page for each slice of traces.

    Parameters
    ----------
    slices : Slices
    place : dict of str to any
        Where the pull is; its `traces` follows the slices.
    read : callable
        Reads what lies between two moments; None where that is more than the number that it is given.
    convert : callable
        Makes rows of what was read, and counts the traces that are still running.

    Returns
    -------
    iterator of Page
    """
    for begin, end in slices:
        items = read(begin, end, MOST)
        if items is None:
            if slices.halve():
                continue
            items = read(begin, end, None) or []
        rows, running = convert(items, begin, end)
        slices.read(end, len(items))
        place["traces"] = slices.cursor
        left_out = {"traces that are still running": running} if running else {}
        yield Page(rows, cursor=dict(place), share=slices.share, left_out=left_out)
