"""Thresholds one may trust: how a sample was drawn, adjudication, certifications, ensembles.

Revision ID: 0003
"""

import sqlalchemy as sa
from alembic import op

from db.tables import UtcDateTime

revision = "0003"
down_revision = "0002"
DOCUMENT = sa.JSON(none_as_null=True)


def upgrade() -> None:
    op.create_index("ix_scores_status", "scores", ["status", "config_id"], unique=False)
    op.add_column("samples", sa.Column("options", DOCUMENT, nullable=True))
    op.add_column("labels", sa.Column("adjudicates", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "certifications",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("detector", sa.String(length=200), nullable=False),
        sa.Column("config_id", sa.Integer(), nullable=False),
        sa.Column("sample_id", sa.Integer(), nullable=True),
        sa.Column("fresh_sample_id", sa.Integer(), nullable=True),
        sa.Column("plan", DOCUMENT, nullable=False),
        sa.Column("outcome", DOCUMENT, nullable=True),
        sa.Column("started_by", sa.Text(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["config_id"], ["detector_configs.id"], name=op.f("fk_certifications_config_id")),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name=op.f("fk_certifications_sample_id")),
        sa.ForeignKeyConstraint(["fresh_sample_id"], ["samples.id"], name=op.f("fk_certifications_fresh_sample_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_certifications")),
    )
    op.create_index(op.f("ix_certifications_detector"), "certifications", ["detector"], unique=False)
    op.create_table(
        "ensembles",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("document", DOCUMENT, nullable=False),
        sa.Column("saved_by", sa.Text(), nullable=False),
        sa.Column("saved_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ensembles")),
    )
    op.create_index(op.f("ix_ensembles_name"), "ensembles", ["name"], unique=False)
