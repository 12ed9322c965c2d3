"""Array types of the data types, and checks that copy arrays and make them read-only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def freeze(owner: Any, name: str, dtype: Any, size: int | None) -> None:
    """Replace a field of a frozen dataclass by a read-only vector of this type with `size` entries."""
    label = f"{type(owner).__name__}.{name}"
    values = readonly(getattr(owner, name), dtype, label)
    if values.ndim != 1:
        raise InvalidValue(label, f"has {values.ndim} dimensions, not 1")
    if size is not None and len(values) != size:
        raise InvalidValue(label, f"has {len(values)} entries, not {size}")
    object.__setattr__(owner, name, values)


def freeze_all(owner: Any, size: int | None, *names: str) -> None:
    """Freeze fields of a dataclass; each has the type of its annotation (`Ints`, `Floats`, ...)."""
    for name in names:
        annotation = str(type(owner).__dataclass_fields__[name].type)
        freeze(owner, name, _DTYPES[annotation.partition(" ")[0]], size)


def readonly(values: Any, dtype: Any, label: str) -> NDArray[Any]:
    """Return the values as a read-only C-ordered array; the same object if it already is one."""
    given = np.asarray(values)
    if given.dtype == dtype and not given.flags.writeable and given.flags.c_contiguous:
        return given
    with np.errstate(invalid="ignore"):
        try:
            copy = np.array(given, dtype=dtype, order="C")
        except (OverflowError, TypeError, ValueError) as error:
            raise InvalidValue(label, f"does not fit {np.dtype(dtype).name}") from error
    if np.dtype(dtype).kind in "iu" and given.dtype.kind in "fiu" and not np.array_equal(copy, given):
        raise InvalidValue(label, f"does not fit {np.dtype(dtype).name}")
    copy.flags.writeable = False
    return copy


def check_range(owner: Any, name: str, low: int, high: int) -> None:
    """Raise `InvalidValue` if an entry of the field is outside ``low <= x < high``."""
    values = getattr(owner, name)
    if len(values) and (int(values.min()) < low or int(values.max()) >= high):
        raise InvalidValue(f"{type(owner).__name__}.{name}", f"outside {low} .. {high - 1}")


def whole_numbers(values: ArrayLike, label: str) -> Longs:
    """Return the values as int64[...], flat; raise `InvalidValue` if one is not a whole number."""
    given = np.asarray(values).reshape(-1)
    if given.dtype.kind not in "iufb":
        raise InvalidValue(label, "must be whole numbers")
    with np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)
    if not np.array_equal(whole, given):
        raise InvalidValue(label, "must be whole numbers")
    return whole


def first_repeat(names: Sequence[str]) -> str:
    """Return the first repeated name, or empty text."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""
