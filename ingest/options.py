"""What the caller of an ingest decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from registry.errors import InvalidValue

COLLECTIVES = ("ring", "tree", "recursive-doubling", "direct", "hierarchical")
"""Algorithms of `ingest.generate.collectives`."""


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
    transposed : bool
        Communication matrices: row r is what rank r receives, instead of what it sends.
    divide : int
        Divide bytes and messages of profiles by this: 2 for one that was recorded twice over.
    parts : int or None
        Matrices and graphs: cut by METIS into so many parts, and a rank a part; the profile is what a
        product of the matrix with a vector sends. None: the entries themselves are bytes.
    collectives : str
        Traces that tell of collectives, not of messages: the algorithm that they are expanded by, one of
        `COLLECTIVES`.
    domain : int or None
        Ranks of an NVLink domain, for the hierarchical algorithm.
    hosts : tuple of str
        Placements whose file names no hosts (rank orders, task maps), and jobs whose source names none: the
        hosts, in the order in which the launcher fills them.
    slots : tuple of int
        Ranks of each of these hosts; one number is that of every host.
    job : str or None
        The scheduler's id of the job that ran as the placements tell.
    """

    cluster: str | None = None
    name: str | None = None
    format: str | None = None
    observed_at: datetime | None = None
    rate: float | None = None
    kinds: tuple[str, ...] = ("E", "I")
    allow_missing_ranks: bool = False
    transposed: bool = False
    divide: int = 1
    parts: int | None = None
    collectives: str = "ring"
    domain: int | None = None
    hosts: tuple[str, ...] = ()
    slots: tuple[int, ...] = (1,)
    job: str | None = None

    def __post_init__(self) -> None:
        for field, least in (("divide", 1), ("parts", 1), ("domain", 1)):
            number = getattr(self, field)
            if number is not None and not (isinstance(number, int) and least <= number <= 1 << 24):
                raise InvalidValue(f"Options.{field}", f"must be a whole number from {least} on")
        if self.collectives not in COLLECTIVES:
            raise InvalidValue("Options.collectives", f"must be one of {', '.join(COLLECTIVES)}")
        if len(set(self.hosts)) != len(self.hosts):
            raise InvalidValue("Options.hosts", "a host is named twice")
        if len(self.slots) not in (1, len(self.hosts)) or any(count < 1 for count in self.slots):
            raise InvalidValue("Options.slots", "needs one number from 1 on, or one for each host")
        if self.rate is not None and not (math.isfinite(self.rate) and self.rate > 0):
            raise InvalidValue("Options.rate", "must be finite and above zero")
