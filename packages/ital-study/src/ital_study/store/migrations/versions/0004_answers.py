"""The number of pages of questions that a participant has answered."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; studies that began before had no such pages."""
    op.add_column(
        "participants", sa.Column("answered", sa.Integer, nullable=False, server_default="0")
    )
