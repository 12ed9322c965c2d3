"""Types of the parts of a fabric: adapters, directed links, ports and forwarding tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from registry.errors import InvalidValue
from registry.model.arrays import (
    Floats,
    Guids,
    Int8s,
    Ints,
    Longs,
    check_range,
    freeze_all,
    one_each,
    readonly,
)
from registry.model.views import one_line

NO_PORT = -1
"""Port number, adapter index or LID that is unknown."""
NO_ROUTE = 255
"""Entry of a forwarding table without a route."""
PORT_STATES = ("active", "down", "disabled", "training", "initialize", "armed")
"""Names of the states by number.

``down``: no partner (no cable, a broken cable, a host that is off). ``disabled``: switched off. ``training``:
trying to come up. ``initialize``, ``armed``: a link that the subnet manager has not activated.
"""
ACTIVE, DOWN, DISABLED, TRAINING, INITIALIZE, ARMED = range(len(PORT_STATES))
NEARLY_ALL = 0.9
"""Part of similar cables that must have one speed before each slower one is a fault of its own."""
FAR_BELOW = 0.5
"""Part of a speed up to which a cable is far below it: it lost lanes, or trained at an older speed."""
MANY = 3
"""Smallest number of similar cables that show what is usual."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adapters:
    """Host channel adapters of a fabric and their ports; the adapters of a host are its rails."""

    names: tuple[str, ...] = ()
    """Node descriptions as printed, such as ``"node01 mlx5_0"``; length `a`, need not be unique."""
    guid: Guids = field(default_factory=lambda: np.zeros(0, np.uint64))
    system_guid: Guids = field(default_factory=lambda: np.zeros(0, np.uint64))
    """uint64[a]: Node GUID and system image GUID; 0 if unknown."""
    host: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """int32[a]: Host of each adapter."""
    port_adapter: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """int32[p]: Adapter of each port that is up; ascending, then by port number."""
    port_number: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """int32[p]."""
    port_guid: Guids = field(default_factory=lambda: np.zeros(0, np.uint64))
    """uint64[p]: GUID of each port; 0 if unknown."""
    port_lid: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """int32[p]: First LID in the scan; 0 if not configured."""
    port_lmc: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """int32[p]: LID mask control: the port has ``2 ** lmc`` LIDs."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        a, p = len(self.names), len(np.atleast_1d(self.port_adapter))
        freeze_all(self, a, "guid", "system_guid", "host")
        freeze_all(self, p, "port_adapter", "port_number", "port_guid", "port_lid", "port_lmc")
        check_range(self, "port_adapter", 0, a)
        check_range(self, "port_lid", 0, 1 << 16)
        check_range(self, "port_lmc", 0, 8)

    def __len__(self) -> int:
        return len(self.names)

    def first_port_guid(self) -> Guids:
        """Return the GUID of the first active port of each adapter as uint64[a]; 0 if there is none."""
        ends = np.searchsorted(self.port_adapter, np.arange(len(self) + 1))
        guid = np.zeros(len(self), np.uint64)
        up = np.flatnonzero(ends[1:] > ends[:-1])
        guid[up] = self.port_guid[ends[up]]
        return guid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Links:
    """Directed links: one row per cable and direction (two rows per full-duplex cable).

    A source without ports has one row per bundle, with the number of cables.
    A `Fabric` sorts the rows by (source, target, source_port, target_port, adapters).
    """

    source: Ints
    target: Ints
    """int32[m]: Vertices."""
    capacity: Floats
    """float64[m]: Data bytes/s in this direction of all cables of the row; > 0."""
    source_port: Ints
    target_port: Ints
    """int32[m]: Port numbers; `NO_PORT` if unknown."""
    source_adapter: Ints
    target_adapter: Ints
    """int32[m]: Adapter at a host; `NO_PORT` at a switch or if unknown."""
    cables: Ints
    """int32[m]: Number of physical cables of the row; >= 1."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        m = len(np.atleast_1d(self.source))
        freeze_all(self, m, *LINK_COLUMNS)
        if m and not (np.isfinite(self.capacity).all() and (self.capacity > 0).all()):
            raise InvalidValue("Links.capacity", "must be finite and above zero")
        if m and int(self.cables.min()) < 1:
            raise InvalidValue("Links.cables", "must be at least 1")
        if m and bool((self.source == self.target).any()):
            raise InvalidValue("Links.target", "a link must not lead back to its own source")

    @classmethod
    def of(
        cls,
        source: ArrayLike,
        target: ArrayLike,
        capacity: ArrayLike,
        *,
        source_port: ArrayLike | None = None,
        target_port: ArrayLike | None = None,
        source_adapter: ArrayLike | None = None,
        target_adapter: ArrayLike | None = None,
        cables: ArrayLike | None = None,
    ) -> Self:
        """Return links with defaults: unknown ports and adapters, one cable per row."""
        ends = readonly(source, np.int32, "Links.source")

        def given(values: ArrayLike | None, default: int) -> Any:
            return np.full(ends.size, default, np.int32) if values is None else values

        return cls(
            source=ends,
            target=given(target, NO_PORT),
            capacity=one_each(capacity, np.float64, ends.size, "Links.capacity"),
            source_port=given(source_port, NO_PORT),
            target_port=given(target_port, NO_PORT),
            source_adapter=given(source_adapter, NO_PORT),
            target_adapter=given(target_adapter, NO_PORT),
            cables=given(cables, 1),
        )

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: NDArray[Any]) -> Links:
        """Return the rows of an index or mask array, in its order."""
        return Links(**{name: getattr(self, name)[rows] for name in LINK_COLUMNS})

    def order(self) -> Longs:
        """Return the permutation that sorts the rows for a fabric as int64[m]."""
        ends = (self.target_port, self.source_port, self.target, self.source)
        return np.lexsort((self.target_adapter, self.source_adapter, *ends)).astype(np.int64)


LINK_COLUMNS = (
    *("source", "target", "capacity", "source_port", "target_port"),
    *("source_adapter", "target_adapter", "cables"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ports:
    """Ports with more data than their cable, one row each; most sources have none.

    A port that is not listed belongs to a link of the fabric or is unknown. A `Fabric` sorts the rows by
    (vertex, adapter, number).
    """

    vertex: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """int32[q]: Switch or host of the port."""
    adapter: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """int32[q]: Adapter at a host; `NO_PORT` at a switch or if unknown."""
    number: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """int32[q]."""
    state: Int8s = field(default_factory=lambda: np.zeros(0, np.uint8))
    """uint8[q]: Index in `PORT_STATES`."""
    could_be: Floats = field(default_factory=lambda: np.zeros(0, np.float64))
    """float64[q]: Data bytes/s that both ends could negotiate, if that is more than the link has; else 0."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        q = len(np.atleast_1d(self.vertex))
        freeze_all(self, q, *PORT_COLUMNS)
        check_range(self, "state", 0, len(PORT_STATES))
        if not (np.isfinite(self.could_be).all() and (self.could_be >= 0).all()):
            raise InvalidValue("Ports.could_be", "must be finite and not negative")

    def __len__(self) -> int:
        return len(self.vertex)

    @property
    def down(self) -> Longs:
        """Rows of ports without a working link (down, disabled or training): int64."""
        return np.flatnonzero(np.isin(self.state, (DOWN, DISABLED, TRAINING)))

    def take(self, rows: NDArray[Any]) -> Ports:
        """Return the rows of an index or mask array, in its order."""
        return Ports(**{name: getattr(self, name)[rows] for name in PORT_COLUMNS})

    def order(self) -> Longs:
        """Return the permutation that sorts the rows as int64[q]."""
        return np.lexsort((self.number, self.adapter, self.vertex)).astype(np.int64)


PORT_COLUMNS = ("vertex", "adapter", "number", "state", "could_be")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForwardingTables:
    """Linear forwarding tables: the routes in use. They do not depend on vertex numbers."""

    switch_guid: Guids
    """uint64[k]: Switches that have a table, ascending."""
    ports: Int8s
    """uint8[k, lids]: Port to which a switch sends a packet for a LID: 0 itself, `NO_ROUTE` none."""
    lid_guid: Guids
    """uint64[lids]: GUID of the port (of an adapter, or port 0 of a switch) with each LID; 0 if unknown. A
    port with LMC > 0 has several consecutive LIDs."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        freeze_all(self, None, "switch_guid", "lid_guid")
        ports = readonly(self.ports, np.uint8, "ForwardingTables.ports")
        if ports.shape != (len(self.switch_guid), len(self.lid_guid)):
            raise InvalidValue(
                "ForwardingTables.ports",
                f"has shape {ports.shape}, not {(len(self.switch_guid), len(self.lid_guid))}",
            )
        object.__setattr__(self, "ports", ports)
        if len(self.switch_guid) > 1 and not bool((self.switch_guid[1:] > self.switch_guid[:-1]).all()):
            raise InvalidValue("ForwardingTables.switch_guid", "must ascend without repeats")
