"""What a team keeps beside traces: its files, its baselines, replies it has paid for, alternatives it has drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import delete, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from calibrate.types import Baseline
from db.engine import Aggregate, writing
from db.tables import BaselineRow, ConfigRow, DrawnRow, ReplyRow, ScoreRow, TeamFileRow, table
from db.tables.mapping import batches


@dataclass(frozen=True, slots=True)
class TeamFile:
    """One saved version of a file; `text` None means that ours counts again."""

    name: str
    text: str | None
    saved_by: str
    saved_at: datetime


class Files(Aggregate):
    def current(self) -> dict[str, str]:
        """The team's version of every file it has changed."""
        newest = select(func.max(TeamFileRow.id)).group_by(TeamFileRow.name)
        query = select(TeamFileRow.name, TeamFileRow.text).where(TeamFileRow.id.in_(newest))
        with self._reading() as connection:
            return {name: text for name, text in connection.execute(query).tuples() if text is not None}

    def history(self, name: str) -> list[TeamFile]:
        """Newest first."""
        columns = (TeamFileRow.name, TeamFileRow.text, TeamFileRow.saved_by, TeamFileRow.saved_at)
        query = select(*columns).where(TeamFileRow.name == name).order_by(TeamFileRow.id.desc())
        with self._reading() as connection:
            return [TeamFile(*row) for row in connection.execute(query).tuples()]

    def save(self, name: str, text: str | None, *, by: str, now: datetime) -> None:
        with writing(self._engine) as connection:
            connection.execute(insert(TeamFileRow).values(name=name, text=text, saved_by=by, saved_at=now))


class Baselines(Aggregate):
    def current(self) -> dict[tuple[str, str], Baseline]:
        """The newest baseline of every (statistic, model)."""
        newest = select(func.max(BaselineRow.id)).group_by(BaselineRow.statistic, BaselineRow.model)
        names = ("statistic", "model", "centre", "spread", "n", "fitted_at")
        query = select(*(table(BaselineRow).c[name] for name in names)).where(BaselineRow.id.in_(newest))
        with self._reading() as connection:
            found = [Baseline(*row) for row in connection.execute(query).tuples()]
        return {(one.statistic, one.model): one for one in found}

    def save(self, baselines: Sequence[Baseline]) -> None:
        rows = [
            {name: getattr(one, name) for name in ("statistic", "model", "centre", "spread", "n", "fitted_at")}
            for one in baselines
        ]
        if rows:
            with writing(self._engine) as connection:
                connection.execute(insert(BaselineRow), rows)


class Replies(Aggregate):
    """Meets `calibrate.workspace.ReplyCache`."""

    def get(self, key: str) -> dict[str, Any] | None:
        with self._reading() as connection:
            return connection.scalar(select(ReplyRow.reply).where(ReplyRow.key == key))

    def put(self, key: str, model: str, reply: Mapping[str, Any]) -> None:
        dialect: Any = sqlite if self._engine.dialect.name == "sqlite" else postgresql
        row = {"key": key, "model": model, "reply": dict(reply), "replied_at": datetime.now(UTC)}
        with writing(self._engine) as connection:
            connection.execute(dialect.insert(table(ReplyRow)).on_conflict_do_nothing(), [row])


class Drawn(Aggregate):
    def known(self, hashes: Sequence[str]) -> set[str]:
        """Those of the contents that have drawn alternatives."""
        found: set[str] = set()
        with self._reading() as connection:
            for some in batches(hashes, 900):
                found.update(connection.scalars(select(DrawnRow.content_hash).where(DrawnRow.content_hash.in_(some))))
        return found

    def save(
        self,
        content_hash: str,
        alternatives: Sequence[str],
        request: Mapping[str, Any],
        *,
        detectors: Sequence[str],
        now: datetime,
    ) -> None:
        """Keeps the alternatives and drops what `detectors` said of the content without them."""
        dialect: Any = sqlite if self._engine.dialect.name == "sqlite" else postgresql
        row = {"alternatives": list(alternatives), "request": dict(request), "drawn_at": now}
        statement = dialect.insert(table(DrawnRow)).values(content_hash=content_hash, **row)
        statement = statement.on_conflict_do_update(index_elements=["content_hash"], set_=row)
        configs = select(ConfigRow.id).where(ConfigRow.name.in_(detectors))
        stale = sa.and_(ScoreRow.content_hash == content_hash, ScoreRow.config_id.in_(configs))
        with writing(self._engine) as connection:
            connection.execute(statement)
            connection.execute(delete(ScoreRow).where(stale))
