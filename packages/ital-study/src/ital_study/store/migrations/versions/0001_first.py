"""The first tables; steps, events and other logs are append-only."""

import sqlalchemy as sa
from alembic import op

from ital_study.store.append_only import NEVER, guards

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Rows of a participant may go only after their tombstone was written, in the same transaction.
ERASED = (
    "EXISTS (SELECT 1 FROM tombstones t JOIN participants p ON p.uid = t.uid "
    "WHERE p.number = OLD.participant)"
)
# (table, when its rows may be deleted); rows may never be changed.
APPEND_ONLY = (
    ("steps", ERASED),
    ("events", ERASED),
    ("tombstones", NEVER),
    ("audit", NEVER),
    ("configurations", NEVER),
)


def upgrade() -> None:
    """Create the tables, and the triggers that keep logs append-only."""
    op.create_table(
        "configurations",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "participants",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("uid", sa.String(32), nullable=False, unique=True),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("teacher", sa.String(40), nullable=False),
        sa.Column("external_hash", sa.String(64)),
        sa.Column("resume_hash", sa.String(64), unique=True),
        sa.Column("config", sa.String(64), sa.ForeignKey("configurations.hash"), nullable=False),
        sa.Column("code_version", sa.String(40), nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("order", sa.Text),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("usable", sa.Boolean, nullable=False),
        sa.Column("released", sa.Boolean, nullable=False),
        sa.Column("events", sa.Integer, nullable=False),
        sa.Column("joined_at", sa.BigInteger, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("mode", "external_hash"),
    )
    op.create_table(
        "steps",
        sa.Column(
            "participant", sa.Integer, sa.ForeignKey("participants.number"), primary_key=True
        ),
        sa.Column("map", sa.String(40), primary_key=True),
        sa.Column("learner", sa.String(16), primary_key=True),
        sa.Column("step", sa.Integer, primary_key=True),
        sa.Column("robot", sa.Integer, nullable=False),
        sa.Column("choice", sa.Integer, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
        sa.Column("timing", sa.Text, nullable=False),
        sa.Column("stored_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column(
            "participant", sa.Integer, sa.ForeignKey("participants.number"), primary_key=True
        ),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("source", sa.String(8), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("client_at", sa.BigInteger),
        sa.Column("data", sa.Text, nullable=False),
    )
    op.create_table(
        "tombstones",
        sa.Column("uid", sa.String(32), primary_key=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("deleted_at", sa.BigInteger, nullable=False),
        sa.Column("by", sa.String(16), nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("number", sa.Integer),
        sa.Column("detail", sa.Text, nullable=False),
    )
    intake = op.create_table(
        "intake",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("next_number", sa.Integer, nullable=False),
    )
    op.bulk_insert(intake, [{"id": 1, "paused": False, "next_number": 1}])
    for table, may_go in APPEND_ONLY:
        for statement in guards(op.get_bind().dialect.name, table, may_go):
            op.execute(statement)
