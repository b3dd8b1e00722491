"""Researchers with names and roles, tokens for downloads, and who did what in the audit."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables, empty; of earlier actions nobody knows whose they were."""
    op.add_column("audit", sa.Column("who", sa.String(60), nullable=False, server_default=""))
    op.create_table(
        "researchers",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("role", sa.String(8), nullable=False),
        sa.Column("password", sa.Text, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
    )
