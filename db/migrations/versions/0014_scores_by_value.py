"""An index of scores by value: the most suspicious traces are found without sorting all.

Revision ID: 0014
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    scored = sa.text("value NOTNULL")
    columns = ["config_id", "value"]
    op.create_index("ix_scores_value", "scores", columns, sqlite_where=scored, postgresql_where=scored)
