"""How kernels are compiled.

Without numba's memory management (``_nrt=False``) a kernel counts no references to the arrays that it passes
on, and the compiler takes apart the tuples of arrays that it passes to functions: searches are up to twice as
fast, and compiled sooner. numba refuses to compile such a function if it allocates an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeVar, cast

import numba
from numba.core.registry import CPUDispatcher

Function = TypeVar("Function", bound=Callable[..., Any])


class Decorator(Protocol):
    """Compiles a function, which keeps its parameters."""

    def __call__(self, function: Function, /) -> Function:
        """Return the function, to be compiled at its first call."""
        ...


njit: Any = numba.njit  # its types lack some of the options below
kernel: Decorator = njit(cache=True, nogil=True, error_model="numpy", _nrt=False, no_cfunc_wrapper=True)
"""Decorator of functions that allocate nothing; Python calls them, or several kernels."""
allocating: Decorator = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
"""Decorator of functions that allocate arrays."""


class _Inner(CPUDispatcher):
    """A compiled function without the part that Python calls: that part takes a third of the compilation."""

    def __call__(self, *arguments: object, **named: object) -> NoReturn:
        """Refuse the call, which would end the process."""
        raise TypeError(f"only kernels can call {self.py_func.__name__}, which is compiled as a part of them")


def inner(function: Function) -> Function:
    """Compile a function as a part of the kernels that call it; Python cannot call it."""
    compiled: Any = njit(
        error_model="numpy", _nrt=False, forceinline=True, no_cfunc_wrapper=True, no_cpython_wrapper=True
    )(function)
    compiled.__class__ = _Inner
    return cast("Function", compiled)
