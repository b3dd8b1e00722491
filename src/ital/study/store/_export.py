"""x."""

from typing import Any


def steps_table(store: Any, mode: str) -> Any: ...
def stream(store: Any, file: str, mode: str) -> Any: ...
