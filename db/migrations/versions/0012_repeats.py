"""Traces that come to their labeller once more, hidden among others: how far people agree with themselves.

Revision ID: 0012
"""

import sqlalchemy as sa
from alembic import op

from db.tables import Key, UtcDateTime

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "repeats",
        sa.Column("id", Key, nullable=False),
        sa.Column("sample_id", sa.Integer(), nullable=False),
        sa.Column("trace_pk", Key, nullable=False),
        sa.Column("labeller", sa.String(length=200), nullable=False),
        sa.Column("before", sa.String(length=20), nullable=False),
        sa.Column("handed_at", UtcDateTime(), nullable=False),
        sa.Column("verdict", sa.String(length=20), nullable=True),
        sa.Column("answered_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name=op.f("fk_repeats_sample_id")),
        sa.ForeignKeyConstraint(["trace_pk"], ["traces.id"], name=op.f("fk_repeats_trace_pk")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_repeats")),
        sa.UniqueConstraint("trace_pk", "labeller", name=op.f("uq_repeats_trace_pk_labeller")),
    )
