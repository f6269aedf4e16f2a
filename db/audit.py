"""The audit log: who did what, how we know who it was, and what stood there before and after. It is only added to.

`identify_by` says who is acting: the pages ask the session, the command line the login name. Every entry names that
person, and what they must not write is refused before the transaction commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, exists, insert, select

from calibrate.errors import Forbidden
from db.engine import CHECKS, Aggregate
from db.revision import Group
from db.tables import AuditRow, table

How = Literal["oidc", "header", "login", "environment", "typed", "unstated"]
REFUSAL = 300  # letters that are kept of one
REFUSED_ANEW = timedelta(minutes=1)
VERIFIED: tuple[How, ...] = ("oidc", "header", "login")


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who acts, and how we know their name. `may_write` are the groups of tables that their roles let them
    write to; None is all."""

    name: str
    how: How
    may_write: frozenset[Group] | None = None

    @property
    def verified(self) -> bool:
        """Whether somebody else than they themselves says who they are."""
        return self.how in VERIFIED


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the log. `verb` is like "point saved", `what` the thing it was done to."""

    id: int
    at: datetime
    who: str
    how: How
    verb: str
    what: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


def _nobody() -> Actor | None:
    return None


_carried: ContextVar[Actor | None] = ContextVar("carried", default=None)
_identify: Callable[[], Actor | None] = _nobody


def identify_by(function: Callable[[], Actor | None]) -> None:
    """Set what says who acts in this process; None from it: it is not known, as in a script of one's own."""
    global _identify
    _identify = function


@contextmanager
def acting_as(person: Actor | None) -> Iterator[None]:
    """Carry somebody into a thread that works for them: a thread asks nobody who they are. None changes nothing."""
    before = _carried.set(person)
    try:
        yield
    finally:
        _carried.reset(before)


def actor() -> Actor | None:
    return _carried.get() or _identify()


def record(
    connection: Connection,
    verb: str,
    what: str,
    *,
    by: str | None = None,
    now: datetime | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Add an entry within the caller's write transaction. `by` is named where it is not known who acts."""
    person = actor() or Actor(by or "somebody", "unstated")
    row = {
        "at": now or datetime.now(UTC),
        "who": person.name[:200],
        "how": person.how,
        "verb": verb,
        "what": what[:500],
    }
    documents = {name: dict(value) if value else None for name, value in (("before", before), ("after", after))}
    connection.execute(insert(table(AuditRow)), [row | documents])


class Audit(Aggregate):
    def note(self, verb: str, what: str, **more: Any) -> None:
        """Add an entry in a transaction of its own; `more` is of `record`."""
        with self._writing() as connection:
            record(connection, verb, what, **more)

    def refused(self, what: str) -> None:
        """Note that the person who acts was refused something: once a minute, however often they try."""
        now, person = datetime.now(UTC), actor() or Actor("somebody", "unstated")
        same = (AuditRow.verb == "refused", AuditRow.who == person.name[:200], AuditRow.what == what[:REFUSAL])
        with self._writing() as connection:
            if not connection.scalar(select(exists().where(*same, AuditRow.at > now - REFUSED_ANEW))):
                record(connection, "refused", what[:REFUSAL], now=now)

    def entries(
        self, *, who: str | None = None, verb: str | None = None, limit: int | None = None, before: int | None = None
    ) -> list[Entry]:
        """The newest first; those of a person, of a verb, and older than the entry `before`."""
        query = select(table(AuditRow)).order_by(AuditRow.id.desc()).limit(limit)
        query = query.where(*([AuditRow.who == who] if who else []), *([AuditRow.verb == verb] if verb else []))
        return self._records(Entry, query if before is None else query.where(AuditRow.id < before))

    def people(self) -> Sequence[str]:
        return self._scalars(select(AuditRow.who).distinct().order_by(AuditRow.who))

    def verbs(self) -> Sequence[str]:
        return self._scalars(select(AuditRow.verb).distinct().order_by(AuditRow.verb))


def _hold(touched: frozenset[Group]) -> None:
    """Refuse a transaction that writes what the roles of the person who acts do not allow."""
    person = actor()
    if person is None or person.may_write is None:
        return
    if forbidden := sorted(touched - person.may_write):
        raise Forbidden(
            f"{person.name} has no role that may change {forbidden[0]}: nothing was changed; ask for the role in the "
            "file that TOUCHSTONE_ROLES names"
        )


CHECKS.append(_hold)
