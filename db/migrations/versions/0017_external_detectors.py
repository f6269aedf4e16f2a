"""Detectors whose scores are computed elsewhere and imported.

Revision ID: 0017
"""

import sqlalchemy as sa
from alembic import op

from db.tables import UtcDateTime

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "external_detectors",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("flag_when", sa.String(length=10), nullable=True),
        sa.Column("unit", sa.Text(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_external_detectors")),
    )
