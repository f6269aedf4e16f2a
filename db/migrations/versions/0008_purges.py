"""Traces whose texts were purged, which trace a reply is about, and a list of purges.

Revision ID: 0008
"""

import sqlalchemy as sa
from alembic import op

from db.tables import UtcDateTime

revision = "0008"
down_revision = "0007"
DOCUMENT = sa.JSON(none_as_null=True)


def upgrade() -> None:
    op.add_column("traces", sa.Column("purged_at", UtcDateTime(), nullable=True))
    purged = sa.text("purged_at NOTNULL")
    op.create_index("ix_traces_purged", "traces", ["id"], sqlite_where=purged, postgresql_where=purged)
    op.add_column("replies", sa.Column("trace_id", sa.String(length=500), nullable=True))
    op.create_index("ix_replies_trace_id", "replies", ["trace_id"], unique=False)
    op.create_table(
        "purges",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("chosen", DOCUMENT, nullable=False),
        sa.Column("counts", DOCUMENT, nullable=False),
        sa.Column("purged_at", UtcDateTime(), nullable=False),
        sa.Column("compacted_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_purges")),
    )
