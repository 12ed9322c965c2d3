"""What the caller of an ingest decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from registry.errors import InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller of an ingest decides; parsers read what concerns them.

    Attributes
    ----------
    cluster : str or None
        Cluster that fabrics, tables and jobs belong to; fabrics and tables need one.
    name : str or None
        Name of the profile in the registry.
    format : str or None
        Name of the format of every file, instead of recognising it.
    observed_at : datetime or None
        Time of the scan, instead of the scan's own or the file's; UTC where it has no zone.
    rate : float or None
        Data bytes/s and direction of a cable whose source prints no rate; None: the format's default.
    kinds : tuple of str
        Open MPI monitoring: kinds of records that are summed; ``E`` and ``I`` are the library's
        external and internal point-to-point traffic.
    allow_missing_ranks : bool
        Take a recording in which ranks are missing (they are counted) instead of refusing it.
    """

    cluster: str | None = None
    name: str | None = None
    format: str | None = None
    observed_at: datetime | None = None
    rate: float | None = None
    kinds: tuple[str, ...] = ("E", "I")
    allow_missing_ranks: bool = False

    def __post_init__(self) -> None:
        if self.rate is not None and not (math.isfinite(self.rate) and self.rate > 0):
            raise InvalidValue("Options.rate", "must be finite and above zero")
