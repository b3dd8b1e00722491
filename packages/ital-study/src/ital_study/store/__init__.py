"""The study's store: participants, steps and events in SQLite or PostgreSQL.

It needs the extra ``server``. :mod:`~ital_study.store.database` connects and writes;
:mod:`~ital_study.store.operations` works on the :mod:`~ital_study.store.tables`.
:mod:`~ital_study.store.export` and :mod:`~ital_study.store.backups` write files;
:mod:`~ital_study.store.verification` replays every choice.
"""

from ital_study.store._store import Store, name_of, open_store
from ital_study.store.database import NotStored
from ital_study.store.deletions import read_tombstones

__all__ = ["NotStored", "Store", "name_of", "open_store", "read_tombstones"]
