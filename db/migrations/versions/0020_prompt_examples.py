"""Which labelled traces were set aside for a judge's prompt, and what new prompts were found to gain.

Revision ID: 0020
"""

import sqlalchemy as sa
from alembic import op

from db.tables import Document, Key, UtcDateTime

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.create_table(
        "prompt_examples",
        sa.Column("id", Key, nullable=False),
        sa.Column("file", sa.String(length=200), nullable=False),
        sa.Column("version", sa.String(length=16), nullable=False),
        sa.Column("trace_pk", Key, nullable=False),
        sa.Column("quoted", sa.Boolean(), nullable=False),
        sa.Column("guide", sa.Integer(), nullable=False),
        sa.Column("saved_by", sa.String(length=200), nullable=False),
        sa.Column("saved_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["trace_pk"], ["traces.id"], name=op.f("fk_prompt_examples_trace_pk")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prompt_examples")),
        sa.UniqueConstraint("file", "version", "trace_pk", name=op.f("uq_prompt_examples_file_version_trace_pk")),
    )
    op.create_index(op.f("ix_prompt_examples_trace_pk"), "prompt_examples", ["trace_pk"], unique=False)
    op.create_table(
        "prompt_comparisons",
        sa.Column("id", Key, nullable=False),
        sa.Column("detector", sa.String(length=200), nullable=False),
        sa.Column("before", sa.String(length=16), nullable=False),
        sa.Column("after", sa.String(length=16), nullable=False),
        sa.Column("document", Document, nullable=False),
        sa.Column("compared_by", sa.String(length=200), nullable=False),
        sa.Column("compared_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prompt_comparisons")),
    )
