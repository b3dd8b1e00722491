"""Triggers that keep rows of a table as they are. Migrations use them, so they never change."""

NEVER = "1 = 0"  # when rows may be deleted


def guards(dialect: str, table: str, may_go: str = NEVER) -> list[str]:
    """Return the statements that refuse changes of rows, and deletions that are not allowed.

    Args:
        dialect: ``sqlite`` or ``postgresql``.
        table: The table.
        may_go: Condition under which a row may be deleted.

    Returns:
        SQL statements.
    """
    message = f"{table} is append-only"
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER {table}_kept BEFORE UPDATE ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END",
            f"CREATE TRIGGER {table}_stay BEFORE DELETE ON {table} WHEN NOT {may_go} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END",
        ]
    body = f"IF TG_OP = 'DELETE' AND {may_go} THEN RETURN OLD; END IF; RAISE EXCEPTION '{message}';"
    return [
        f"CREATE OR REPLACE FUNCTION {table}_guard() RETURNS trigger AS $$ BEGIN {body} END $$ "
        "LANGUAGE plpgsql",
        f"CREATE TRIGGER {table}_kept BEFORE UPDATE OR DELETE ON {table} "
        f"FOR EACH ROW EXECUTE FUNCTION {table}_guard()",
    ]
