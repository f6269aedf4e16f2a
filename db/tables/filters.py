"""Which traces a TraceFilter means, in SQL; the value of a model, operation or attribute; the day of a trace."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Engine, func, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

from calibrate.types import PURGED, LabelState, TraceFilter
from db.tables import GoldRow, TraceRow

NONE = "(none)"  # the stratum and facet of traces without the attribute


def conditions(where: TraceFilter) -> list[ColumnElement[bool]]:
    """The filter in SQL."""
    tests: list[ColumnElement[bool]] = []
    if where.since or where.until:
        window = sa.and_(
            *([TraceRow.timestamp >= where.since] if where.since else []),
            *([TraceRow.timestamp < where.until] if where.until else []),
        )
        tests.append(sa.or_(window, TraceRow.timestamp.is_(None)) if where.undated else window)
    elif not where.undated:
        tests.append(TraceRow.timestamp.is_not(None))
    for name, chosen in (("model", where.models), ("operation", where.operations)):
        if chosen:
            column = getattr(TraceRow, name)  # not `value_of`, of which there is no index
            tests.append(sa.or_(column.in_(chosen), column.is_(None)) if NONE in chosen else column.in_(chosen))
    tests += [value_of(name) == value for name, value in where.attributes.items()]
    if where.label != "any":
        tests.append(_label_test(where.label))
    if where.unpurged_at:
        tests.append(sa.or_(TraceRow.purged_at.is_(None), TraceRow.purged_at > where.unpurged_at))
    if where.text:
        like = "%" + where.text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        tests.append(sa.or_(TraceRow.question.ilike(like, escape="\\"), TraceRow.answer.ilike(like, escape="\\")))
    return tests


def is_labelled() -> ColumnElement[bool]:
    """That a trace has a gold verdict. Labels are few: by this test their traces are looked up by key, where SQLite,
    which keeps no statistics, would look up a label for each trace."""
    return TraceRow.id.in_(select(GoldRow.trace_pk))


def _label_test(state: LabelState) -> ColumnElement[bool]:
    if state == "unlabelled":
        gold = select(GoldRow.trace_pk).where(GoldRow.trace_pk == TraceRow.id).correlate(TraceRow)
        return ~gold.exists()
    if state == "labelled":
        return is_labelled()
    return TraceRow.id.in_(select(GoldRow.trace_pk).where(GoldRow.verdict == state))


def gold_of_member() -> ColumnElement[str | None]:
    """The gold verdict of a member of a sample, or that it was purged before it had one: it keeps its place in the
    draw, like one that nobody can decide, and nothing waits for it."""
    return func.coalesce(GoldRow.verdict, sa.case((TraceRow.purged_at.is_not(None), PURGED)))


def value_of(by: str) -> ColumnElement[str]:
    """The value of model, operation or an attribute, as text; NONE where a trace has none."""
    if by in ("model", "operation"):
        return func.coalesce(getattr(TraceRow, by), NONE)
    return func.coalesce(AttributeText(TraceRow.attributes, by), NONE)


class AttributeText(GenericFunction[str]):
    """The text of an attribute, whatever it is called. SQLite before 3.45 compares the key of a JSON path with the text
    of the document, in which letters outside ASCII are escaped."""

    type = sa.String()
    inherit_cache = True
    name = "trace_attribute"


@compiles(AttributeText, "sqlite")
def _on_sqlite(element: Any, compiler: Any, **options: Any) -> str:
    document, key = (compiler.process(clause, **options) for clause in element.clauses)
    return (
        "(SELECT CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST(value AS TEXT) END "
        f"FROM json_each({document}) WHERE key = {key})"
    )


@compiles(AttributeText, "postgresql")
def _on_postgresql(element: Any, compiler: Any, **options: Any) -> str:
    document, key = (compiler.process(clause, **options) for clause in element.clauses)
    return f"({document} ->> CAST({key} AS TEXT))"


def day_of(engine: Engine) -> ColumnElement[str]:
    """The day (UTC) of a trace as 2026-11-20; NULL for an undated one."""
    if engine.dialect.name == "sqlite":
        return func.substr(sa.cast(TraceRow.timestamp, sa.String), 1, 10)
    return func.to_char(func.timezone("UTC", TraceRow.timestamp), "YYYY-MM-DD")
