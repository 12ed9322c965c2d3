"""Rates of links, computed from the counters of their ports."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

import numpy as np

from registry.model.arrays import Bools, Floats, Guids, Int8s, Ints, Longs, freeze_all
from registry.model.counter_deltas import CounterDeltas
from registry.model.fabric import Fabric
from registry.model.views import one_line

UNKNOWN, BY_SENDER, BY_RECEIVER = 0, 1, 2
"""Port whose counter gave the rate of a link."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkRates:
    """Rates of the links of a fabric, row by row as in ``fabric.links``; NaN if unknown.

    Attributes
    ----------
    start, end : datetime
        Period of the mean, UTC.
    bytes_per_second : float64[m]
        Data in this direction by the counter of the sending port, else of the receiving one.
    peak_bytes_per_second : float64[m]
        Largest mean between two sweeps of the period.
    share : float64[m]
        `bytes_per_second` divided by the link's capacity.
    at_least : bool[m]
        True if the rate is a lower bound (reset, saturated counter, missing values).
    by : uint8[m]
        `BY_SENDER`, `BY_RECEIVER` or `UNKNOWN`.
    wait_ticks_per_second : float64[m]
        XmitWait of the sending port: time with data but without credits, in ticks of the device.
    ecn_marked_per_second : float64[m]
        Packets with a congestion mark that arrived over this link.
    pauses_per_second : float64[m]
        PFC pause frames that the sending port received.
    """

    start: datetime
    end: datetime
    bytes_per_second: Floats
    peak_bytes_per_second: Floats
    share: Floats
    at_least: Bools
    by: Int8s
    wait_ticks_per_second: Floats
    ecn_marked_per_second: Floats
    pauses_per_second: Floats

    __repr__ = one_line

    def __post_init__(self) -> None:
        size = len(self.bytes_per_second)
        freeze_all(self, size, *(field.name for field in fields(self) if field.name not in ("start", "end")))

    def hottest(self, count: int) -> Longs:
        """Return at most `count` rows with the largest utilisation as int64, the largest first.

        Links without traffic or with unknown rates are left out; equal ones are sorted by row.
        """
        share = np.where(np.isnan(self.share), 0.0, self.share)
        rows = np.argsort(-share, kind="stable")[:count]
        return rows[share[rows] > 0]


def link_rates(fabric: Fabric, grown: CounterDeltas) -> LinkRates:
    """Return the rates of a fabric's links from the growth of the counters of ports.

    Ports are matched by GUID and number; bundles of cables and links without ports have no rates.
    """
    links = fabric.links
    sender = sending_ports(fabric, grown)
    receiver = _rows(
        grown, _guids(fabric, links.target, links.target_adapter), links.target_port, links.cables == 1
    )
    sent, received = _rate(grown, "xmit_bytes", sender), _rate(grown, "rcv_bytes", receiver)
    by = np.where(~np.isnan(sent), BY_SENDER, np.where(~np.isnan(received), BY_RECEIVER, UNKNOWN))

    def chosen(table: Floats | Bools) -> Floats:
        of_sender, of_receiver = (
            _cells(grown, table, "xmit_bytes", sender),
            _cells(grown, table, "rcv_bytes", receiver),
        )
        return np.where(by == BY_SENDER, of_sender, np.where(by == BY_RECEIVER, of_receiver, np.nan))

    rate = np.where(by == BY_SENDER, sent, received)
    return LinkRates(
        start=grown.start,
        end=grown.end,
        bytes_per_second=rate,
        peak_bytes_per_second=chosen(grown.peak),
        share=rate / links.capacity,
        at_least=chosen(grown.at_least) > 0,
        by=by,
        wait_ticks_per_second=_rate(grown, "xmit_wait", sender),
        ecn_marked_per_second=_rate(grown, "ecn_marked", receiver),
        pauses_per_second=_rate(grown, "pfc_rcv_pauses", sender),
    )


def sending_ports(fabric: Fabric, grown: CounterDeltas) -> Longs:
    """Return the row of each link's sending port among the counted ports as int64[m]; -1 if missing."""
    links = fabric.links
    guids = _guids(fabric, links.source, links.source_adapter)
    return _rows(grown, guids, links.source_port, links.cables == 1)


def _guids(fabric: Fabric, vertex: Ints, adapter: Ints) -> Guids:
    """Return the node GUID of the device at one end of each link as uint64[m]."""
    own = np.append(fabric.adapters.guid, np.uint64(0))
    return np.where(adapter >= 0, own[adapter], fabric.guid[vertex])


def _rows(grown: CounterDeltas, guid: Guids, port: Ints, single: Bools) -> Longs:
    """Return the row of each port among the counted ports as int64[m]; -1 if it is missing."""
    rows = {key: row for row, key in enumerate(zip(grown.guid.tolist(), grown.port.tolist(), strict=True))}
    found = [rows.get(key, -1) for key in zip(guid.tolist(), port.tolist(), strict=True)]
    return np.where(single & (guid > 0) & (port >= 0), np.asarray(found, np.int64), -1)


def _rate(grown: CounterDeltas, name: str, row: Longs) -> Floats:
    """Return the growth per second of a counter at each row as float64[m]; NaN if unknown."""
    covered = _cells(grown, grown.covered, name, row)
    known = np.isfinite(covered) & (covered > 0)
    rate = np.full(len(row), np.nan)
    np.divide(_cells(grown, grown.amount, name, row), covered, out=rate, where=known)
    return rate


def _cells(grown: CounterDeltas, table: Longs | Floats | Bools, name: str, row: Longs) -> Floats:
    """Return the column of a counter at each row as float64[m]; NaN if missing."""
    if name not in grown.names:
        return np.full(len(row), np.nan)
    cells: Floats = np.append(table[:, grown.names.index(name)].astype(np.float64), np.nan)[row]
    return cells
