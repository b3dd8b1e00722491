"""Frozen plans, which are append-only, and when the researcher looked at curves by condition."""

import sqlalchemy as sa
from alembic import op

from ital_study.store.append_only import guards

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, empty, and add the column: nobody has looked."""
    op.add_column("intake", sa.Column("unblinded_at", sa.BigInteger))
    op.create_table(
        "freezes",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("signature", sa.String(64), nullable=False),
    )
    for statement in guards(op.get_bind().dialect.name, "freezes"):
        op.execute(statement)
