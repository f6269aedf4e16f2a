"""How many traces each day has of a model and an operation, kept by triggers: pages count without reading the traces.

Revision ID: 0013
"""

import sqlalchemy as sa
from alembic import op

from db.tables import UtcDateTime

revision = "0013"
down_revision = "0012"

KEY = "coalesce({day}, ''), coalesce({row}model, '(none)'), coalesce({row}operation, '(none)')"
SQLITE_DAY = "substr({row}timestamp, 1, 10)"
POSTGRES_DAY = "to_char(timezone('UTC', {row}timestamp), 'YYYY-MM-DD')"
COLUMNS = "INSERT INTO trace_days (day, model, operation, traces, first, last) SELECT "
GROUPED = COLUMNS + "{key}, count(*), min(timestamp), max(timestamp) FROM {table} GROUP BY 1, 2, 3"


def _key(day: str, row: str = "") -> str:
    return KEY.format(day=day.format(row=row), row=row)


def _on_sqlite() -> None:
    came = (
        f"{COLUMNS}{_key(SQLITE_DAY, 'NEW.')}, 1, NEW.timestamp, NEW.timestamp WHERE true ON CONFLICT DO UPDATE SET "
        "traces = traces + 1, first = min(first, excluded.first), last = max(last, excluded.last);"
    )
    went = f"UPDATE trace_days SET traces = traces - 1 WHERE (day, model, operation) = ({_key(SQLITE_DAY, 'OLD.')});"
    op.execute(GROUPED.format(key=_key(SQLITE_DAY), table="traces"))
    op.execute(f"CREATE TRIGGER trace_days_come AFTER INSERT ON traces BEGIN {came} END")
    op.execute(f"CREATE TRIGGER trace_days_go AFTER DELETE ON traces BEGIN {went} END")
    changed = "AFTER UPDATE OF timestamp, model, operation ON traces"
    op.execute(f"CREATE TRIGGER trace_days_change {changed} BEGIN {went} {came} END")


def _on_postgresql() -> None:
    key = _key(POSTGRES_DAY)
    op.execute("LOCK TABLE traces IN SHARE ROW EXCLUSIVE MODE")  # nobody imports between the count and the triggers
    op.execute(GROUPED.format(key=key, table="traces"))
    # Sorted, so that two writers never wait for each other in turn.
    op.execute(
        "CREATE FUNCTION trace_days() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF TG_OP IN ('INSERT', 'UPDATE') THEN "
        + COLUMNS.replace("trace_days", "trace_days AS kept")
        + f"{key}, count(*), min(timestamp), max(timestamp) FROM came GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 "
        "ON CONFLICT (day, model, operation) DO UPDATE SET traces = kept.traces + excluded.traces, "
        "first = least(kept.first, excluded.first), last = greatest(kept.last, excluded.last); END IF; "
        "IF TG_OP IN ('UPDATE', 'DELETE') THEN "
        f"UPDATE trace_days SET traces = trace_days.traces - gone.traces FROM (SELECT {key}, count(*) FROM went "
        "GROUP BY 1, 2, 3) AS gone (day, model, operation, traces) WHERE trace_days.day = gone.day AND "
        "trace_days.model = gone.model AND trace_days.operation = gone.operation; END IF; RETURN NULL; END $$"
    )
    for name, event, seen in (
        ("come", "INSERT", "NEW TABLE AS came"),
        ("go", "DELETE", "OLD TABLE AS went"),
        ("change", "UPDATE", "NEW TABLE AS came OLD TABLE AS went"),
    ):
        op.execute(
            f"CREATE TRIGGER trace_days_{name} AFTER {event} ON traces REFERENCING {seen} "
            "FOR EACH STATEMENT EXECUTE FUNCTION trace_days()"
        )


def upgrade() -> None:
    op.create_table(
        "trace_days",
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("traces", sa.BigInteger(), nullable=False),
        sa.Column("first", UtcDateTime(), nullable=True),
        sa.Column("last", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("day", "model", "operation", name=op.f("pk_trace_days")),
    )
    _on_sqlite() if op.get_bind().dialect.name == "sqlite" else _on_postgresql()
