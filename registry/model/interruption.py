"""Type of a cable that vanished from the scans of a period."""

from __future__ import annotations

from dataclasses import dataclass


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
