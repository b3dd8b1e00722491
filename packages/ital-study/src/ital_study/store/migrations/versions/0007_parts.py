"""Studies in several sessions: the part that somebody is in, and when the next one is open."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; everybody who began before is in the first part."""
    op.add_column("participants", sa.Column("part", sa.Integer, nullable=False, server_default="1"))
    op.add_column("participants", sa.Column("opens_at", sa.BigInteger))
    op.add_column("participants", sa.Column("closes_at", sa.BigInteger))
