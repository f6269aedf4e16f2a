"""What a team keeps beside traces: its files, its baselines, replies it has paid for, alternatives it has drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import delete, func, insert, select

from calibrate.types import Baseline
from db.audit import record as audit
from db.engine import Aggregate
from db.tables import BaselineRow, ConfigRow, DrawnRow, ReplyRow, ScoreRow, TeamFileRow, table
from db.tables.bulk import upsert
from db.tables.mapping import batches


@dataclass(frozen=True, slots=True)
class TeamFile:
    """One saved version of a file; `text` None means that ours counts again. `reason` is why it was saved, where
    somebody had to say it."""

    name: str
    text: str | None
    saved_by: str
    saved_at: datetime
    reason: str | None = None


class Files(Aggregate):
    def current(self) -> dict[str, str]:
        """The team's version of every file it has changed."""
        newest = select(func.max(TeamFileRow.id)).group_by(TeamFileRow.name)
        rows = self._rows(select(TeamFileRow.name, TeamFileRow.text).where(TeamFileRow.id.in_(newest)))
        return {name: text for name, text in rows if text is not None}

    def history(self, name: str) -> list[TeamFile]:
        """Newest first."""
        columns = [column for column in table(TeamFileRow).c if column.name != "id"]
        return self._records(TeamFile, select(*columns).where(TeamFileRow.name == name).order_by(TeamFileRow.id.desc()))

    def save(self, name: str, text: str | None, *, reason: str | None = None, by: str, now: datetime) -> None:
        newest = select(TeamFileRow.text).where(TeamFileRow.name == name).order_by(TeamFileRow.id.desc()).limit(1)
        with self._writing() as connection:
            before = connection.scalar(newest)
            row = {"name": name, "text": text, "saved_by": by, "saved_at": now, "reason": reason}
            connection.execute(insert(TeamFileRow).values(row))
            after = {"text": text} | ({"reason": reason} if reason else {})
            audit(connection, "file changed", name, by=by, before={"text": before}, after=after)


class Baselines(Aggregate):
    def current(self) -> dict[tuple[str, str], Baseline]:
        """The newest baseline of every (statistic, model)."""
        newest = select(func.max(BaselineRow.id)).group_by(BaselineRow.statistic, BaselineRow.model)
        columns = [column for column in table(BaselineRow).c if column.name != "id"]
        baselines = self._records(Baseline, select(*columns).where(BaselineRow.id.in_(newest)))
        return {(baseline.statistic, baseline.model): baseline for baseline in baselines}

    def save(self, baselines: Sequence[Baseline]) -> None:
        if baselines:
            with self._writing() as connection:
                connection.execute(insert(BaselineRow), [asdict(baseline) for baseline in baselines])
                for each in baselines:
                    figures = {"centre": each.centre, "spread": each.spread, "n": each.n}
                    audit(connection, "baseline fitted", f"{each.statistic} {each.model}".strip(), after=figures)


class Replies(Aggregate):
    """Meets `calibrate.workspace.ReplyCache`."""

    def get(self, key: str) -> dict[str, Any] | None:
        return self._scalar(select(ReplyRow.reply).where(ReplyRow.key == key))

    def put(self, key: str, model: str, reply: Mapping[str, Any], *, about: str = "") -> None:
        row = {"key": key, "model": model, "reply": dict(reply), "replied_at": datetime.now(UTC)}
        row |= {"trace_id": about or None}
        with self._writing() as connection:
            # What was kept under the key could not be read, or it would not have been asked again.
            connection.execute(upsert(connection, ReplyRow, replacing=list(row)[1:]), [row])


class Drawn(Aggregate):
    def having(self, hashes: Sequence[str]) -> set[str]:
        """Those of the contents that have drawn alternatives."""
        query = select(DrawnRow.content_hash)
        return {
            content
            for batch in batches(hashes, 900)
            for content in self._scalars(query.where(DrawnRow.content_hash.in_(batch)))
        }

    def save(
        self,
        content_hash: str,
        alternatives: Sequence[str],
        request: Mapping[str, Any],
        *,
        detectors: Sequence[str],
        now: datetime,
    ) -> None:
        """Stores the alternatives, and drops the scores that `detectors` gave the content without them."""
        row = {"alternatives": list(alternatives), "request": dict(request), "drawn_at": now}
        configs = select(ConfigRow.id).where(ConfigRow.name.in_(detectors))
        stale = sa.and_(ScoreRow.content_hash == content_hash, ScoreRow.config_id.in_(configs))
        with self._writing() as connection:
            statement = upsert(connection, DrawnRow, replacing=list(row))
            connection.execute(statement, [{"content_hash": content_hash, **row}])
            connection.execute(delete(ScoreRow).where(stale))
