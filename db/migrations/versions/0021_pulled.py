"""Which pull each answer came by.

Revision ID: 0021
"""

import sqlalchemy as sa
from alembic import op

from db.tables import Key

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.create_table(
        "origins",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("pull", sa.String(length=200), nullable=False),
        sa.Column("system", sa.String(length=20), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_origins")),
        sa.UniqueConstraint("pull", "system", name=op.f("uq_origins_pull_system")),
    )
    op.create_table(
        "pulled",
        sa.Column("origin_id", sa.Integer(), nullable=False),
        sa.Column("trace_pk", Key, nullable=False),
        sa.ForeignKeyConstraint(["origin_id"], ["origins.id"], name=op.f("fk_pulled_origin_id")),
        sa.ForeignKeyConstraint(["trace_pk"], ["traces.id"], name=op.f("fk_pulled_trace_pk")),
        sa.PrimaryKeyConstraint("origin_id", "trace_pk", name=op.f("pk_pulled")),
        sqlite_with_rowid=False,
    )
