"""The study's store: participants, steps and events in SQLite or PostgreSQL. Needs the extra ``study``.

:mod:`~ital.study.store.operations` says what can be done with the :mod:`~ital.study.store.tables`. Files are made by
:mod:`~ital.study.store.export` and :mod:`~ital.study.store.backups`; :mod:`~ital.study.store.verification` replays.
"""

from ital.study.store._store import Store, open_store, read_tombstones
from ital.study.store._writer import NotStored

__all__ = ["NotStored", "Store", "open_store", "read_tombstones"]
