"""Answers that programs log straight into the store: they wait here to be imported.

Revision ID: 0018
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "logged",
        # Its own counter: a role that may insert needs no right to a sequence. A number is never given twice.
        sa.Column("id", key, sa.Identity(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_logged")),
        sqlite_autoincrement=True,
    )
