"""The study's store: participants, steps and events in SQLite or PostgreSQL. Needs the extra ``study``."""

from ital.study.store._store import NotStored, Store, open_store

__all__ = ["NotStored", "Store", "open_store"]
