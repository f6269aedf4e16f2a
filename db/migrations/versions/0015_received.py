"""Requests with spans that were acknowledged and wait to be imported, and who joins them.

Revision ID: 0015
"""

import sqlalchemy as sa
from alembic import op

from db.tables import UtcDateTime

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "received",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("spans", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("unpacked", sa.Integer(), nullable=False),
        sa.Column("came_at", UtcDateTime(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_received")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "joiners",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("holder", sa.String(length=40), nullable=False),
        sa.Column("until", UtcDateTime(), nullable=False),
        sa.Column("settled", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_joiners")),
    )
    if op.get_bind().dialect.name == "postgresql":
        # Bodies are packed already, or are about to go: to compress them would cost more than it saves.
        op.execute("ALTER TABLE received ALTER COLUMN body SET STORAGE EXTERNAL")
