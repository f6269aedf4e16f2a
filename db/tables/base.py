"""What every table shares: the metadata, column types, and the revisions of groups of tables. Times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime, in UTC on every database (SQLite keeps no zone)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a naive time reached the store: {value!r}")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# SQLite counts rows by INTEGER only; PostgreSQL wants room beyond two billion.
Key = BigInteger().with_variant(Integer, "sqlite")
Document = JSON(none_as_null=True)


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_N_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: UtcDateTime, dict[str, Any]: Document, list[Any]: Document, str: Text}  # noqa: RUF012


def table(row: type[Base]) -> Table:
    """The Core table behind a row class: inserts of many rows and whole-row selects go by it."""
    return cast(Table, row.__table__)


class RevisionRow(Base):
    """The revision of a group of tables: another with every write to one of them (db.revision)."""

    __tablename__ = "revisions"
    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    stamp: Mapped[int] = mapped_column(BigInteger)
