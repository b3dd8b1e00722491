"""The study's store: participants, steps and events in SQLite or PostgreSQL. Needs the extra ``study``.

:mod:`~ital.study.store.operations` works on the :mod:`~ital.study.store.tables`. :mod:`~ital.study.store.export` and
:mod:`~ital.study.store.backups` write files; :mod:`~ital.study.store.verification` replays every choice.
"""

from ital.study.store._store import Store, name_of, open_store
from ital.study.store._writer import NotStored
from ital.study.store.deletions import read_tombstones

__all__ = ["NotStored", "Store", "name_of", "open_store", "read_tombstones"]
