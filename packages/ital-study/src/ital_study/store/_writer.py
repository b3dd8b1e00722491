"""One writer for all: jobs that arrive during a commit share the next commit."""

import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from ital_study.store._condition import StorageCondition

T = TypeVar("T")
Job = Callable[[sa.Connection], T]

MOST = 256  # jobs of one commit


class NotStored(Exception):
    """The database did not accept a write. Try again.

    Nothing is stored, or it is unknown whether it is.
    """


class _Submitted(NamedTuple):
    """A job, and the future of whoever waits for it."""

    job: Job[Any]
    future: Future[Any]


class _Outcome(NamedTuple):
    """What a job returned or raised, kept until its commit has reached the disk."""

    future: Future[Any]
    value: Any = None
    failure: Exception | None = None

    def tell(self) -> None:
        """Wake whoever waits for the job."""
        if self.failure is not None:
            self.future.set_exception(self.failure)
            return
        self.future.set_result(self.value)


class Writer:
    """A thread that runs jobs in transactions: many jobs per commit, each job all or nothing.

    A job's future is done only after its commit has reached the disk. So a kill at any moment loses
    nothing that anybody was told: what is not committed was not acknowledged.

    Args:
        engine: The database.
        condition: Told of every commit that fails.
        check: Raises an error if the database is no longer there.
    """

    def __init__(
        self,
        engine: sa.Engine,
        condition: StorageCondition | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self._engine = engine.execution_options(write=True)
        self._condition = condition or StorageCondition()
        self._check = check
        # None asks the thread to stop.
        self._queue: queue.SimpleQueue[_Submitted | None] = queue.SimpleQueue()
        self._closed = False
        # Nothing is put behind the None: its future would never be done.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="ital-study-writer", daemon=True)
        self._thread.start()

    def submit(self, job: "Job[T]") -> "Future[T]":
        """Hand over a job.

        Args:
            job: Function of a connection.

        Returns:
            A future with what the job returned, or raised; :class:`NotStored` if the database did
            not take it.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(NotStored("the store is closed"))
            else:
                self._queue.put(_Submitted(job, future))
        return future

    def close(self) -> None:
        """Finish all submitted jobs, then stop."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            batch = [self._queue.get()]
            # What has arrived meanwhile joins: a commit waits for the disk, whatever its size.
            while len(batch) < MOST and batch[-1] is not None and not self._queue.empty():
                batch.append(self._queue.get())
            self._commit([item for item in batch if item is not None])
            if batch[-1] is None:
                return

    def _commit(self, batch: list[_Submitted]) -> None:
        if not batch:
            return
        try:
            outcomes = self._in_one_transaction(batch)
        except Exception as error:
            # Nothing was committed, or the connection broke while it was: nobody may be told that
            # it is stored. Jobs that are repeated find what is there.
            cause = self._condition.failed(error)
            for item in batch:
                item.future.set_exception(NotStored(cause))
            return
        # Only now: the commit has returned, so it is on the disk (PRAGMAS in ``_engine``).
        for outcome in outcomes:
            outcome.tell()

    def _in_one_transaction(self, batch: list[_Submitted]) -> list[_Outcome]:
        if self._check is not None:
            self._check()
        with self._engine.begin() as connection:
            return [_run_job(connection, item, is_alone=len(batch) == 1) for item in batch]


def _run_job(connection: sa.Connection, item: _Submitted, *, is_alone: bool) -> _Outcome:
    try:
        with _savepoint(connection, is_alone):
            value = item.job(connection)
    except sa.exc.OperationalError:
        raise  # the database is full, locked or gone: every job of this commit fails
    except Exception as error:
        if connection.invalidated:
            raise
        if is_alone:
            connection.rollback()
        return _Outcome(item.future, failure=error)
    return _Outcome(item.future, value)


def _savepoint(connection: sa.Connection, is_alone: bool) -> contextlib.AbstractContextManager[Any]:
    """Return a savepoint, so that a job that fails does not affect the others of its commit."""
    if is_alone:
        return contextlib.nullcontext()
    return connection.begin_nested()
