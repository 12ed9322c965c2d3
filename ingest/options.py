"""Options of an ingest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from registry.errors import InvalidValue
from registry.model import as_utc
from registry.model.intake import check_cluster_name

COLLECTIVES = ("ring", "tree", "recursive-doubling", "direct", "hierarchical")
"""Algorithms of `ingest.generate.collectives`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of an ingest; parsers use those that concern them."""

    cluster: str | None = None
    """Cluster of the files; required by all data except profiles."""
    name: str | None = None
    """Name of the profile in the registry."""
    format: str | None = None
    """Name of the format of all files (default: recognised by their content)."""
    observed_at: datetime | None = None
    """Time of the observation (default: that of the scan, or else of the file); UTC if it has no zone."""
    rate: float | None = None
    """Data bytes/s of a cable in each direction if the source has none (default: that of the format)."""
    kinds: tuple[str, ...] = ("E", "I")
    """Open MPI monitoring: kinds of records to sum; ``E`` and ``I`` are the library's external and internal
    point-to-point traffic.
    """
    allow_missing_ranks: bool = False
    """True to accept a recording with missing ranks, which are counted; otherwise it is an error."""
    transposed: bool = False
    """Communication matrices: True if row r is what rank r receives instead of what it sends."""
    divide: int = 1
    """Divisor of bytes and messages of profiles: 2 if every message was recorded twice."""
    parts: int | None = None
    """Matrices and graphs: number of parts (ranks) for METIS; the profile is that of a product of the matrix
    with a vector. None: the entries themselves are bytes.
    """
    collectives: str = "ring"
    """Algorithm for expanding collectives to messages, one of `COLLECTIVES`; for traces of collectives."""
    domain: int | None = None
    """Number of ranks of an NVLink domain, for the hierarchical algorithm."""
    graph: str | None = None
    """What a file that holds nothing but a graph is: ``fabric``, with `rate` as the capacity of edges that
    have none, or ``profile``. None: what the format is by default.
    """
    attribute: str | None = None
    """Attribute of edges with their bytes/s or bytes; formats with a single number for each edge call it
    ``weight``.
    """
    weight: float | None = None
    """Bytes of an edge if the file has none."""
    hosts: tuple[str, ...] = ()
    """Hosts in the order in which the launcher fills them, for placements (rank orders, task maps) and jobs
    whose files contain none.
    """
    slots: tuple[int, ...] = (1,)
    """Number of ranks of each of these hosts, or one number for all."""
    job: str | None = None
    """The scheduler's id of the job to which the placements belong."""
    replace: bool = False
    """True to accept a scan or forwarding tables of other devices than the cluster's last scan has."""
    strict: bool = False
    """True to reject the files if a host or device of them is not in the fabric, or if the intended wiring
    has lines that are no cables or ports with several cables.
    """

    def __post_init__(self) -> None:
        if self.cluster:
            check_cluster_name(self.cluster, "Options.cluster")
        for field in ("divide", "parts", "domain"):
            number = getattr(self, field)
            if number is not None and not (isinstance(number, int) and 1 <= number <= 1 << 24):
                raise InvalidValue(f"Options.{field}", "must be a whole number from 1 on")
        if self.collectives not in COLLECTIVES:
            raise InvalidValue("Options.collectives", f"must be one of {', '.join(COLLECTIVES)}")
        if len(set(self.hosts)) != len(self.hosts):
            raise InvalidValue("Options.hosts", "a host is repeated")
        if len(self.slots) not in (1, len(self.hosts)) or any(count < 1 for count in self.slots):
            raise InvalidValue("Options.slots", "needs one number from 1 on, or one for each host")
        for field in ("rate", "weight"):
            number = getattr(self, field)
            if number is not None and not (math.isfinite(number) and number > 0):
                raise InvalidValue(f"Options.{field}", "must be finite and above zero")

    def time(self, modified_at: datetime) -> datetime:
        """Return `observed_at`, UTC; default: the time of the file."""
        return modified_at if self.observed_at is None else as_utc(self.observed_at)
