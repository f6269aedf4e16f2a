"""What labellers ask the lead to look at.

Revision ID: 0011
"""

import sqlalchemy as sa
from alembic import op

from db.tables import Key, UtcDateTime

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "flags",
        sa.Column("trace_pk", Key, nullable=False),
        sa.Column("labeller", sa.String(length=200), nullable=False),
        sa.Column("sample_id", sa.Integer(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("raised_at", UtcDateTime(), nullable=False),
        sa.Column("settled_by", sa.String(length=200), nullable=True),
        sa.Column("settled_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name=op.f("fk_flags_sample_id")),
        sa.ForeignKeyConstraint(["trace_pk"], ["traces.id"], name=op.f("fk_flags_trace_pk")),
        sa.PrimaryKeyConstraint("trace_pk", "labeller", name=op.f("pk_flags")),
    )
