"""Ports of a fabric: growth of errors, measured and estimated utilisation, and the jobs that use them.

Utilisation and errors of links over time, from the growth of port counters between sweeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from mapping.checks.finding import ErrorLimits, PortErrors, port_errors
from mapping.traffic.names import link_text
from mapping.traffic.shared_load import AgainstCounters, SharedLoad, against_counters
from registry.model import (
    HOST,
    NOT_COUNTED,
    Bools,
    CounterDeltas,
    Fabric,
    Floats,
    LinkRates,
    Longs,
    link_rates,
    total,
)
from registry.model.counter_deltas import sending_ports
from registry.model.counters import ERRORS
from registry.model.fabric import port_name
from registry.model.views import one_line


class ErrorGrowth(NamedTuple):
    """Growth of one error counter of a port."""

    counter: str
    """One of `registry.model.counters.ERRORS`."""
    growth: int
    per_hour: float
    limit: float
    """Growth from which the port is reported; infinite if there is no limit."""
    at_least: bool
    """True if the growth is a lower bound (reset or full counter)."""
    saturated: bool
    """True if the counter is full and counts no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortUse:
    """State of one port."""

    name: str
    to: str
    """The port and the other end of its cable, as ``DEVICE:PORT``; `to` is empty if there is no cable."""
    device: str
    port: int
    """-1 if unknown."""
    errors: tuple[ErrorGrowth, ...]
    """Counters that grew, or that are full."""
    excess: float
    """Largest growth in relation to its limit."""
    sent_share: float
    received_share: float
    """Measured data rates over capacity; NaN if unknown."""
    at_least: bool
    """True if a measured rate is a lower bound (reset or full counter)."""
    sent_bytes: float
    received_bytes: float
    """Data since the port's counters were reset; NaN if unknown, and if rates are known."""
    estimated_sent_seconds: float
    estimated_received_seconds: float
    """Time of the running jobs' data of an iteration on the link; NaN without a cable."""
    estimated_sent_share: float
    estimated_received_share: float
    """The same as a share of the capacity, as `AgainstCounters.predicted_share`; NaN if unknown."""
    jobs: tuple[str, ...]
    """Running jobs whose data cross the cable, the largest part first, then other jobs on its host."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PortTable:
    """All ports of a fabric that have a cable or are counted."""

    shared: SharedLoad
    """Load of the running jobs."""
    jobs_of_host: Mapping[str, tuple[str, ...]]
    """Ids of the running jobs on each host."""
    errors: PortErrors | None
    """Growth of the error counters; None without counters."""
    rates: LinkRates | None
    """Measured rates; None without counters of traffic."""

    __repr__ = one_line

    @property
    def fabric(self) -> Fabric:
        """Fabric of the ports."""
        return self.shared.fabric

    @cached_property
    def estimate(self) -> AgainstCounters:
        """Estimated and measured utilisation of all links."""
        measured = np.full(len(self.fabric.links), np.nan)
        if self.rates is not None:
            measured = self.rates.bytes_per_second
        return against_counters(self.fabric, self.shared.link_bytes, measured)

    @cached_property
    def back(self) -> Longs:
        """Row of the other direction of each link (int64[m]); -1 if there is none."""
        links = self.fabric.links
        near = links.source, links.source_port, links.source_adapter
        far = links.target, links.target_port, links.target_adapter
        there = list(zip(*(column.tolist() for column in (*near, *far)), strict=True))
        row_of = {ends: row for row, ends in enumerate(there)}
        return np.asarray([row_of.get((*ends[3:], *ends[:3]), -1) for ends in there], np.int64)

    def top(self, count: int) -> tuple[PortUse, ...]:
        """Return the ports with most errors in relation to their limits, then the busiest ones.

        A port without errors is left out if the other end of its cable is listed: its use is the same.
        """
        link, counted = self._rows()
        excess = np.zeros(len(link)) if self.errors is None else np.append(self.errors.excess, 0.0)[counted]
        use = np.append(self.use, 0.0)
        busy = np.maximum(use[link], use[np.append(self.back, -1)[link]])
        chosen: dict[int, PortUse] = {}
        for row in np.lexsort((-busy, -excess)).tolist():
            if len(chosen) == count or not (excess[row] or busy[row]):
                break
            end = int(link[row])
            if excess[row] or int(self.back[end]) not in chosen:
                chosen[end if end >= 0 else -2 - row] = self._port(end, int(counted[row]), float(excess[row]))
        return tuple(chosen.values())

    @property
    def is_since_reset(self) -> bool:
        """True if there is one sweep only: errors and bytes are all that was ever counted."""
        return self.errors is not None and self.errors.grown.is_since_reset

    @cached_property
    def bytes_since_reset(self) -> Floats:
        """Bytes that the port at each link's source sent and received (float64[2, m]); NaN if unknown."""
        if self.errors is None or not self.is_since_reset:
            return np.full((2, len(self.fabric.links)), np.nan)
        grown = self.errors.grown
        row = sending_ports(self.fabric, grown)
        counted = np.stack([grown.column(name)[row] for name in ("xmit_bytes", "rcv_bytes")])
        total: Floats = np.where((row < 0) | (counted == NOT_COUNTED), np.nan, counted)
        return total

    @cached_property
    def use(self) -> Floats:
        """Utilisation of each link (float64[m]): measured, else estimated, else seconds per iteration.

        After the first sweep: the bytes that its port ever sent.
        """
        sent = self.bytes_since_reset[0]
        if not np.isnan(sent).all():
            return np.where(np.isnan(sent), 0.0, sent)
        estimate = self.estimate
        if np.isnan(estimate.iterations_per_second):
            estimated = self.shared.seconds
        else:
            estimated = estimate.predicted_share
        return np.where(np.isnan(estimate.measured_share), estimated, estimate.measured_share)

    def _rows(self) -> tuple[Longs, Longs]:
        """Return for each port the row of the link that leaves it and its row in `errors`; -1 for none."""
        links = len(self.fabric.links)
        if self.errors is None:
            return np.arange(links), np.full(links, -1, np.int64)
        counted = np.full(links, -1, np.int64)
        linked = self.errors.link >= 0
        counted[self.errors.link[linked]] = np.flatnonzero(linked)
        other = np.flatnonzero(~linked)
        return np.r_[np.arange(links), np.full(len(other), -1)], np.r_[counted, other]

    def _port(self, link: int, counted: int, excess: float) -> PortUse:
        """Return the state of one port."""
        links, names, back = self.fabric.links, self.fabric.names, -1
        if link >= 0:
            back, name = int(self.back[link]), link_text(self.fabric, link)
            device, port = names[int(links.source[link])], int(links.source_port[link])
        else:
            assert self.errors is not None
            device, port = self.errors.device[counted], int(self.errors.grown.port[counted])
            name = port_name(device, port)
        rows = [row for row in (link, back) if row >= 0]
        estimate, seconds = self.estimate, self.shared.seconds
        return PortUse(
            name=name,
            to="" if back < 0 else link_text(self.fabric, back),
            device=device,
            port=port,
            errors=() if self.errors is None or counted < 0 else tuple(_grown(self.errors, counted)),
            excess=excess,
            sent_share=_at(estimate.measured_share, link),
            received_share=_at(estimate.measured_share, back),
            at_least=self.rates is not None and bool(self.rates.at_least[rows].any()),
            sent_bytes=_at(self.bytes_since_reset[0], link),
            received_bytes=_at(self.bytes_since_reset[1], link),
            estimated_sent_seconds=_at(seconds, link),
            estimated_received_seconds=_at(seconds, back),
            estimated_sent_share=_at(estimate.predicted_share, link),
            estimated_received_share=_at(estimate.predicted_share, back),
            jobs=self._jobs(device, rows),
        )

    def _jobs(self, device: str, rows: list[int]) -> tuple[str, ...]:
        """Return the jobs on the two directions of a cable, and those on the host at one of its ends."""
        users = [user for link in self.shared.links(rows) for user in link.users]
        found = [user.job for user in sorted(users, key=lambda user: -user.part)]
        ends = {device, *(self.fabric.names[int(self.fabric.links.target[row])] for row in rows)}
        hosts = self.fabric.vertices(ends & set(self.jobs_of_host), kind="device").tolist()
        for host in (host for host in hosts if self.fabric.kind[host] == HOST):
            found += self.jobs_of_host[self.fabric.names[host]]
        return tuple(dict.fromkeys(found))


def _at(column: Floats, row: int) -> float:
    return float(column[row]) if row >= 0 else float("nan")


def _grown(errors: PortErrors, row: int) -> Iterable[ErrorGrowth]:
    """Yield the counters of a port that grew or are full, the largest growth first."""
    seconds = errors.covered[row]
    for column in np.argsort(-errors.amount[row], kind="stable").tolist():
        amount = int(errors.amount[row, column])
        if amount or errors.saturated[row, column]:
            yield ErrorGrowth(
                counter=errors.names[column],
                growth=amount,
                per_hour=3600 * amount / float(seconds[column]) if seconds[column] else 0.0,
                limit=float(errors.limit[row, column]),
                at_least=bool(errors.at_least[row, column]),
                saturated=bool(errors.saturated[row, column]),
            )


WAIT = "xmit_wait"
"""Counter of the ticks in which a port had data to send but no credits."""


class CounterGrowth(NamedTuple):
    """Growth of one counter of one or several ports together."""

    counter: str
    """One of `registry.model.counters.ERRORS`, or `WAIT`."""
    growth: int
    per_hour: float
    limit: float
    """Largest growth of a port that is not reported; infinite if there is no limit."""
    ports: int
    """Number of ports with a fault: their counter grew beyond its limit, and not harmlessly."""
    harmless: int
    """Number of ports whose growth beyond the limit need not be a fault, see `PortErrors`."""
    at_least: bool
    """True if the growth is a lower bound (reset or full counter)."""


class NewErrors(NamedTuple):
    """Errors that a port counted: end of the interval, row of `PortErrors`, counter, number."""

    time: datetime
    port: int
    counter: str
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterHistory:
    """Port counters of a fabric in a period."""

    times: tuple[datetime, ...]
    """Ends of the times between two sweeps of traffic, ascending; length k."""
    share: Floats
    """float64[k, m]: Mean utilisation of each link in that time; NaN if unknown."""
    wait: Floats
    """float64[k, m]: Ticks per second in which the sending port waited for credits; NaN if unknown."""
    errors: PortErrors
    """Growth of the error counters in the whole period."""
    new_errors: tuple[NewErrors, ...]
    """Errors by time."""

    __repr__ = one_line

    @classmethod
    def of(cls, fabric: Fabric, parts: Sequence[CounterDeltas], limits: ErrorLimits) -> Self | None:
        """Return the history of consecutive growths, or None if there are none."""
        if not parts:
            return None
        counted = [part for part in parts if "xmit_bytes" in part.names or "rcv_bytes" in part.names]
        rates = [link_rates(fabric, part) for part in counted]
        shape = (len(rates), len(fabric.links))
        errors = port_errors(fabric, total(parts), limits)
        return cls(
            times=tuple(part.end for part in counted),
            share=np.asarray([rate.share for rate in rates]).reshape(shape),
            wait=np.asarray([rate.wait_ticks_per_second for rate in rates]).reshape(shape),
            errors=errors,
            new_errors=tuple(_new_errors(errors, parts)),
        )

    @property
    def excess(self) -> Floats:
        """Largest growth of the error counters of each link's sending port over its limit (float64[m]).

        0 without new errors, above 1 for a fault, NaN if the port is not counted.
        """
        found = np.full(self.share.shape[1], np.nan)
        linked = self.errors.link >= 0
        found[self.errors.link[linked]] = self.errors.excess[linked]
        return found

    def ports_of_links(self, rows: Iterable[int]) -> Longs:
        """Return the rows of `errors` (int64) of the sending ports of some links."""
        return np.flatnonzero(np.isin(self.errors.link, list(rows)))

    def ports_of_device(self, name: str) -> Longs:
        """Return the rows of `errors` (int64) of all ports of a switch or host."""
        return np.asarray([row for row, device in enumerate(self.errors.device) if device == name], np.int64)

    def growth(self, ports: Longs) -> tuple[CounterGrowth, ...]:
        """Return the growth of each counter of some ports together, errors first; without counters, nothing.

        Args:
            ports: Rows of `errors`.
        """
        errors, grown = self.errors, self.errors.grown
        found = []
        for name in (*ERRORS, WAIT):
            if name not in grown.names or not len(ports):
                continue
            column = grown.names.index(name)
            amount, seconds = grown.amount[ports, column], grown.covered[ports, column]
            known = (amount != NOT_COUNTED) & (seconds > 0)
            if not known.any():
                continue
            limit, over, harmless = _limit(errors, name, ports)
            found.append(
                CounterGrowth(
                    counter=name,
                    growth=int(amount[known].sum()),
                    per_hour=float((3600 * amount[known] / seconds[known]).sum()),
                    limit=limit,
                    ports=int((over & ~harmless).sum()),
                    harmless=int((over & harmless).sum()),
                    at_least=bool(grown.at_least[ports, column].any()),
                )
            )
        return tuple(found)


def _limit(errors: PortErrors, name: str, ports: Longs) -> tuple[float, Bools, Bools]:
    """Return the largest limit of a counter at some ports, which are beyond it, and which harmlessly."""
    if name not in errors.names:
        nowhere = np.zeros(len(ports), np.bool_)
        return float("inf"), nowhere, nowhere
    column = errors.names.index(name)
    limit = float(errors.limit[ports, column].max())
    return limit, errors.over[ports, column], errors.harmless[ports, column]


def _new_errors(errors: PortErrors, parts: Sequence[CounterDeltas]) -> Iterable[NewErrors]:
    """Yield the errors of each part that has any, by time."""
    whole = errors.grown
    row_of = {key: row for row, key in enumerate(zip(whole.guid.tolist(), whole.port.tolist(), strict=True))}
    for part in sorted(parts, key=lambda part: part.end):
        columns = [column for column, name in enumerate(part.names) if name in ERRORS]
        for row, column in np.argwhere(part.amount[:, columns] > 0).tolist():
            key = int(part.guid[row]), int(part.port[row])
            amount = int(part.amount[row, columns[column]])
            yield NewErrors(part.end, row_of[key], part.names[columns[column]], amount)
