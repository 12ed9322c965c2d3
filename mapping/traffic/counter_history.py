"""Utilisation and errors of links over time, from the growth of port counters between sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Self

import numpy as np

from mapping.checks.error_limits import ErrorLimits, PortErrors, port_errors
from registry.model import NOT_COUNTED, Bools, CounterDeltas, Fabric, Floats, Longs, link_rates, total
from registry.model.counters import ERRORS
from registry.model.views import one_line

WAIT = "xmit_wait"
"""Counter of the ticks in which a port had data to send but no credits."""


class CounterGrowth(NamedTuple):
    """Growth of one counter of one or several ports together.

    Attributes
    ----------
    counter : str
        One of `registry.model.counters.ERRORS`, or `WAIT`.
    growth : int
    per_hour : float
    limit : float
        Largest growth of a port that is not reported; infinite if there is no limit.
    ports : int
        Number of ports with a fault: their counter grew beyond its limit, and not harmlessly.
    harmless : int
        Number of ports whose growth beyond the limit need not be a fault, see `PortErrors`.
    at_least : bool
        True if the growth is a lower bound (reset or full counter).
    """

    counter: str
    growth: int
    per_hour: float
    limit: float
    ports: int
    harmless: int
    at_least: bool


class NewErrors(NamedTuple):
    """Errors that a port counted: end of the interval, row of `PortErrors`, counter, number."""

    time: datetime
    port: int
    counter: str
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterHistory:
    """Port counters of a fabric in a period.

    Attributes
    ----------
    times : tuple of datetime
        Ends of the times between two sweeps of traffic, ascending; length k.
    share : float64[k, m]
        Mean utilisation of each link in that time; NaN if unknown.
    wait : float64[k, m]
        Ticks per second in which the sending port waited for credits; NaN if unknown.
    errors : PortErrors
        Growth of the error counters in the whole period.
    new_errors : tuple of NewErrors
        Errors by time.
    """

    times: tuple[datetime, ...]
    share: Floats
    wait: Floats
    errors: PortErrors
    new_errors: tuple[NewErrors, ...]

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

        Parameters
        ----------
        ports : int64
            Rows of `errors`.
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
