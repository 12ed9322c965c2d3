"""Numbers with units and times for pages and tables, and times that users write.

Version of this program, which every record stores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

SECONDS = "s"
BYTES = "B"
RATE = "B/s"
HOPS = "hops"

_STEPS = {
    SECONDS: ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    BYTES: ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    RATE: ((1e15, "PB/s"), (1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    HOPS: ((1.0, "hops"),),
}

_SPAN = re.compile(r"-?(\d{1,9}) ?(s|m|h|d|w|sec|min|(?:second|minute|hour|day|week)s?)(?: ago)?", re.A)
_SPAN_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MOMENTS = "2026-11-21T08:00:00Z, 7d, 12h or yesterday"
"""Examples of what `moment_of` takes."""


class Unit(NamedTuple):
    """A unit and its size in base units."""

    size: float
    name: str


def unit_for(values: Iterable[float], base: str) -> Unit:
    """Return the unit in which the largest value is at least 1, or else the smallest unit.

    Args:
        base: Base unit of the values: `SECONDS`, `BYTES`, `RATE` or `HOPS`.
    """
    largest = max((abs(value) for value in values), default=0.0)
    steps = _STEPS[base]
    if largest == 0:
        return Unit(*next(step for step in steps if step[0] == 1.0))
    return Unit(*next((step for step in steps if largest >= step[0]), steps[-1]))


def text(value: float, base: str) -> str:
    """Return a value with a suitable unit and four digits: ``12.34 ms``."""
    unit = unit_for([float(f"{value:.4g}")], base)  # 0.99999 s is 1 s, not 1000 ms
    return f"{value / unit.size:.4g} {unit.name}"


def short(value: float, base: str) -> str:
    """Return a value with a suitable unit and three significant figures: ``12.3 ms``, ``1,230 s``."""
    unit = unit_for([float(f"{value:.3g}")], base)
    return f"{figures(value / unit.size)} {unit.name}"


def figures(value: float) -> str:
    """Return a number with three significant figures, without an exponent if it is large: ``1,230``."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if 100 <= abs(rounded) < math.inf else f"{rounded:.3g}"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number of things: ``1 job``, ``2,048 jobs``; `many` is ``one`` with an s by default."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def moment_text(moment: datetime) -> str:
    """Return a time in UTC to the second."""
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def moment_of(text: str, now: datetime) -> datetime:
    """Return the time that a text means, UTC.

    Args:
        text: A time in ISO 8601, UTC if it has no zone; or a span before `now`, with or without a minus or
            ``ago``: a whole number of ``s``, ``m``, ``h``, ``d`` or ``w``, also in full (``90 minutes``); or
            ``now``; ``today``, the last midnight in UTC; or ``yesterday``, which is ``1d``.
        now: Present time, with a zone.

    Raises:
        ValueError: The text is no time, or one before the year 1 or after the year 9999.
    """
    word = text.strip().lower()
    span = _SPAN.fullmatch({"yesterday": "1d", "now": "0s"}.get(word, word))
    try:
        if span is not None:
            return now.astimezone(UTC) - timedelta(seconds=int(span[1]) * _SPAN_SECONDS[span[2][0]])
        if word == "today":
            return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is before the year 1 or after the year 9999") from error


def code_version() -> str:
    """Return the version of the installed distribution, or ``unknown`` if none is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("fabric-almanac")
    except PackageNotFoundError:
        return "unknown"
