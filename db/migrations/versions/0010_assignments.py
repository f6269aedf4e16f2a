"""How a sample is shared among labellers, and which of them has which trace for now.

Revision ID: 0010
"""

import sqlalchemy as sa
from alembic import op

from db.tables import Key, UtcDateTime

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "assignments",
        sa.Column("sample_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("mode", sa.String(length=20), nullable=False),
        sa.Column("overlap", sa.Double(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("set_by", sa.String(length=200), nullable=False),
        sa.Column("set_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name=op.f("fk_assignments_sample_id")),
        sa.PrimaryKeyConstraint("sample_id", name=op.f("pk_assignments")),
    )
    op.create_table(
        "leases",
        sa.Column("sample_id", sa.Integer(), nullable=False),
        sa.Column("trace_pk", Key, nullable=False),
        sa.Column("labeller", sa.String(length=200), nullable=False),
        sa.Column("until", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name=op.f("fk_leases_sample_id")),
        sa.ForeignKeyConstraint(["trace_pk"], ["traces.id"], name=op.f("fk_leases_trace_pk")),
        sa.PrimaryKeyConstraint("sample_id", "trace_pk", "labeller", name=op.f("pk_leases")),
    )
