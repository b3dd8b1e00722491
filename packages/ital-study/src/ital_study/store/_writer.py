"""One writer for all: jobs that arrive during a commit share the next commit."""

import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import sqlalchemy as sa

from ital_study.store._condition import StorageCondition

T = TypeVar("T")
Job = Callable[[sa.Connection], T]

MOST = 256  # jobs of one commit


class NotStored(Exception):
    """The database did not accept a write: nothing is stored, or it is unknown whether it is. Try again."""


class Writer:
    """A thread that runs jobs in transactions: many jobs per commit, each job all or nothing.

    A job's future is done only after its commit has reached the disk.

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
        self._condition, self._check = condition or StorageCondition(), check
        self._queue: queue.SimpleQueue[tuple[Job[Any], Future[Any]] | None] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="ital-study-writer", daemon=True)
        self._thread.start()

    def submit(self, job: "Job[T]") -> "Future[T]":
        """Hand over a job.

        Args:
            job: Function of a connection.

        Returns:
            A future with what the job returned, or raised; :class:`NotStored` if the database did not take it.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(NotStored("the store is closed"))
            else:
                self._queue.put((job, future))
        return future

    def close(self) -> None:
        """Finish all submitted jobs, then stop."""
        with self._lock:
            was_closed, self._closed = self._closed, True
        if not was_closed:
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            batch = [self._queue.get()]
            while len(batch) < MOST and batch[-1] is not None and not self._queue.empty():
                batch.append(self._queue.get())
            last = batch[-1] is None
            self._commit([item for item in batch if item is not None])
            if last:
                return

    def _commit(self, batch: list[tuple[Job[Any], Future[Any]]]) -> None:
        if not batch:
            return
        outcomes: list[tuple[Future[Any], Any, Exception | None]] = []
        try:
            if self._check is not None:
                self._check()
            with self._engine.begin() as connection:
                for job, future in batch:
                    try:
                        # A job that fails must not affect the others; a single job needs no savepoint.
                        with (
                            connection.begin_nested()
                            if len(batch) > 1
                            else contextlib.nullcontext()
                        ):
                            value = job(connection)
                    except sa.exc.OperationalError:
                        raise  # the database is full, locked or gone: every job of this commit fails
                    except Exception as error:
                        if connection.invalidated:
                            raise
                        if len(batch) == 1:
                            connection.rollback()
                        outcomes.append((future, None, error))
                    else:
                        outcomes.append((future, value, None))
        except Exception as error:
            cause = self._condition.failed(error)
            for _, future in batch:
                future.set_exception(NotStored(cause))
            return
        for future, value, failure in outcomes:
            if failure is None:
                future.set_result(value)
            else:
                future.set_exception(failure)
