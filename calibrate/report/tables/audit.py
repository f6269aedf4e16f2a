"""The columns of the audit log: one row for each entry."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from calibrate.report.numbers import stamp
from calibrate.report.sentences.traces import audit as sentences
from calibrate.report.tables.column import Column
from calibrate.sanitize import one_line


class Line(Protocol):
    """An entry, as `db.audit` has it."""

    @property
    def at(self) -> datetime: ...
    @property
    def who(self) -> str: ...
    @property
    def how(self) -> str: ...
    @property
    def verb(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def before(self) -> Mapping[str, Any] | None: ...
    @property
    def after(self) -> Mapping[str, Any] | None: ...


COLUMNS: tuple[Column[Line], ...] = (
    Column("at", "When (UTC)", lambda line: stamp(line.at), width=135),
    Column("who", "Who", lambda line: one_line(line.who, 60), width=150),
    Column("how", "Known by", lambda line: sentences.HOW.get(line.how, line.how), width=110),
    Column("verb", "Did", lambda line: line.verb, width=130),
    Column("what", "To", lambda line: one_line(line.what, 80), width=150),
    Column("change", "Change", lambda line: one_line(sentences.change(line.before, line.after), 300)),
)
