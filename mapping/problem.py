"""What a search works on: a profile, the hosts it may use, and the routes between them.

Strategies and refiners speak of hosts by their index in the allocation, 0 to h - 1, and of slots by
their place in `Allocation.host_of_slot`; vertices of the fabric come back only in the `Placement`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mapping.kernels.hop_bytes_search import Guest, Hops, Near, Seats, near_hosts
from mapping.routing.routes import Routes
from registry.model import Allocation, Floats, Ints, Longs, Profile

CODES = 256
"""Distances that searches tell apart."""
NEAR = 256
"""Most hosts of a distance class that are proposed as near a host."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """A profile to place on the hosts of an allocation.

    Attributes
    ----------
    profile : Profile
    allocation : Allocation
        With at least as many slots as the profile has ranks.
    routes : Routes
        Between the allocation's hosts, in its order.
    source, target : int32[e]
        Pairs of ranks that send bytes; a pair without bytes loads nothing and is left out.
    bytes : float64[e]
        > 0.
    slot_host : int32[s]
        Host of each slot, ascending.
    first_slot : int64[h + 1]
        First slot of each host.
    """

    profile: Profile
    allocation: Allocation
    routes: Routes
    source: Ints = field(init=False)
    target: Ints = field(init=False)
    bytes: Floats = field(init=False)
    slot_host: Ints = field(init=False)
    first_slot: Longs = field(init=False)

    def __post_init__(self) -> None:
        self.allocation.require(self.profile.ranks)
        sends = self.profile.bytes > 0
        slots = self.allocation.slots
        derived = {
            "source": self.profile.sender[sends],
            "target": self.profile.partner[sends],
            "bytes": self.profile.bytes[sends],
            "slot_host": np.repeat(np.arange(len(slots), dtype=np.int32), slots),
            "first_slot": np.r_[0, np.cumsum(slots, dtype=np.int64)],
        }
        for name, values in derived.items():
            object.__setattr__(self, name, values)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.profile.ranks

    @property
    def hosts(self) -> int:
        """Number of hosts of the allocation."""
        return len(self.allocation)

    def seats(self, host_of_rank: Ints) -> Seats:
        """The seats of a placement by host index; ranks of one host take its slots in ascending order."""
        order = np.argsort(host_of_rank, kind="stable")
        hosts = host_of_rank[order]
        within = np.arange(len(hosts)) - np.searchsorted(hosts, hosts)
        slot_of_rank = np.empty(self.ranks, np.int32)
        slot_of_rank[order] = self.first_slot[hosts] + within
        rank_of_slot = np.full(len(self.slot_host), -1, np.int32)
        rank_of_slot[slot_of_rank] = np.arange(self.ranks)
        return Seats(
            self.slot_host, self.first_slot, rank_of_slot, slot_of_rank, host_of_rank.astype(np.int32)
        )

    @cached_property
    def hops(self) -> Hops:
        """Mean hops between hosts, for searches; where there are more than 256 values, nearly so."""
        distances = self.routes.distances
        value = np.unique(distances)
        if len(value) > CODES:
            value = np.linspace(0.0, value[-1], CODES)
        middle = (value[1:] + value[:-1]) / 2
        one_way = np.searchsorted(middle, distances).astype(np.uint8)
        both = [one_way] if np.array_equal(distances, distances.T) else [one_way, one_way.T]
        return Hops(np.ascontiguousarray(np.stack(both)), np.pad(value, (0, CODES - len(value))))

    @cached_property
    def near(self) -> Near:
        """Hosts of the two nearest distance classes of each host; its own too where one takes several."""
        return near_hosts(self.hops, bool((self.allocation.slots > 1).any()), NEAR)

    @cached_property
    def median_rank_bytes(self) -> float:
        """Bytes sent and received by the median of the ranks that talk."""
        talks = np.bincount(np.r_[self.source, self.target], np.r_[self.bytes, self.bytes])
        return float(np.median(talks[talks > 0])) if len(self.bytes) else 0.0

    def host_traffic(self, host_of_rank: Ints) -> tuple[Ints, Ints, Floats]:
        """Sending host, receiving host and bytes of each pair of ranks."""
        return host_of_rank[self.source], host_of_rank[self.target], self.bytes

    def hop_bytes(self, host_of_rank: Ints) -> float:
        """Bytes times mean hops, summed over all pairs."""
        source, target, size = self.host_traffic(host_of_rank)
        return float(size @ self.routes.distances[source, target])

    def guest(self, *, directed: bool) -> Guest:
        """Partners of each rank.

        Parameters
        ----------
        directed : bool
            Keep what a rank sends (table 0) and receives (table 1) apart; otherwise sum both, which
            is enough where distances are the same in both directions.
        """
        rank = np.concatenate([self.source, self.target])
        partner = np.concatenate([self.target, self.source])
        size = np.concatenate([self.bytes, self.bytes])
        table = np.repeat(np.arange(2, dtype=np.uint8), len(self.source))
        if not directed:
            table = np.zeros(len(rank), np.uint8)
            key, inverse = np.unique(rank.astype(np.int64) * self.ranks + partner, return_inverse=True)
            rank, partner = (key // self.ranks).astype(np.int32), (key % self.ranks).astype(np.int32)
            size, table = np.bincount(inverse, weights=size, minlength=len(key)), table[: len(key)]
        order = np.lexsort((table, partner, rank))
        indptr = np.searchsorted(rank[order], np.arange(self.ranks + 1)).astype(np.int64)
        active = np.flatnonzero(np.diff(indptr)).astype(np.int32)
        return Guest(indptr, partner[order], size[order], table[order], active)


def host_indices(allocation: Allocation, vertices: Ints) -> Ints:
    """int32: index in the allocation of each of its hosts, given as vertices of the fabric."""
    order = np.argsort(allocation.hosts)
    return order[np.searchsorted(allocation.hosts[order], vertices)].astype(np.int32)
