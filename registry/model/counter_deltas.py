"""Growth of port counters between sweeps: exact or a lower bound, and over which time.

A sweep may lack ports and counters, since tools print traffic and errors separately. Each counter of each
port is therefore compared with its last value, whichever sweep had it.

Rates of links, computed from the counters of their ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Self

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Bools, Floats, Guids, Int8s, Ints, Longs, freeze_all
from registry.model.counters import (
    CONGESTION,
    COUNTERS,
    ERRORS,
    NOT_COUNTED,
    TRAFFIC,
    CounterSweep,
    check_ports,
    check_table,
    column_of,
    frozen,
)
from registry.model.fabric import Fabric
from registry.model.views import one_line

Port = tuple[int, int]
"""GUID and port number."""
AT_ONCE = 16
"""Number of deltas that `total` holds in memory: each of a large fabric has several MB."""
_TRAFFIC = np.asarray([name in TRAFFIC for name in COUNTERS])
_ERRORS = np.asarray([name in ERRORS for name in COUNTERS])
_KINDS = (_TRAFFIC, np.asarray([name in (*CONGESTION, *ERRORS) for name in COUNTERS]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterDeltas:
    """Growth of the counters of ports in a period."""

    start: datetime
    end: datetime
    """UTC; ``start < end``."""
    guid: Guids
    port: Ints
    """uint64[p] and int32[p]: Ports; ascending."""
    names: tuple[str, ...]
    """Counters; length k."""
    amount: Longs
    """int64[p, k]: Bytes, packets, ticks or events; `NOT_COUNTED` if unknown."""
    at_least: Bools
    """bool[p, k]: True if the amount is a lower bound, after a reset or for a saturated counter."""
    covered: Floats
    """float64[p, k]: Seconds of this growth: less than from start to end if values were missing; 0 if
    unknown."""
    peak: Floats
    """float64[p, k]: Largest rate per second of the summed parts."""
    saturated: Bools = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    """bool[p, k]: True if the counter had its largest value at the end: it counts nothing until it is reset.
    Roll-ups do not store it."""
    pieces: int = 1
    """Number of summed sweeps."""
    backwards: bool = False
    """True if the sweep seems to be older than those before it (clock skew); then amounts are unknown."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        if not self.start < self.end:
            raise InvalidValue("CounterDeltas.end", "must be after the start")
        p = len(np.atleast_1d(self.guid))
        check_ports(self, p)
        if not self.saturated.size:
            object.__setattr__(self, "saturated", np.zeros((p, len(self.names)), np.bool_))
        for name in ("covered", "peak"):
            check_table(self, name, np.float64, p)
        check_table(self, "amount", np.int64, p)
        for name in ("at_least", "saturated"):
            check_table(self, name, np.bool_, p)

    @classmethod
    def since_reset(cls, sweep: CounterSweep) -> Self:
        """Return all that a sweep counted since its ports' counters were reset: at unknown times."""
        known = sweep.guid > 0
        values = sweep.values[known]
        return cls(
            start=datetime.min.replace(tzinfo=UTC),
            end=sweep.at,
            guid=sweep.guid[known],
            port=sweep.port[known],
            names=sweep.names,
            amount=values,
            at_least=sweep.saturated[known],
            covered=np.zeros(values.shape),
            peak=np.zeros(values.shape),
            saturated=sweep.saturated[known],
        )

    @property
    def is_since_reset(self) -> bool:
        """True if the amounts are all that was ever counted, in an unknown time."""
        return self.start == datetime.min.replace(tzinfo=UTC)

    def __len__(self) -> int:
        return len(self.guid)

    @property
    def seconds(self) -> float:
        """Length of the period."""
        return (self.end - self.start).total_seconds()

    def column(self, name: str) -> Longs:
        """Return the growth of one counter of every port as int64[p]; `NOT_COUNTED` if unknown."""
        return column_of(self.names, self.amount, name)


def deltas(before: CounterSweep, after: CounterSweep) -> CounterDeltas:
    """Return the growth between two sweeps of the ports and counters that both have; see `growth`.

    Raises:
        InvalidValue: `after` is not later than `before`, or a device is named by its LID.
    """
    if not before.at < after.at:
        raise InvalidValue("CounterDeltas.end", "must be after the start")
    last = _LastValues()
    last.update(before)
    return replace(last.growth_until(after), start=before.at)


def growth(sweeps: Iterable[CounterSweep], after: datetime | None = None) -> Iterator[CounterDeltas]:
    """Yield the growth from one sweep to the next, in order of time.

    A counter that decreased was reset: it grew by at least its present value. If one counter of a port's
    traffic (or of its errors and congestion signals) decreased, the others of that kind may have been reset
    too and exceeded their old value: they grew by at least the difference, as did a saturated counter.

    If no traffic counter increased, most decreased and their sum is still more than half, the sweep is not a
    reset but out of order (`CounterDeltas.backwards`): it has no amounts and later sweeps are compared with
    those before it.

    Errors that a list of errors (`CounterSweep.errors_only`) has for the first time grew from 0 since the
    list before it: at most that much, as the tool may have had thresholds.

    Args:
        sweeps: Sweeps by time.
        after: Sweeps until this time are only the start of the count.
    """
    last = _LastValues()
    for sweep in sweeps:
        if sweep.errors_only:
            last.assume_zero(sweep)
        grown = None
        if after is None or sweep.at > after:
            grown = last.growth_until(sweep) if last.has_earlier(sweep) else None
        if grown is not None:
            yield grown
        if grown is None or not grown.backwards:
            last.update(sweep)


def have_last_values(sweeps: Sequence[CounterSweep]) -> list[bool]:
    """Return True for each sweep with a counter of a port that no later one has, and the last list of errors.

    Args:
        sweeps: Sweeps by time.
    """
    ports, rows_of = _rows_of(sweeps)
    later = np.zeros((len(ports), len(COUNTERS)), np.bool_)
    found, listed = [], False
    for sweep in reversed(sweeps):
        cells = _cells(rows_of[_port_list(sweep)], _columns(sweep), len(later))
        known = sweep.values != NOT_COUNTED
        found.append(bool((known & ~later[cells]).any()) or (sweep.errors_only and not listed))
        later[cells] |= known
        listed |= sweep.errors_only
    return found[::-1]


def total(parts: Iterable[CounterDeltas]) -> CounterDeltas:
    """Return the sum of deltas of periods that do not overlap, as stored in roll-ups.

    Raises:
        InvalidValue: There are none.
    """
    remaining, summed = iter(parts), None
    while some := list(islice(remaining, AT_ONCE)):
        summed = _sum(some if summed is None else [summed, *some])
    if summed is None:
        raise InvalidValue("CounterDeltas", "nothing to sum")
    return summed


def _sum(parts: Sequence[CounterDeltas]) -> CounterDeltas:
    """Return the sum of deltas that are in memory together."""
    keys, rows_of = _rows_of(parts)
    names = tuple(name for name in COUNTERS if any(name in part.names for part in parts))
    shape = (len(keys), len(names))
    amount, at_least = np.full(shape, NOT_COUNTED, np.int64), np.zeros(shape, np.bool_)
    covered, peak, saturated = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.bool_)
    for part in sorted(parts, key=lambda part: part.end):
        rows = rows_of[_port_list(part)]
        cells = _cells(rows, np.asarray([names.index(name) for name in part.names], np.int64), len(keys))
        known = part.amount != NOT_COUNTED
        amount[cells] = np.where(known, np.maximum(amount[cells], 0) + part.amount, amount[cells])
        at_least[cells] |= part.at_least
        covered[cells] += part.covered
        peak[cells] = np.maximum(peak[cells], part.peak)
        saturated[cells] = np.where(known, part.saturated, saturated[cells])
    return CounterDeltas(
        start=min(part.start for part in parts),
        end=max(part.end for part in parts),
        guid=np.asarray([key[0] for key in keys], np.uint64),
        port=np.asarray([key[1] for key in keys], np.int32),
        names=names,
        amount=frozen(amount),
        at_least=frozen(at_least),
        covered=frozen(covered),
        peak=frozen(peak),
        saturated=frozen(saturated),
        pieces=sum(part.pieces for part in parts),
    )


class _LastValues:
    """Last value of every counter of every port, and its time."""

    def __init__(self) -> None:
        self._rows: dict[Port, int] = {}
        self._rows_of: dict[bytes, Longs] = {}  # rows of lists of ports that were stored before
        self._values = np.zeros((0, len(COUNTERS)), np.int64)
        self._since = np.zeros((0, len(COUNTERS)))  # seconds since 1970
        self._listed = np.inf  # time of the last list of errors

    def has_earlier(self, sweep: CounterSweep) -> bool:
        """Return True if a counter of the sweep has an earlier value, or if it is a later list of errors."""
        _, since, _ = self._cells(sweep)
        now = sweep.at.timestamp()
        return bool((since < now).any()) or (sweep.errors_only and self._listed < now)

    def assume_zero(self, sweep: CounterSweep) -> None:
        """Take errors of a list that have no earlier value as 0 in the list before it."""
        if self._listed < sweep.at.timestamp():
            cells = _cells(self._known_rows(sweep), _columns(sweep), len(self._values))
            errors = _ERRORS[_columns(sweep)]
            unseen = (self._values[cells] == NOT_COUNTED) & (sweep.values != NOT_COUNTED) & errors
            self._values[cells] = np.where(unseen, 0, self._values[cells])
            self._since[cells] = np.where(unseen, self._listed, self._since[cells])

    def update(self, sweep: CounterSweep) -> None:
        """Store the counters of a sweep as the last values."""
        if bool(sweep.lid.any()):
            raise InvalidValue("CounterSweep.guid", "is needed for every port")
        cells = _cells(self._known_rows(sweep), _columns(sweep), len(self._values))
        known = sweep.values != NOT_COUNTED
        self._values[cells] = np.where(known, sweep.values, self._values[cells])
        self._since[cells] = np.where(known, sweep.at.timestamp(), self._since[cells])
        if sweep.errors_only:
            self._listed = sweep.at.timestamp()

    def _known_rows(self, sweep: CounterSweep) -> Longs:
        """Return the row of each port of the sweep; add rows for new ports."""
        if (rows := self._rows_of.get(_port_list(sweep))) is None:
            places = [self._rows.setdefault(key, len(self._rows)) for key in _ports(sweep)]
            rows = self._rows_of[_port_list(sweep)] = np.asarray(places, np.int64)
        more = len(self._rows) - len(self._values)
        if more:
            width = len(COUNTERS)
            self._values = np.vstack([self._values, np.full((more, width), NOT_COUNTED, np.int64)])
            self._since = np.vstack([self._since, np.full((more, width), np.inf)])
        return rows

    def growth_until(self, sweep: CounterSweep) -> CounterDeltas:
        """Return the growth until a sweep, for the ports with earlier values."""
        if bool(sweep.lid.any()):
            raise InvalidValue("CounterSweep.guid", "is needed for every port")
        old, since, kept = self._cells(sweep)
        new, full = sweep.values[kept], sweep.saturated[kept]
        now = sweep.at.timestamp()
        known = (old != NOT_COUNTED) & (new != NOT_COUNTED) & (since < now)
        wrong = _in_wrong_order(old, new, known & _TRAFFIC[_columns(sweep)])
        fell = known & (new < old)
        amount = np.where(known & (not wrong), np.where(fell, new, new - old), NOT_COUNTED)
        counted = amount != NOT_COUNTED
        covered = np.where(counted, now - np.where(known, since, now), 0.0)
        start = float(since[known].min()) if bool(known.any()) else min(self._listed, now - 1e-6)
        return CounterDeltas(
            start=datetime.fromtimestamp(start, sweep.at.tzinfo),
            end=sweep.at,
            guid=sweep.guid[kept],
            port=sweep.port[kept],
            names=sweep.names,
            amount=frozen(amount),
            at_least=frozen(counted & _lower_bounds(sweep, fell, known & full)),
            covered=frozen(covered),
            peak=frozen(np.divide(amount, covered, out=np.zeros(amount.shape), where=counted)),
            saturated=frozen(counted & full),
            backwards=wrong,
        )

    def _cells(self, sweep: CounterSweep) -> tuple[Longs, Floats, Longs]:
        """Return last values and times of the sweep's counters, and the rows of the sweep that have them."""
        if (rows := self._rows_of.get(_port_list(sweep))) is not None:
            kept = np.arange(len(sweep))
        else:
            found = [(row, self._rows[key]) for row, key in enumerate(_ports(sweep)) if key in self._rows]
            kept, rows = np.asarray(found, np.int64).reshape(-1, 2).T
        cells = _cells(rows, _columns(sweep), len(self._values))
        return self._values[cells], self._since[cells], kept


def _lower_bounds(sweep: CounterSweep, fell: Bools, full: Bools) -> Bools:
    """Return the counters whose growth is only known to be at least the amount."""
    doubtful = fell | full
    for kind in _KINDS:
        of_kind = kind[_columns(sweep)]
        doubtful[:, of_kind] |= fell[:, of_kind].any(axis=1, keepdims=True)
    return doubtful


def _in_wrong_order(old: Longs, new: Longs, traffic: Bools) -> bool:
    was, now = old[traffic], new[traffic]
    if not len(was) or bool((now > was).any()):
        return False
    return bool((now < was).mean() > 0.5) and float(now.sum()) * 2 > float(was.sum())


def _ports(of: CounterSweep | CounterDeltas) -> list[Port]:
    return list(zip(of.guid.tolist(), of.port.tolist(), strict=True))


def _cells(rows: Longs, columns: Longs, count: int) -> tuple[Any, ...]:
    """Return the index of rows and columns of a table; a slice if the rows are all of its `count` rows."""
    if np.array_equal(rows, np.arange(count)):
        return slice(None), columns
    return np.ix_(rows, columns)


def _rows_of(parts: Sequence[CounterSweep | CounterDeltas]) -> tuple[list[Port], dict[bytes, Longs]]:
    """Return all ports, ascending, and where those of each list of ports are among them."""
    port_lists = {_port_list(part): part for part in parts}
    keys = sorted({key for part in port_lists.values() for key in _ports(part)})
    place = {key: row for row, key in enumerate(keys)}
    rows_of = {
        same: np.asarray([place[key] for key in _ports(part)], np.int64) for same, part in port_lists.items()
    }
    return keys, rows_of


def _port_list(of: CounterSweep | CounterDeltas) -> bytes:
    """Return a key that is equal for equal lists of ports."""
    return of.guid.tobytes() + of.port.tobytes()


def _columns(sweep: CounterSweep) -> Longs:
    return np.asarray([COUNTERS.index(name) for name in sweep.names], np.int64)


UNKNOWN, BY_SENDER, BY_RECEIVER = 0, 1, 2
"""Port whose counter gave the rate of a link."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkRates:
    """Rates of the links of a fabric, row by row as in ``fabric.links``; NaN if unknown."""

    start: datetime
    end: datetime
    """Period of the mean, UTC."""
    bytes_per_second: Floats
    """float64[m]: Data in this direction by the counter of the sending port, else of the receiving one."""
    peak_bytes_per_second: Floats
    """float64[m]: Largest mean between two sweeps of the period."""
    share: Floats
    """float64[m]: `bytes_per_second` divided by the link's capacity."""
    at_least: Bools
    """bool[m]: True if the rate is a lower bound (reset, saturated counter, missing values)."""
    by: Int8s
    """uint8[m]: `BY_SENDER`, `BY_RECEIVER` or `UNKNOWN`."""
    wait_ticks_per_second: Floats
    """float64[m]: XmitWait of the sending port: time with data but without credits, in ticks of the device.
    """
    ecn_marked_per_second: Floats
    """float64[m]: Packets with a congestion mark that arrived over this link."""
    pauses_per_second: Floats
    """float64[m]: PFC pause frames that the sending port received."""

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
            _port_cells(grown, table, "xmit_bytes", sender),
            _port_cells(grown, table, "rcv_bytes", receiver),
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
    covered = _port_cells(grown, grown.covered, name, row)
    known = np.isfinite(covered) & (covered > 0)
    rate = np.full(len(row), np.nan)
    np.divide(_port_cells(grown, grown.amount, name, row), covered, out=rate, where=known)
    return rate


def _port_cells(grown: CounterDeltas, table: Longs | Floats | Bools, name: str, row: Longs) -> Floats:
    """Return the column of a counter at each row as float64[m]; NaN if missing."""
    if name not in grown.names:
        return np.full(len(row), np.nan)
    cells: Floats = np.append(table[:, grown.names.index(name)].astype(np.float64), np.nan)[row]
    return cells
