"""Language, stored bytes and exclusion of participants; a keyed hash of deleted people."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; those who began before speak the study's first language."""
    op.add_column(
        "participants", sa.Column("language", sa.String(12), nullable=False, server_default="en")
    )
    op.add_column(
        "participants", sa.Column("bytes", sa.Integer, nullable=False, server_default="0")
    )
    op.add_column("participants", sa.Column("excluded", sa.Text))
    op.add_column("tombstones", sa.Column("external_hash", sa.String(64)))
