"""Input of a search: a profile, the hosts it may use, and the routes between them.

Strategies and refiners number hosts by their index in the allocation, 0 to h - 1, and slots by their
position in `Allocation.host_of_slot`; only the `Placement` has vertices of the fabric.

Arguments of the functions of `mapping`: checked, with stored objects replaced by what they hold.

Ranks that must be on certain hosts: checked before a search, applied after a strategy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np

from mapping.distances.distances import LINKS, Distances, distances
from mapping.placement.kernels.hop_bytes_search import (
    DICE,
    Guest,
    Hops,
    Near,
    SlotAssignment,
    count_pairs,
    near_groups,
)
from mapping.routing.routes import Routes
from registry.errors import InvalidPlacement, InvalidValue, UnknownName
from registry.model import (
    Allocation,
    Bools,
    Fabric,
    Floats,
    HasJob,
    HasPlacement,
    Int8s,
    Ints,
    Job,
    Longs,
    Placement,
    Profile,
)
from registry.model.arrays import of_length, readonly
from registry.model.views import content, whole_number


def allocation_on(fabric: Fabric, given: Allocation | Job | HasJob) -> Allocation:
    """Return an allocation, or that of a job's hosts and slots.

    Raises:
        UnknownName: The fabric lacks a host of the job.
        InvalidValue: Neither an allocation nor a job, or a host number that the fabric lacks.
    """
    job = given if isinstance(given, Job) else getattr(given, "job", None)
    if isinstance(job, Job):
        return Allocation.of(fabric, job.hosts, job.slots)
    allocation = content(given, Allocation, "allocation")
    _require_vertices(fabric, allocation.hosts, "allocation")
    return allocation


HostsByRank = Sequence[str] | Sequence[int] | Ints | Longs
"""Host of each rank, by name or as a vertex of the fabric: what another tool found."""


def placement_or_hosts(fabric: Fabric, given: Placement | HasPlacement | HostsByRank) -> Placement:
    """Return a placement as `placement_on`, or that of a host for each rank."""
    if isinstance(given, np.ndarray | Sequence):
        return Placement.given(fabric, given)
    return placement_on(fabric, given)


def placement_on(fabric: Fabric, given: Placement | HasPlacement, label: str = "placement") -> Placement:
    """Return a placement, or that of a stored one.

    Raises:
        InvalidPlacement: A host number that the fabric lacks, or a stored placement on another state of the
            fabric.
        InvalidValue: No placement.
    """
    placement = content(given, Placement, label)
    _require_vertices(fabric, placement.host_of_rank, label)
    names = getattr(given, "hosts", None)
    if names is not None and any(
        fabric.names[vertex] != name
        for vertex, name in zip(placement.host_of_rank.tolist(), names, strict=True)
    ):
        raise InvalidPlacement(
            f"{label}: it is on another state of the fabric: read that with registry.fabrics.read_content"
        )
    return placement


def _require_vertices(fabric: Fabric, vertices: Ints, label: str) -> None:
    wrong = vertices[(vertices < 0) | (vertices >= len(fabric))]
    if len(wrong):
        raise InvalidPlacement(f"{label}: vertex {wrong[0]} is not in the fabric")


def resolve_pins(pins: Mapping[int, str | int], ranks: int, allocation: Allocation, fabric: Fabric) -> Ints:
    """Return int32[ranks]: the index in the allocation of each pinned rank's host, -1 for free ranks.

    Args:
        pins: Rank -> host, by name or as a vertex of the fabric.

    Raises:
        UnknownName: A host that the fabric lacks.
        InvalidPlacement: A rank that the profile lacks, a host outside the allocation, or more pins than
            slots on a host.
        InvalidValue: No mapping, or a rank or host that is no whole number.
    """
    if not isinstance(pins, Mapping):
        raise InvalidValue("pins", f"must map ranks to hosts, such as {{0: 'node01'}}, not {pins!r}")
    found = np.full(ranks, -1, np.int32)
    index = {int(vertex): at for at, vertex in enumerate(allocation.hosts)}
    numbers = [whole_number(host, "pins", None) for host in pins.values() if not isinstance(host, str)]
    fabric.require_one_meaning(numbers, "pins")
    for given, host in pins.items():
        rank = whole_number(given, "pins", None)
        if not 0 <= rank < ranks:
            raise InvalidPlacement(f"rank {rank} cannot be pinned: the profile has ranks 0 to {ranks - 1}")
        vertex = (
            int(fabric.vertices([host])[0]) if isinstance(host, str) else whole_number(host, "pins", None)
        )
        if not 0 <= vertex < len(fabric):
            raise UnknownName("vertex", str(vertex))
        if vertex not in index:
            raise InvalidPlacement(
                f"rank {rank} cannot be pinned to {fabric.names[vertex]}: that host is not in the allocation"
            )
        found[rank] = index[vertex]
    check_pins(found, allocation, fabric)
    return found


def check_pins(pins: Ints, allocation: Allocation, fabric: Fabric) -> None:
    """Raise `InvalidPlacement` for a pin outside the allocation, or more pins on a host than it has slots."""
    outside = np.flatnonzero((pins < -1) | (pins >= len(allocation)))
    if len(outside):
        rank = int(outside[0])
        raise InvalidPlacement(f"rank {rank} is pinned to host index {pins[rank]}, which does not exist")
    taken = np.bincount(pins[pins >= 0], minlength=len(allocation))
    over = np.flatnonzero(taken > allocation.slots)
    if len(over):
        host = int(over[0])
        ranks = ", ".join(map(str, np.flatnonzero(pins == host).tolist()))
        raise InvalidPlacement(
            f"ranks {ranks} are pinned to host {fabric.names[allocation.hosts[host]]}, "
            f"which has {allocation.slots[host]} slots"
        )


def apply_pins(pins: Ints, host_of_rank: Ints, slots: Ints) -> Ints:
    """Return int32[ranks]: the placement (host indices) with each pinned rank on its host, by exchanges.

    Args:
        pins (int32[ranks]): Host index of each rank, -1 if free; at most as many on a host as its slots.
        host_of_rank (int32[ranks]): Placement within the slots of all hosts; not changed.
        slots (int32[h]):
    """
    found = np.array(host_of_rank, np.int32)
    away = np.flatnonzero((pins >= 0) & (pins != found)).tolist()
    if not away:
        return found
    free = slots - np.bincount(found, minlength=len(slots))
    waiting = _unbound(pins, found, set(pins[away].tolist()))
    for rank in away:
        here, there = int(found[rank]), int(pins[rank])
        if here == there:  # an exchange for another rank brought it here
            continue
        if free[there] > 0:
            free[there] -= 1
            free[here] += 1
        else:
            other = waiting[there].popleft()
            while found[other] != there:  # it has left since
                other = waiting[there].popleft()
            found[other] = here
            if here in waiting and pins[other] != here:
                waiting[here].append(other)
        found[rank] = there
    return found


def _unbound(pins: Ints, host_of_rank: Ints, hosts: set[int]) -> dict[int, deque[int]]:
    """Return the ranks on each host that are not pinned to it, ascending."""
    found: dict[int, deque[int]] = {host: deque() for host in hosts}
    for rank in np.flatnonzero(pins != host_of_rank).tolist():
        host = int(host_of_rank[rank])
        if host in found:
            found[host].append(rank)
    return found


Value = TypeVar("Value")
CODES = 256
"""Number of distances that searches distinguish, including that of a host from itself."""
NEAR = 256
"""Most groups at one distance that are proposed near a host."""
SHARES = (0.0, 0.67, 0.87)
"""Cumulative parts of the proposals to the partner's host, its nearest groups, and its second nearest."""
SHARES_SEVERAL = (0.31, 0.77, 0.91)
"""The same if hosts take several ranks."""


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """A profile to place on the hosts of an allocation."""

    profile: Profile
    allocation: Allocation
    """Hosts and slots; at least as many slots as ranks."""
    routes: Routes
    """Routes between the allocation's hosts, in its order."""
    pins: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """int32[ranks]: Host on which a rank must be, -1 if it is free; default: all are free."""
    link_capacity: Floats = field(default_factory=lambda: np.zeros(0))
    """float64[m]: Bytes/s of each row of ``fabric.links`` that other jobs leave, > 0; default: the fabric's
    own."""
    link_background: Floats = field(default_factory=lambda: np.zeros(0))
    """float64[m]: Bytes of other jobs on each link, >= 0; default: none."""
    own_distances: Distances | None = None
    """Distances to use instead of the mean number of links on the routes."""
    source: Ints = field(init=False)
    target: Ints = field(init=False)
    """int32[e]: Pairs of ranks that send bytes; pairs without bytes are left out."""
    bytes: Floats = field(init=False)
    """float64[e]: Bytes of each pair, > 0."""
    slot_host: Ints = field(init=False)
    """int32[s]: Host of each slot, ascending."""
    first_slot: Longs = field(init=False)
    """int64[h + 1]: First slot of each host."""
    memo: Memo = field(init=False, repr=False, default_factory=Memo)
    """Values of routes and links that parallel searches compute once."""

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
        self._complete("pins", np.full(self.ranks, -1, np.int32))
        self._complete("link_capacity", self.routes.fabric.links.capacity)
        self._complete("link_background", np.zeros(len(self.routes.fabric.links)))
        self._check_links()
        check_pins(self.pins, self.allocation, self.routes.fabric)

    def _check_links(self) -> None:
        fabric, wrong = self.routes.fabric, ~(self.link_capacity > 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            ends = (fabric.names[v] for v in (fabric.links.source[row], fabric.links.target[row]))
            raise InvalidValue(
                "Problem.link_capacity",
                f"{self.link_capacity[row]:g} of link {' -> '.join(ends)}, not above 0",
            )

    def _complete(self, name: str, default: Ints | Floats) -> None:
        """Set a field that was left out, or check the length of what was given."""
        given = np.asarray(getattr(self, name), default.dtype)
        if len(given) not in (0, len(default)):
            raise InvalidValue(f"Problem.{name}", f"has {len(given)} entries, not {len(default)}")
        values = np.array(given if len(given) else default)
        values.flags.writeable = False
        object.__setattr__(self, name, values)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.profile.ranks

    @property
    def hosts(self) -> int:
        """Number of hosts of the allocation."""
        return len(self.allocation)

    @cached_property
    def distances(self) -> Distances:
        """Cost of a byte between two hosts."""
        return distances(LINKS, self.routes) if self.own_distances is None else self.own_distances

    def with_pins(self, pins: Ints) -> Problem:
        """Return the problem with other pins and all values computed so far."""
        other = replace(self, pins=pins)
        kept = ("memo", "distances", "hops", "near", "hop_unit", "median_rank_bytes", "both_ways")
        other.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        return other

    @property
    def pinned(self) -> Bools:
        """bool[ranks]: True for ranks that must not move."""
        return self.pins >= 0

    def checked(self, host_of_rank: Ints, name: str) -> Ints:
        """Return a placement by host index that a strategy or refiner has made.

        Raises:
            InvalidPlacement: It is no placement: names the strategy or refiner.
        """
        try:
            hosts = of_length(readonly(host_of_rank, np.int32, name), self.ranks, name)
        except InvalidValue as error:
            raise InvalidPlacement(f"{name} returned no placement: {error.reason}") from error
        if len(hosts) and not 0 <= int(hosts.min()) <= int(hosts.max()) < self.hosts:
            raise InvalidPlacement(f"{name} returned host indices outside 0 .. {self.hosts - 1}")
        over = np.flatnonzero(np.bincount(hosts, minlength=self.hosts) > self.allocation.slots)
        if len(over):
            host = self.routes.fabric.names[self.allocation.hosts[over[0]]]
            raise InvalidPlacement(f"{name} placed more ranks on host {host} than it has slots")
        return hosts

    def apply_pins(self, host_of_rank: Ints) -> Ints:
        """Return int32[ranks]: the placement with each pinned rank on its host.

        A pinned rank takes a free slot there, else is exchanged with the lowest rank not pinned there.
        """
        return apply_pins(self.pins, host_of_rank, self.allocation.slots)

    def assign_slots(self, host_of_rank: Ints) -> SlotAssignment:
        """Return the slots of a placement by host index; ranks of one host take its slots in order."""
        order = np.argsort(host_of_rank, kind="stable")
        hosts = host_of_rank[order]
        within = np.arange(len(hosts)) - np.searchsorted(hosts, hosts)
        slot_of_rank = np.empty(self.ranks, np.int32)
        slot_of_rank[order] = self.first_slot[hosts] + within
        rank_of_slot = np.full(len(self.slot_host), -1, np.int32)
        rank_of_slot[slot_of_rank] = np.arange(self.ranks)
        return SlotAssignment(
            self.slot_host,
            self.first_slot,
            rank_of_slot,
            slot_of_rank,
            host_of_rank.astype(np.int32),
            self.pinned,
        )

    @cached_property
    def hops(self) -> Hops:
        """Distances between groups of hosts, for searches; with more than 255 values, nearly so."""
        return compact_hops(self.distances)

    @cached_property
    def near(self) -> Near:
        """Slots of each host and of the groups at the two nearest distances from it, for proposals."""
        return near_slots(self.hops, self.slot_host, self.first_slot)

    @cached_property
    def hop_unit(self) -> float:
        """Unit of temperatures: distance of the mean host beyond the nearest; 0 if all are equally far.

        It grows with the scale of the distances and does not change if all of them change by the same
        amount, as from links to switches.
        """
        hops = self.hops
        size = np.bincount(hops.group, minlength=hops.code.shape[1]).astype(np.int64)
        pairs = count_pairs(hops.code[0], size)
        if not pairs.any():
            return 0.0
        return float((pairs * hops.value).sum() / pairs.sum() - hops.value[pairs > 0].min())

    @cached_property
    def median_rank_bytes(self) -> float:
        """Bytes sent and received by the median of the ranks that communicate."""
        talks = np.bincount(np.r_[self.source, self.target], np.r_[self.bytes, self.bytes])
        return float(np.median(talks[talks > 0])) if len(self.bytes) else 0.0

    def host_traffic(self, host_of_rank: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the sending host, the receiving host and the bytes of each pair of ranks."""
        return host_of_rank[self.source], host_of_rank[self.target], self.bytes

    def hop_bytes(self, host_of_rank: Ints) -> float:
        """Return bytes times `distances`, summed over all pairs."""
        source, target, size = self.host_traffic(host_of_rank)
        return float(size @ self.distances.of(source, target))

    @cached_property
    def both_ways(self) -> tuple[Ints, Ints, Floats]:
        """Pairs of different ranks, the lower and the higher one, and their bytes in both directions."""
        low, high = np.minimum(self.source, self.target), np.maximum(self.source, self.target)
        apart = low < high
        key, pair = np.unique(low[apart].astype(np.int64) * self.ranks + high[apart], return_inverse=True)
        size = np.bincount(pair, self.bytes[apart], len(key)).astype(np.float64)
        return (key // self.ranks).astype(np.int32), (key % self.ranks).astype(np.int32), size

    def guest(self, *, directed: bool) -> Guest:
        """Return the partners of each rank, heaviest first.

        Args:
            directed: Separate what a rank sends (table 0) from what it receives (table 1); otherwise sum
                both, which is enough if distances are the same in both directions.
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
        order = np.lexsort((table, partner, -size, rank))
        indptr = np.searchsorted(rank[order], np.arange(self.ranks + 1)).astype(np.int64)
        active = np.flatnonzero(np.diff(indptr)).astype(np.int32)
        return Guest(indptr, partner[order], size[order], table[order], active)


def host_indices(allocation: Allocation, vertices: Ints) -> Ints:
    """Return int32: the index in the allocation of hosts given as vertices of the fabric."""
    order = np.argsort(allocation.hosts)
    return order[np.searchsorted(allocation.hosts[order], vertices)].astype(np.int32)


def arc_tails(fabric: Fabric) -> Ints:
    """Return int32[arcs]: the vertex at which each arc begins; it ends at ``fabric.neighbour``."""
    return np.repeat(np.arange(len(fabric), dtype=np.int32), np.diff(fabric.indptr))


def arc_capacities(problem: Problem) -> Floats:
    """Return float64[arcs]: bytes/s of each arc, parallel cables summed, that other jobs leave."""
    fabric = problem.routes.fabric
    total = np.bincount(fabric.arc_of_link, problem.link_capacity, len(fabric.neighbour))
    return total.astype(np.float64)


def hosts_are_neighbours(fabric: Fabric, hosts: Ints) -> bool:
    """Return True if at least half of the given hosts (vertices) have an edge to another of them.

    True for direct networks, even if an allocation has holes; False for switched ones.
    """
    kept = np.zeros(len(fabric), bool)
    kept[hosts] = True
    tail, head = arc_tails(fabric), fabric.neighbour
    inside = kept[tail] & kept[head] & (tail != head)
    joined = np.zeros(len(fabric), bool)
    joined[tail[inside]] = joined[head[inside]] = True
    return bool(2 * np.count_nonzero(joined) >= len(hosts))


def compact_hops(distances: Distances) -> Hops:
    """Return distances in one byte each; rounded if there are more than 255 values."""
    if distances.codes is not None and len(distances.codes[1]) < CODES:
        one_way, value = distances.codes[0] + np.uint8(1), distances.codes[1]
        return _hops(distances, one_way, value)
    between = distances.between
    value = np.unique(between)
    if len(value) > CODES - 1:
        value = np.linspace(value[0], value[-1], CODES - 1)
    middle = (value[1:] + value[:-1]) / 2
    return _hops(distances, (1 + np.searchsorted(middle, between)).astype(np.uint8), value)


def _hops(distances: Distances, one_way: Int8s, value: Floats) -> Hops:
    both = [one_way] if distances.symmetric else [one_way, one_way.T]
    padded = np.zeros(CODES)
    padded[1 : 1 + len(value)] = value
    return Hops(distances.group.astype(np.int32), np.ascontiguousarray(np.stack(both)), padded)


def near_slots(hops: Hops, slot_host: Ints, first_slot: Longs) -> Near:
    """Return the slots at the two nearest distances of each group of hosts, and of each host."""
    groups = hops.code.shape[1]
    of_slot = hops.group[slot_host]
    size = np.bincount(hops.group, minlength=groups).astype(np.int64)
    start, middle, end, group = near_groups(hops.code[0], hops.value, size, NEAR)
    slot = np.argsort(of_slot, kind="stable").astype(np.int32)
    several = len(slot_host) > len(hops.group)
    return Near(
        host_group=hops.group,
        slot_host=slot_host,
        first_slot=first_slot,
        start=start,
        middle=middle,
        end=end,
        group=group,
        first=np.searchsorted(of_slot[slot], np.arange(groups + 1)).astype(np.int64),
        slot=slot,
        shares=np.rint(DICE * np.array(SHARES_SEVERAL if several else SHARES)).astype(np.int64),
    )
