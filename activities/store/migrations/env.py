"""Alembic's entry: runs the migrations on the connection that the store hands over."""

from __future__ import annotations

from alembic import context

config = context.config

context.configure(
    connection=config.attributes["connection"],
    target_metadata=config.attributes["metadata"],
    render_as_batch=True,
    # The store's transaction encloses all of it, on SQLite too.
    transactional_ddl=True,
)
context.run_migrations()
