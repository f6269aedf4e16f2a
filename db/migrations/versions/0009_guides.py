"""The labelling guide in numbered versions, and under which of them a label was given.

Revision ID: 0009
"""

import sqlalchemy as sa
from alembic import op

from db.tables import UtcDateTime

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "guides",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("kinds", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("why", sa.Text(), nullable=True),
        sa.Column("saved_by", sa.String(length=200), nullable=False),
        sa.Column("saved_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_guides")),
    )
    op.add_column("labels", sa.Column("guide", sa.Integer(), nullable=True))
