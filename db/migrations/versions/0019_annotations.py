"""What `watch` has still to write to other systems, kept beside the decision that it is about.

Revision ID: 0019
"""

import sqlalchemy as sa
from alembic import op

from db.tables import Key, UtcDateTime

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.create_table(
        "annotations",
        sa.Column("id", Key, nullable=False),
        sa.Column("trace_pk", Key, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(length=20), nullable=False),
        sa.Column("queued_at", UtcDateTime(), nullable=False),
        sa.Column("due_at", UtcDateTime(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("told_at", UtcDateTime(), nullable=True),
        sa.Column("given_up_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["trace_pk", "version"],
            ["decisions.trace_pk", "decisions.version"],
            name=op.f("fk_annotations_trace_pk_version"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_annotations")),
        sa.UniqueConstraint("trace_pk", "version", "target", name=op.f("uq_annotations_trace_pk_version_target")),
    )
    waiting = sa.text("told_at ISNULL AND given_up_at ISNULL")
    columns = ["target", "due_at"]
    op.create_index("ix_annotations_waiting", "annotations", columns, sqlite_where=waiting, postgresql_where=waiting)
