"""Array types of the data types, and checks that copy arrays and make them read-only."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from registry.errors import InvalidValue

Int8s = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Guids = NDArray[np.uint64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_DTYPES: Mapping[str, Any] = MappingProxyType(
    {
        "Int8s": np.uint8,
        "Ints": np.int32,
        "Longs": np.int64,
        "Guids": np.uint64,
        "Floats": np.float64,
        "Bools": np.bool_,
    }
)


_NUMERIC = "biufO"
"""Kinds of numpy arrays that may hold numbers."""


def freeze(owner: Any, name: str, dtype: Any, size: int | None) -> None:
    """Replace a field of a frozen dataclass by a read-only vector of this type with `size` entries."""
    label = f"{type(owner).__name__}.{name}"
    values = readonly(getattr(owner, name), dtype, label)
    count = values.size if size is None else size
    object.__setattr__(owner, name, of_length(values, count, label))


def freeze_all(owner: Any, size: int | None, *names: str) -> None:
    """Freeze fields of a dataclass; each has the type of its annotation (`Ints`, `Floats`, ...)."""
    for name in names:
        annotation = str(type(owner).__dataclass_fields__[name].type)
        freeze(owner, name, _DTYPES[annotation.partition(" ")[0]], size)


def readonly(values: Any, dtype: Any, label: str) -> NDArray[Any]:
    """Return the values as a read-only C-ordered array; the same object if it already is one.

    Raises:
        InvalidValue: Values that are no numbers, fractions where whole numbers are needed, or numbers too
            large.
    """
    given = _array(values, label, "MO" if np.dtype(dtype).kind == "M" else _NUMERIC)
    if given.dtype == dtype and not given.flags.writeable and given.flags.c_contiguous:
        return given
    with np.errstate(invalid="ignore"):
        try:
            copy = np.array(given, dtype=dtype, order="C")
        except OverflowError as error:
            raise InvalidValue(label, f"does not fit {np.dtype(dtype).name}") from error
        except (TypeError, ValueError) as error:
            raise InvalidValue(label, "must be numbers") from error
    if np.dtype(dtype).kind in "iu" and not np.array_equal(copy, given):
        fraction = given.dtype.kind == "f" and not np.array_equal(np.floor(given), given)
        raise InvalidValue(label, "must be whole numbers" if fraction else f"does not fit {copy.dtype.name}")
    copy.flags.writeable = False
    return copy


def one_each(values: ArrayLike, dtype: Any, count: int, label: str) -> NDArray[Any]:
    """Return `count` values: those given, or one number repeated; raises as `readonly`."""
    given = readonly(values, dtype, label)
    if given.ndim == 0:
        return np.broadcast_to(given, (count,))
    return of_length(given, count, label)


def of_length(values: NDArray[Any], count: int, label: str) -> NDArray[Any]:
    """Return the values; raise `InvalidValue` if they are no vector of `count` entries."""
    if values.ndim != 1:
        raise InvalidValue(label, f"has {values.ndim} dimensions, not 1")
    if len(values) != count:
        raise InvalidValue(label, f"has {len(values)} entries, not {count}")
    return values


def _array(values: Any, label: str, kinds: str = _NUMERIC) -> NDArray[Any]:
    """Return the values as an array of numbers, or of numpy's other `kinds`."""
    try:
        given = np.asarray(values)
    except ValueError as error:  # rows of several lengths
        raise InvalidValue(label, "must be numbers in rows of one length") from error
    if given.size and given.dtype.kind not in kinds:
        raise InvalidValue(label, "must be numbers" if kinds is _NUMERIC else "must be times")
    return given


def check_range(owner: Any, name: str, low: int, high: int) -> None:
    """Raise `InvalidValue` if an entry of the field is outside ``low <= x < high``."""
    values = getattr(owner, name)
    if len(values) and (int(values.min()) < low or int(values.max()) >= high):
        raise InvalidValue(f"{type(owner).__name__}.{name}", f"outside {low} .. {high - 1}")


def whole_numbers(values: ArrayLike, label: str) -> Longs:
    """Return the values as int64[...], flat; raise `InvalidValue` if one is not a whole number."""
    return readonly(_array(values, label).reshape(-1), np.int64, label)
