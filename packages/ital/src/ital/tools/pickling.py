"""Pickling of parts: they hold functions made inside functions, which pickle alone cannot store."""

import functools
import io
from collections.abc import Callable
from typing import Any


def reduced(part: Any) -> tuple[Callable[..., Any], tuple[type, bytes]]:
    """Return what ``__reduce__`` of a named tuple returns.

    Its functions are stored with what they enclose.

    Args:
        part: the named tuple.
    """
    # Only where something is pickled: ``import ital`` needs no cloudpickle.
    import cloudpickle

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]  # it has no types
        def reducer_override(self, thing: Any) -> Any:
            # cloudpickle stores a cached function by its name, which nobody can import here.
            if isinstance(thing, functools._lru_cache_wrapper) and "<locals>" in thing.__qualname__:
                return _cached, (thing.__wrapped__, thing.cache_parameters()["maxsize"])
            return super().reducer_override(thing)

    stored = io.BytesIO()
    Pickler(stored).dump(tuple(part))
    return _restored, (type(part), stored.getvalue())


def _restored(kind: type, fields: bytes) -> Any:
    import cloudpickle

    return kind(*cloudpickle.loads(fields))


def _cached(function: Callable[..., Any], maxsize: int | None) -> Callable[..., Any]:
    return functools.lru_cache(maxsize)(function)
