"""Values that are computed once and shared by several threads."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar, cast

Value = TypeVar("Value")


class Memo:
    """Computed values by name; a pickled copy is empty, since all can be computed again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[], Value]) -> Value:
        """Return a value, computed by the first caller; other threads wait for it."""
        with self._lock:
            if name not in self._values:
                self._values[name] = make()
            return cast(Value, self._values[name])

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()
