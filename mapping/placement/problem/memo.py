"""What is computed once of something, whoever of several threads asks first."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar, cast

Value = TypeVar("Value")


class Memo:
    """Values by name; a copy for another process begins empty, since all of it can be computed again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[], Value]) -> Value:
        """The value of that name, made by the first who asks; the others wait for it."""
        with self._lock:
            if name not in self._values:
                self._values[name] = make()
            return cast(Value, self._values[name])

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()
