"""What detectors on models need: usage, replies, drawn alternatives, baselines, the team's files.

Revision ID: 0002
"""

import sqlalchemy as sa
from alembic import op

from db.tables import UtcDateTime

revision = "0002"
down_revision = "0001"
DOCUMENT = sa.JSON(none_as_null=True)


def upgrade() -> None:
    op.add_column("scores", sa.Column("usage", DOCUMENT, nullable=True))
    op.create_index("ix_scores_recent", "scores", ["config_id", "scored_at"], unique=False)
    op.add_column("runs", sa.Column("options", DOCUMENT, nullable=True))
    op.create_table(
        "drawn_alternatives",
        sa.Column("content_hash", sa.String(length=32), nullable=False),
        sa.Column("alternatives", DOCUMENT, nullable=False),
        sa.Column("request", DOCUMENT, nullable=False),
        sa.Column("drawn_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("content_hash", name=op.f("pk_drawn_alternatives")),
    )
    op.create_table(
        "replies",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("reply", DOCUMENT, nullable=False),
        sa.Column("replied_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_replies")),
    )
    op.create_table(
        "baselines",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("statistic", sa.String(length=100), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("centre", sa.Double(), nullable=False),
        sa.Column("spread", sa.Double(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("fitted_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_baselines")),
    )
    op.create_table(
        "team_files",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("saved_by", sa.Text(), nullable=False),
        sa.Column("saved_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_team_files")),
    )
    op.create_index(op.f("ix_team_files_name"), "team_files", ["name"], unique=False)
