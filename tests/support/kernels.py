"""Functions that only kernels can call, for tests."""

from __future__ import annotations

from typing import Any

from mapping.kernels.decorators import njit


def from_python(inner: Any) -> Any:
    """Return a kernel with the same arguments and result that Python can call."""
    return njit(error_model="numpy")(lambda *arguments: inner(*arguments))
