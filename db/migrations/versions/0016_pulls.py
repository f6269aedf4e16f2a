"""How far each pull from another system has come.

Revision ID: 0016
"""

import sqlalchemy as sa
from alembic import op

from db.tables import Document, UtcDateTime

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "pulls",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("system", sa.String(length=20), nullable=False),
        sa.Column("settings", Document, nullable=False),
        sa.Column("cursor", Document, nullable=True),
        sa.Column("traces", sa.BigInteger(), nullable=False),
        sa.Column("begun_at", UtcDateTime(), nullable=False),
        sa.Column("pulled_at", UtcDateTime(), nullable=True),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_pulls")),
    )
