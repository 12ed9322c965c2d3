"""Types of what vanished from the scans of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """A cable that a scan no longer saw after an earlier one had seen it.

    Attributes
    ----------
    source, target : str
        Names of the devices at its ends.
    source_port, target_port : int
        Ports; `registry.model.NO_PORT` if unknown.
    times : int
        Number of times that it vanished in the period.
    """

    source: str
    source_port: int
    target: str
    target_port: int
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """A host, switch or cable of an earlier scan that the fabric no longer has.

    Attributes
    ----------
    kind : str
        ``host``, ``switch`` or ``cable``.
    devices : tuple of str
        Name of the device; of a cable the devices at its ends.
    ports : tuple of int
        Ports of a cable; `registry.model.NO_PORT` if unknown.
    cables : int
        Cables that vanished with a device; of a bundle the number that is missing.
    since : datetime
        Time of the first scan without it, UTC.
    """

    kind: str
    devices: tuple[str, ...]
    ports: tuple[int, ...] = ()
    cables: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What the scans of a cluster no longer show.

    Attributes
    ----------
    observation : str
        Id of the latest scan.
    vanished : tuple of Vanished
        What was there after the last ``almanac cluster accept`` and is missing now: switches, hosts, cables.
    interruptions : tuple of Interruption
        Cables that vanished in the last period, back or not.
    """

    cluster: str
    observation: str
    vanished: tuple[Vanished, ...] = ()
    interruptions: tuple[Interruption, ...] = ()
