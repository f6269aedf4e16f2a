"""What `watch` has still to tell, kept beside the decision that it is about.

Revision ID: 0006
"""

import sqlalchemy as sa
from alembic import op

from db.tables import Key, UtcDateTime

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", Key, nullable=False),
        sa.Column("trace_pk", Key, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("queued_at", UtcDateTime(), nullable=False),
        sa.Column("due_at", UtcDateTime(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("told_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["trace_pk", "version"],
            ["decisions.trace_pk", "decisions.version"],
            name=op.f("fk_outbox_trace_pk_version"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("trace_pk", "version", name=op.f("uq_outbox_trace_pk_version")),
    )
    op.create_index("ix_outbox_untold", "outbox", ["told_at", "id"], unique=False)
