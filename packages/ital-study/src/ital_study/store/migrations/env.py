"""Runs migrations on the connection that :mod:`ital_study.store` provides."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=context.config.attributes.get("metadata"))
context.run_migrations()
