"""The first schema.

Revision ID: 0001
"""

import sqlalchemy as sa
from alembic import op

from db.tables import UtcDateTime

revision = "0001"
down_revision = None
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "detector_configs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("params", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_detector_configs")),
        sa.UniqueConstraint("key", name=op.f("uq_detector_configs_key")),
    )
    op.create_index(op.f("ix_detector_configs_name"), "detector_configs", ["name"], unique=False)
    op.create_table(
        "releases",
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("released_by", sa.Text(), nullable=False),
        sa.Column("released_at", UtcDateTime(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_releases")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("detectors", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("scope", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("counts", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("stop_requested", sa.Boolean(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("heartbeat_at", UtcDateTime(), nullable=True),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index(op.f("ix_runs_status"), "runs", ["status"], unique=False)
    op.create_table(
        "samples",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("design", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=True),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("pool", sa.Integer(), nullable=False),
        sa.Column("undated", sa.Integer(), nullable=False),
        sa.Column("filter", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("strata", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_samples")),
        sa.UniqueConstraint("name", name=op.f("uq_samples_name")),
    )
    op.create_table(
        "texts",
        sa.Column("digest", sa.LargeBinary(length=16), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_texts")),
    )
    op.create_table(
        "operating_points",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("detector", sa.String(length=200), nullable=False),
        sa.Column("config_id", sa.Integer(), nullable=False),
        sa.Column("sample_id", sa.Integer(), nullable=True),
        sa.Column("point", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("chosen_by", sa.Text(), nullable=False),
        sa.Column("chosen_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["config_id"], ["detector_configs.id"], name=op.f("fk_operating_points_config_id")),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name=op.f("fk_operating_points_sample_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_operating_points")),
    )
    op.create_index(op.f("ix_operating_points_detector"), "operating_points", ["detector"], unique=False)
    op.create_table(
        "scores",
        sa.Column("config_id", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.String(length=32), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("evidence", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("scored_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["config_id"], ["detector_configs.id"], name=op.f("fk_scores_config_id")),
        sa.PrimaryKeyConstraint("config_id", "content_hash", name=op.f("pk_scores")),
    )
    op.create_table(
        "traces",
        sa.Column("id", KEY, autoincrement=False, nullable=False),
        sa.Column("trace_id", sa.String(length=500), nullable=False),
        sa.Column("content_hash", sa.String(length=32), nullable=False),
        sa.Column("timestamp", UtcDateTime(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("operation", sa.Text(), nullable=True),
        sa.Column("source_group", sa.Text(), nullable=True),
        sa.Column("question", sa.Text(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("context_digest", sa.LargeBinary(length=16), nullable=True),
        sa.Column("tokens", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("alternatives", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("output_schema", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("attributes", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("imported_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["context_digest"], ["texts.digest"], name=op.f("fk_traces_context_digest")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_traces")),
        sa.UniqueConstraint("trace_id", name=op.f("uq_traces_trace_id")),
    )
    op.create_index(op.f("ix_traces_content_hash"), "traces", ["content_hash"], unique=False)
    op.create_index("ix_traces_model", "traces", ["model", "timestamp"], unique=False)
    op.create_index("ix_traces_time", "traces", ["timestamp", "id"], unique=False)
    op.create_table(
        "gold",
        sa.Column("trace_pk", KEY, autoincrement=False, nullable=False),
        sa.Column("verdict", sa.String(length=20), nullable=False),
        sa.Column("labellers", sa.Integer(), nullable=False),
        sa.Column("decided_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["trace_pk"], ["traces.id"], name=op.f("fk_gold_trace_pk")),
        sa.PrimaryKeyConstraint("trace_pk", name=op.f("pk_gold")),
    )
    op.create_index(op.f("ix_gold_verdict"), "gold", ["verdict"], unique=False)
    op.create_table(
        "labels",
        sa.Column("id", KEY, nullable=False),
        sa.Column("trace_pk", KEY, nullable=False),
        sa.Column("labeller", sa.String(length=200), nullable=False),
        sa.Column("verdict", sa.String(length=20), nullable=False),
        sa.Column("kinds", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("spans", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("sample_id", sa.Integer(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name=op.f("fk_labels_sample_id")),
        sa.ForeignKeyConstraint(["trace_pk"], ["traces.id"], name=op.f("fk_labels_trace_pk")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_labels")),
    )
    op.create_index("ix_labels_latest", "labels", ["trace_pk", "labeller", "id"], unique=False)
    op.create_index("ix_labels_recent", "labels", ["created_at"], unique=False)
    op.create_table(
        "sample_members",
        sa.Column("sample_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("trace_pk", KEY, nullable=False),
        sa.Column("inclusion_probability", sa.Double(), nullable=False),
        sa.Column("stratum", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name=op.f("fk_sample_members_sample_id")),
        sa.ForeignKeyConstraint(["trace_pk"], ["traces.id"], name=op.f("fk_sample_members_trace_pk")),
        sa.PrimaryKeyConstraint("sample_id", "position", name=op.f("pk_sample_members")),
        sa.UniqueConstraint("sample_id", "trace_pk", name=op.f("uq_sample_members_sample_id_trace_pk")),
    )
    op.create_index(op.f("ix_sample_members_trace_pk"), "sample_members", ["trace_pk"], unique=False)
    op.create_table(
        "skips",
        sa.Column("sample_id", sa.Integer(), nullable=False),
        sa.Column("trace_pk", KEY, nullable=False),
        sa.Column("labeller", sa.String(length=200), nullable=False),
        sa.Column("skipped_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name=op.f("fk_skips_sample_id")),
        sa.ForeignKeyConstraint(["trace_pk"], ["traces.id"], name=op.f("fk_skips_trace_pk")),
        sa.PrimaryKeyConstraint("sample_id", "trace_pk", "labeller", name=op.f("pk_skips")),
    )
    op.create_table(
        "sources",
        sa.Column("trace_pk", KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("text_digest", sa.LargeBinary(length=16), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("retrieval_score", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["text_digest"], ["texts.digest"], name=op.f("fk_sources_text_digest")),
        sa.ForeignKeyConstraint(["trace_pk"], ["traces.id"], name=op.f("fk_sources_trace_pk")),
        sa.PrimaryKeyConstraint("trace_pk", "position", name=op.f("pk_sources")),
    )
