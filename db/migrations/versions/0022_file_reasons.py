"""Why a version of a team file was saved, where somebody had to say it.

Revision ID: 0022
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.add_column("team_files", sa.Column("reason", sa.Text(), nullable=True))
