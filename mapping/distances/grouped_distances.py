"""Distances between the hosts of an allocation: a value for two groups of hosts that are alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from registry.errors import InvalidValue
from registry.model import Floats, Int8s, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distances:
    """Distances between the hosts of an allocation, hosts that are alike taken together.

    Attributes
    ----------
    name : str
        One of `mapping.distances.distances.CONVENTIONS`.
    group : int32[h]
        Group of each host, 0 to g - 1; hosts of one group have the same distances to all others.
    between : float64[g, g]
        From any host of one group to any other host of another; ``between[a, a]`` is the distance of
        two different hosts of group `a`. ``inf`` where the routing joins none.
    """

    name: str
    group: Ints
    between: Floats

    def __post_init__(self) -> None:
        group = np.array(self.group, np.int32)
        between = np.array(self.between, np.float64)
        if between.ndim != 2 or between.shape[0] != between.shape[1]:
            raise InvalidValue("Distances.between", f"has shape {between.shape}")
        if len(group) and (int(group.min()) < 0 or int(group.max()) >= len(between)):
            raise InvalidValue("Distances.group", f"outside 0 .. {len(between) - 1}")
        for field, values in (("group", group), ("between", between)):
            values.flags.writeable = False
            object.__setattr__(self, field, values)

    def __len__(self) -> int:
        return len(self.group)

    def of(self, source: ArrayLike, target: ArrayLike) -> Floats:
        """float64, shape of the arguments: distance by host index; 0 within a host."""
        i, j = np.asarray(source), np.asarray(target)
        return np.where(i == j, 0.0, self.between[self.group[i], self.group[j]])

    def matrix(self) -> Floats:
        """float64[h, h]: all distances; for a small number of hosts."""
        found = self.between[self.group[:, None], self.group[None, :]]
        np.fill_diagonal(found, 0.0)
        return found

    def ways(self, group: int) -> tuple[Floats, Floats]:
        """float64[g] twice: from a host of a group to another of each group, and back."""
        return self.between[group], self.between[:, group]

    def less(self, links: float) -> Distances:
        """The same distances, so much shorter each, though not below zero."""
        return Distances(name=self.name, group=self.group, between=np.maximum(self.between - links, 0.0))

    @property
    def codes(self) -> tuple[Int8s, Floats] | None:
        """uint8[g, g] and float64[n]: the distances as places in a list of values, where they are kept so."""
        return None

    @property
    def groups(self) -> int:
        """Number of groups, without making `between` where it is not kept."""
        return len(self.between)

    @property
    def symmetric(self) -> bool:
        """Whether both directions of every pair are equally far."""
        return bool(np.array_equal(self.between, self.between.T))
