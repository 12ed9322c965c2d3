"""Port counters of one sweep over a fabric.

Counters increase from their last reset. Some saturate: they stop at their largest value. Growth from sweep to
sweep is computed in `registry.model.counter_deltas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from registry.errors import InvalidValue, UnknownName
from registry.model.arrays import Bools, Guids, Ints, Longs, freeze_all, readonly
from registry.model.fabric import Fabric, format_guid
from registry.model.views import one_line

TRAFFIC = ("xmit_bytes", "rcv_bytes", "xmit_packets", "rcv_packets")
"""Bytes and packets sent and received."""
CONGESTION = ("xmit_wait", "ecn_marked", "ecn_notified", "pfc_xmit_pauses", "pfc_rcv_pauses")
"""Signals of congestion, never bytes. ``xmit_wait``: ticks (of a length that the device decides) in which
the port had data but no credits. ``ecn_marked``: packets received with a congestion mark (FECN, IP ECN).
``ecn_notified``: notifications received by senders (BECN, CNP). ``pfc_*_pauses``: pause frames."""
ERRORS = (
    *("symbol_errors", "link_error_recoveries", "link_downed", "rcv_errors", "rcv_remote_physical_errors"),
    *("rcv_switch_relay_errors", "xmit_discards", "xmit_constraint_errors", "rcv_constraint_errors"),
    *("local_link_integrity_errors", "excessive_buffer_overruns", "qp1_dropped", "vl15_dropped"),
)
"""Numbers of errors."""
COUNTERS = (*TRAFFIC, *CONGESTION, *ERRORS)
"""All counters."""
NOT_COUNTED = -1
"""Value of a counter that the source does not have."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterSweep:
    """Counters of ports at one time."""

    at: datetime
    """Time of the sweep, with a time zone."""
    guid: Guids
    """uint64[p]: Node GUID of the switch or adapter; 0 if the source gives only `lid`."""
    port: Ints
    """int32[p]: Port number. Rows ascend by (guid, lid, port), each once."""
    names: tuple[str, ...]
    """Counters that some port has, in the order of `COUNTERS`; length k."""
    values: Longs
    """int64[p, k]: `NOT_COUNTED` or at least 0; bytes, packets, ticks or events."""
    lid: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """int32[p]: LID of the device; 0 if the source gives the GUID."""
    saturated: Bools = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    """bool[p, k]: True if the counter has its largest possible value: the true value may be larger."""
    errors_only: bool = False
    """True if the source lists only errors, above thresholds: counters of errors that it never listed before
    are taken as 0 in the sweep of this kind before."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        if self.at.tzinfo is None:
            raise InvalidValue("CounterSweep.at", "needs a time zone")
        p = len(np.atleast_1d(self.guid))
        if not len(self.lid):
            object.__setattr__(self, "lid", np.zeros(p, np.int32))
        if not self.saturated.size:
            object.__setattr__(self, "saturated", np.zeros((p, len(self.names)), np.bool_))
        check_ports(self, p)
        freeze_all(self, p, "lid")
        check_table(self, "values", np.int64, p)
        check_table(self, "saturated", np.bool_, p)
        if self.values.size and int(self.values.min()) < NOT_COUNTED:
            raise InvalidValue("CounterSweep.values", "must not be negative")
        if bool(((self.guid == 0) == (self.lid == 0)).any()):
            raise InvalidValue("CounterSweep.guid", "a port is named by its GUID or by its LID")
        order = np.lexsort((self.port, self.lid, self.guid))
        if not np.array_equal(order, np.arange(p)):
            for name in ("guid", "lid", "port", "values", "saturated"):
                object.__setattr__(self, name, frozen(getattr(self, name)[order]))
        same = (self.guid[1:] == self.guid[:-1]) & (self.lid[1:] == self.lid[:-1])
        if bool((same & (self.port[1:] == self.port[:-1])).any()):
            raise InvalidValue("CounterSweep.port", "a port is listed twice")

    @classmethod
    def of(cls, at: datetime, ports: Mapping[tuple[int, int, int], Mapping[str, tuple[int, bool]]]) -> Self:
        """Return a sweep of the counters of each port.

        Examples:
            >>> from datetime import UTC, datetime
            >>> ports = {(0xA1, 0, 1): {"xmit_bytes": (4, False)}}
            >>> sweep = CounterSweep.of(datetime(2026, 1, 1, tzinfo=UTC), ports)
            >>> sweep.column("xmit_bytes").tolist()
            [4]
        """
        found = {name for counters in ports.values() for name in counters}
        names = tuple(name for name in COUNTERS if name in found)
        keys = sorted(ports)
        blank = (NOT_COUNTED, False)
        cells = [[ports[key].get(name, blank) for name in names] for key in keys]
        table = np.asarray(cells, np.int64).reshape(len(keys), len(names), 2)
        return cls(
            at=at,
            guid=np.asarray([key[0] for key in keys], np.uint64),
            lid=np.asarray([key[1] for key in keys], np.int32),
            port=np.asarray([key[2] for key in keys], np.int32),
            names=names,
            values=table[:, :, 0],
            saturated=table[:, :, 1] > 0,
        )

    def __len__(self) -> int:
        return len(self.guid)

    def column(self, name: str) -> Longs:
        """Return one counter of every port as int64[p]; `NOT_COUNTED` if unknown."""
        return column_of(self.names, self.values, name)

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices, as `unknown_devices` names them."""
        return self._device_names(np.ones(len(self), np.bool_))

    def unknown_devices(self, fabric: Fabric) -> tuple[str, ...]:
        """Return the devices that a fabric lacks: ``GUID 0x...`` or ``LID 17``, in order."""
        guids = np.r_[fabric.guid, fabric.adapters.guid]
        lids = np.fromiter(_guids_of_lids(fabric), np.int32)
        known = np.where(self.guid > 0, np.isin(self.guid, guids), np.isin(self.lid, lids))
        return self._device_names(~known)

    def with_guids(self, fabric: Fabric) -> CounterSweep:
        """Return the sweep with GUIDs in place of LIDs; ports with a LID that the fabric lacks are left out.

        Raises:
            InvalidValue: A port is listed twice, by its LID and by its GUID.
        """
        if not bool(self.lid.any()):
            return self
        guid_of = _guids_of_lids(fabric)
        found = np.fromiter((guid_of.get(lid, 0) for lid in self.lid.tolist()), np.uint64, len(self))
        guid = np.where(self.guid > 0, self.guid, found)
        kept = guid > 0
        return replace(
            self,
            guid=guid[kept],
            lid=np.zeros(int(kept.sum()), np.int32),
            port=self.port[kept],
            values=self.values[kept],
            saturated=self.saturated[kept],
        )

    def _device_names(self, rows: Bools) -> tuple[str, ...]:
        """Return the names of the devices of some rows (bool[p]), each once."""
        pairs = zip(self.guid[rows].tolist(), self.lid[rows].tolist(), strict=True)
        return tuple(
            f"GUID {format_guid(guid)}" if guid else f"LID {lid}" for guid, lid in dict.fromkeys(pairs)
        )

    def joined(self, other: CounterSweep) -> CounterSweep | None:
        """Return one sweep of two with different counters of one time, or None if both have the same one.

        Its time is the later one.
        """
        ports: dict[tuple[int, int, int], dict[str, tuple[int, bool]]] = {}
        for sweep in (self, other):
            for row, column in np.argwhere(sweep.values >= 0).tolist():
                key = (int(sweep.guid[row]), int(sweep.lid[row]), int(sweep.port[row]))
                name = sweep.names[column]
                cells = ports.setdefault(key, {})
                if name in cells:
                    return None
                cells[name] = (int(sweep.values[row, column]), bool(sweep.saturated[row, column]))
        both = type(self).of(max(self.at, other.at), ports)
        return replace(both, errors_only=self.errors_only or other.errors_only)


def _guids_of_lids(fabric: Fabric) -> dict[int, int]:
    """Return the GUID of the switch or adapter with each LID, if it is known."""
    adapters = fabric.adapters
    found: dict[int, int] = {}
    owner = adapters.guid[adapters.port_adapter].tolist()
    for lid, lmc, guid in zip(adapters.port_lid.tolist(), adapters.port_lmc.tolist(), owner, strict=True):
        found |= dict.fromkeys(range(lid, lid + (1 << lmc)), guid)
    found |= dict(zip(fabric.lid.tolist(), fabric.guid.tolist(), strict=True))
    return {lid: guid for lid, guid in found.items() if lid and guid}


def column_of(names: tuple[str, ...], table: Longs, name: str) -> Longs:
    """Return one counter of a table as int64[p]; `NOT_COUNTED` if missing."""
    if name not in COUNTERS:
        raise UnknownName("counter", name, COUNTERS)
    if name not in names:
        return frozen(np.full(len(table), NOT_COUNTED, np.int64))
    return table[:, names.index(name)]


def check_ports(owner: Any, size: int) -> None:
    """Check the ports and the names of counters of a table with one row per port."""
    freeze_all(owner, size, "guid", "port")
    label = type(owner).__name__
    if size and not 0 <= int(owner.port.min()) <= int(owner.port.max()) <= 255:
        raise InvalidValue(f"{label}.port", "outside 0 .. 255")
    kept = tuple(name for name in COUNTERS if name in owner.names)
    if owner.names != kept:
        raise InvalidValue(f"{label}.names", "must be counters, in their order")


def check_table(owner: Any, name: str, dtype: type, size: int) -> None:
    """Make a field of a frozen dataclass a read-only table, one row per port and one column per counter."""
    label = f"{type(owner).__name__}.{name}"
    table = readonly(getattr(owner, name), dtype, label)
    if table.shape != (size, len(owner.names)):
        raise InvalidValue(label, f"has shape {table.shape}, not {(size, len(owner.names))}")
    object.__setattr__(owner, name, table)


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it."""
    values.flags.writeable = False
    return values
