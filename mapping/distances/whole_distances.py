"""Distances that are whole numbers of links, a byte each: those of 10,000 hosts one by one take 100 MB."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mapping.distances.grouped_distances import Distances
from registry.model import Floats, Int8s, Ints

TILE = 128
"""Rows and columns of a table that are compared with their transposes at once: they stay in cache."""


class WholeDistances(Distances):
    """Distances from a table of bytes; ``between`` is made when it is asked for.

    Parameters
    ----------
    name, group
        As in `Distances`.
    links : uint8[g, g]
        Links between groups, as ``between`` there.
    less : int
        So many fewer is the distance, though not below zero: 1 where switches are counted.
    """

    def __init__(self, name: str, group: Ints, links: Int8s, less: int = 0) -> None:
        value = np.maximum(np.arange(int(links.max(initial=0)) + 1.0) - less, 0.0)
        for values in (group, links, value):
            values.flags.writeable = False
        set_ = object.__setattr__
        set_(self, "name", name)
        set_(self, "group", group)
        set_(self, "_links", links)
        set_(self, "_value", value)
        set_(self, "_less", less)

    @cached_property
    def between(self) -> Floats:
        """float64[g, g]; see `Distances`."""
        found = self._value[self._links]
        found.flags.writeable = False
        return found

    @property
    def codes(self) -> tuple[Int8s, Floats]:
        """uint8[g, g], float64[n]: the distances as places in a rising list of values."""
        return self._links, self._value

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self._links)

    @cached_property
    def symmetric(self) -> bool:
        """Whether both directions of every pair are equally far."""
        links, starts = self._links, range(0, len(self._links), TILE)
        tiles = ((slice(a, a + TILE), slice(b, b + TILE)) for a in starts for b in starts if a <= b)
        return all(np.array_equal(links[rows, columns], links[columns, rows].T) for rows, columns in tiles)

    def of(self, source: ArrayLike, target: ArrayLike) -> Floats:
        """float64, shape of the arguments: distance by host index; 0 within a host."""
        i, j = np.asarray(source), np.asarray(target)
        return np.where(i == j, 0.0, self._value[self._links[self.group[i], self.group[j]]])

    def ways(self, group: int) -> tuple[Floats, Floats]:
        """float64[g] twice: from a host of a group to another of each group, and back."""
        return self._value[self._links[group]], self._value[self._links[:, group]]

    def less(self, links: float) -> Distances:
        """The same distances, so much shorter each, though not below zero."""
        if links != int(links):
            return super().less(links)
        return WholeDistances(self.name, self.group, self._links, self._less + int(links))

    def __reduce__(self) -> tuple[type[WholeDistances], tuple[str, Ints, Int8s, int]]:
        return type(self), (self.name, self.group, self._links, self._less)

    _links: Int8s
    _value: Floats
    _less: int
