"""Counters of InfiniBand's performance management, by the names that the tools print.

Data counters count words of 4 bytes; the wait counter counts ticks. Classic counters have few bits and
saturate: they stop at their largest value. Extended counters have 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

WORD_BYTES = 4
LARGEST = (1 << 63) - 1
"""Largest stored value; a counter above it is marked as saturated."""

Counters = dict[str, tuple[int, bool]]
"""Value, and True if it is saturated, by the registry's name of the counter."""
Port = tuple[int, int, int]
"""GUID, LID (one of the two is 0) and port number."""


class Field(NamedTuple):
    """A counter that the tools print.

    `name` is its name in the registry, `bits` the width of the classic counter, `unit` the number of bytes,
    packets, ticks or events per count.
    """

    name: str
    bits: int
    unit: int = 1

    def value(self, count: int, *, extended: bool) -> tuple[int, bool]:
        """Return the bytes or events of a printed number, and True if the counter is saturated.

        Parameters
        ----------
        count : int
            Printed number.
        extended : bool
            True if the counter is known to have 64 bits. Otherwise it is taken as a classic one: an extended
            counter shows the largest 32-bit value by chance once in four thousand million counts.
        """
        full = count == (1 << (64 if extended else self.bits)) - 1 or count == (1 << 64) - 1
        value = count * self.unit
        return (value, full) if value <= LARGEST else (LARGEST, True)


FIELDS: Mapping[str, Field] = {
    "PortXmitData": Field("xmit_bytes", 32, WORD_BYTES),
    "PortRcvData": Field("rcv_bytes", 32, WORD_BYTES),
    "PortXmitPkts": Field("xmit_packets", 32),
    "PortRcvPkts": Field("rcv_packets", 32),
    "PortXmitWait": Field("xmit_wait", 32),
    "PortPktRcvFECN": Field("ecn_marked", 32),
    "PortPktRcvBECN": Field("ecn_notified", 32),
    "SymbolErrorCounter": Field("symbol_errors", 16),
    "LinkErrorRecoveryCounter": Field("link_error_recoveries", 8),
    "LinkDownedCounter": Field("link_downed", 8),
    "PortRcvErrors": Field("rcv_errors", 16),
    "PortRcvRemotePhysicalErrors": Field("rcv_remote_physical_errors", 16),
    "PortRcvSwitchRelayErrors": Field("rcv_switch_relay_errors", 16),
    "PortXmitDiscards": Field("xmit_discards", 16),
    "PortXmitConstraintErrors": Field("xmit_constraint_errors", 8),
    "PortRcvConstraintErrors": Field("rcv_constraint_errors", 8),
    "LocalLinkIntegrityErrors": Field("local_link_integrity_errors", 4),
    "ExcessiveBufferOverrunErrors": Field("excessive_buffer_overruns", 4),
    "QP1Dropped": Field("qp1_dropped", 16),
    "VL15Dropped": Field("vl15_dropped", 16),
}
"""Stored counters, by the tools' names. Bits: InfiniBand Architecture Specification, volume 1, 16.1.3.5."""
SPLIT = frozenset(
    ("PortUnicastXmitPkts", "PortUnicastRcvPkts", "PortMulticastXmitPkts", "PortMulticastRcvPkts")
)
"""Parts of the packet counters: neither stored nor reported."""
ALL_PORTS = 255
"""Port number for the sums over all ports of a device."""
