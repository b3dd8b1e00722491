"""The tables: participants with their current state; steps and events, which are append-only."""

import sqlalchemy as sa

metadata = sa.MetaData()

configurations = sa.Table(
    "configurations",
    metadata,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("added_at", sa.BigInteger, nullable=False),
)

participants = sa.Table(
    "participants",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("uid", sa.String(32), nullable=False, unique=True),
    sa.Column("mode", sa.String(16), nullable=False),
    sa.Column("teacher", sa.String(40), nullable=False),
    sa.Column("external_hash", sa.String(64)),
    sa.Column("resume_hash", sa.String(64), unique=True),
    sa.Column("config", sa.ForeignKey("configurations.hash"), nullable=False),
    sa.Column("code_version", sa.String(40), nullable=False),
    sa.Column("stage", sa.String(16), nullable=False),
    sa.Column("order", sa.Text),
    sa.Column("done", sa.Integer, nullable=False, default=0),
    sa.Column("tries", sa.Integer, nullable=False, default=0),
    sa.Column("usable", sa.Boolean, nullable=False, default=False),
    sa.Column("released", sa.Boolean, nullable=False, default=False),
    sa.Column("events", sa.Integer, nullable=False, default=0),
    sa.Column("joined_at", sa.BigInteger, nullable=False),
    sa.Column("seen_at", sa.BigInteger, nullable=False),
    sa.Column("language", sa.String(12), nullable=False, default="en"),
    sa.Column("bytes", sa.Integer, nullable=False, default=0),
    sa.Column("excluded", sa.Text),
    sa.Column("answered", sa.Integer, nullable=False, default=0),
    sa.Column("part", sa.Integer, nullable=False, default=1),
    sa.Column("opens_at", sa.BigInteger),
    sa.Column("closes_at", sa.BigInteger),
    sa.UniqueConstraint("mode", "external_hash"),
)

steps = sa.Table(
    "steps",
    metadata,
    sa.Column("participant", sa.ForeignKey("participants.number"), primary_key=True),
    sa.Column("map", sa.String(40), primary_key=True),
    sa.Column("learner", sa.String(16), primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True),
    sa.Column("robot", sa.Integer, nullable=False),
    sa.Column("choice", sa.Integer, nullable=False),
    sa.Column("state", sa.LargeBinary, nullable=False),
    sa.Column("timing", sa.Text, nullable=False),
    sa.Column("stored_at", sa.BigInteger, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("participant", sa.ForeignKey("participants.number"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("source", sa.String(8), nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("client_at", sa.BigInteger),
    sa.Column("data", sa.Text, nullable=False),
)

tombstones = sa.Table(
    "tombstones",
    metadata,
    sa.Column("uid", sa.String(32), primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("deleted_at", sa.BigInteger, nullable=False),
    sa.Column("by", sa.String(16), nullable=False),
    sa.Column("external_hash", sa.String(64)),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("action", sa.String(32), nullable=False),
    sa.Column("number", sa.Integer),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("who", sa.String(60), nullable=False, default=""),
)

researchers = sa.Table(
    "researchers",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("role", sa.String(8), nullable=False),
    sa.Column("password", sa.Text, nullable=False),  # an Argon2 hash
    sa.Column("added_at", sa.BigInteger, nullable=False),
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(40), nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("revoked_at", sa.BigInteger),
)

intake = sa.Table(
    "intake",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("paused", sa.Boolean, nullable=False),
    sa.Column("next_number", sa.Integer, nullable=False),
    # When the researcher first saw curves by condition before the end of the intake.
    sa.Column("unblinded_at", sa.BigInteger),
)

freezes = sa.Table(
    "freezes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("signature", sa.String(64), nullable=False),
)

server_key = sa.Table(
    "server_key",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("fingerprint", sa.String(64), nullable=False),
)

# Parents before children: rows are inserted in this order and deleted in reverse.
ALL = (
    configurations,
    participants,
    steps,
    events,
    tombstones,
    audit,
    intake,
    server_key,
    freezes,
    researchers,
    tokens,
)
