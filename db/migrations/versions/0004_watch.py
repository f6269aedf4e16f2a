"""After a release: what it decided in production, releases that wait for a second person, rechecks.

Revision ID: 0004
"""

import sqlalchemy as sa
from alembic import op

from db.tables import Key, UtcDateTime

revision = "0004"
down_revision = "0003"
DOCUMENT = sa.JSON(none_as_null=True)


def upgrade() -> None:
    op.create_table(
        "decisions",
        sa.Column("trace_pk", Key, autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("verdict", sa.String(length=20), nullable=False),
        sa.Column("tier", sa.String(length=20), nullable=False),
        sa.Column("flags", DOCUMENT, nullable=False),
        sa.Column("reasons", DOCUMENT, nullable=False),
        sa.Column("scores", DOCUMENT, nullable=False),
        sa.Column("decided_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["trace_pk"], ["traces.id"], name=op.f("fk_decisions_trace_pk")),
        sa.ForeignKeyConstraint(["version"], ["releases.version"], name=op.f("fk_decisions_version")),
        sa.PrimaryKeyConstraint("trace_pk", "version", name=op.f("pk_decisions")),
    )
    op.create_index("ix_decisions_recent", "decisions", ["version", "decided_at"], unique=False)
    op.create_index("ix_decisions_tier", "decisions", ["tier"], unique=False)
    op.create_table(
        "proposals",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("wanted", DOCUMENT, nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("proposed_by", sa.Text(), nullable=False),
        sa.Column("proposed_at", UtcDateTime(), nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("decided_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_proposals")),
    )
    op.create_table(
        "rechecks",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("detector", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("config_id", sa.Integer(), nullable=False),
        sa.Column("sample_id", sa.Integer(), nullable=False),
        sa.Column("plan", DOCUMENT, nullable=False),
        sa.Column("outcome", DOCUMENT, nullable=True),
        sa.Column("started_by", sa.Text(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["version"], ["releases.version"], name=op.f("fk_rechecks_version")),
        sa.ForeignKeyConstraint(["config_id"], ["detector_configs.id"], name=op.f("fk_rechecks_config_id")),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name=op.f("fk_rechecks_sample_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rechecks")),
    )
    op.create_index(op.f("ix_rechecks_detector"), "rechecks", ["detector"], unique=False)
