"""Data read by one ingest: `Intake` is the input of `Registry.save`, `Receipt` its result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from registry.errors import InvalidValue, shorten
from registry.model import (
    CounterSweep,
    Fabric,
    ForwardingTables,
    HostOrder,
    IntendedWiring,
    Job,
    Profile,
    Trace,
)
from registry.model.hosts import HostLayout
from registry.model.views import one_line

MAX_NAME = 200
"""Longest name of a cluster."""

WITHOUT_CLUSTER = frozenset({"profiles", "traces"})
"""Kinds of data that belong to no cluster."""
OBSERVED_KINDS = frozenset({"fabric", "tables", "layouts"})
"""Kinds of data that need the time of their observation."""


_NAME = re.compile(r"[^\W_][\w. +-]*(?<! )")
"""A name of a cluster: no path, no option of a command, nothing that a shell or a terminal obeys."""


def check_cluster_name(name: str, field: str = "Intake.cluster") -> None:
    """Raise `InvalidValue` if a cluster cannot have this name."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise InvalidValue(
            field,
            f"{shorten(name, 80)!r} is no name of a cluster: it begins with a letter or a digit, has at most "
            f"{MAX_NAME} letters, digits, and ._-+, and blanks only within; almanac cluster rename gives a "
            "cluster of another name one",
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IngestedData:
    """One attribute for each kind of data that files can hold.

    Each attribute has a row of the same name in `registry.store.saving.KINDS`.
    """

    fabric: Fabric | None = None
    """Fabric without its forwarding tables; its `tables` are ignored."""
    tables: ForwardingTables | None = None
    """Forwarding tables of the fabric."""
    counters: tuple[CounterSweep, ...] = ()
    """Sweeps of port counters, each with its own time."""
    intended: IntendedWiring | None = None
    """Intended wiring, with the time since when it is valid."""
    layouts: tuple[HostLayout, ...] = ()
    """Layouts of hosts of the cluster at the time of the observation."""
    profiles: tuple[Profile, ...] = ()
    """Communication profiles."""
    traces: tuple[Trace | None, ...] = ()
    """Trace that each of the profiles was counted from; empty if no profile has one."""
    jobs: tuple[Job, ...] = ()
    """Jobs of the cluster."""
    placements: tuple[HostOrder, ...] = ()
    """Placements of ranks on hosts of the cluster."""

    __repr__ = one_line

    def kinds(self) -> dict[str, Any]:
        """Return the kinds of data that are present, by name."""
        values = ((item.name, getattr(self, item.name)) for item in fields(IngestedData))
        return {name: value for name, value in values if value is not None and value != ()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intake(IngestedData):
    """All data read by one ingest. It is saved as a whole or not at all."""

    cluster: str | None = None
    """Name of the cluster, required by all kinds except profiles and traces. A ``/`` is not allowed, since it
    separates the parts of composed ids."""
    observed_at: datetime | None = None
    """Time of the observation, with a time zone. Required by fabrics, tables and layouts."""
    source: str = ""
    """Names of the files' formats, separated by a comma and a blank."""
    files: tuple[str, ...] = ()
    """Paths of the files."""
    files_at: datetime | None = None
    """Time at which the newest file was written, with a time zone."""
    warnings: tuple[str, ...] = ()
    """Warnings of the parsers; the receipt repeats them."""
    digest: str = ""
    """SHA-256 of the files' bytes, in hexadecimal."""
    key: str = ""
    """Hash of the files and options, see `registry.store.ingest_runs.Attempt.key`."""
    started_at: datetime | None = None
    """Time when reading began, with a time zone (default: the time when saving begins)."""
    begun: float | None = None
    """The same by `time.monotonic`, from which the duration is computed."""
    strict: bool = False
    """True to reject all data if a host or device of them is not in the fabric (default: a warning)."""

    __repr__ = one_line

    @property
    def data_at(self) -> datetime | None:
        """Time at which the data were observed, of several kinds the earliest; None if unknown.

        Data without a time of their own, such as jobs, are as old as their files.
        """
        present = self.kinds().keys()
        times = [self.observed_at] if present & OBSERVED_KINDS else []
        if self.counters:
            times.append(max(sweep.at for sweep in self.counters))
        if present - OBSERVED_KINDS - {"counters"}:
            times.append(self.observed_at or self.files_at)
        return min((time for time in times if time is not None), default=None)

    def __post_init__(self) -> None:
        if self.cluster:
            check_cluster_name(self.cluster)
        present = self.kinds().keys()
        if not self.cluster and present - WITHOUT_CLUSTER:
            raise InvalidValue("Intake.cluster", "all data except profiles need the name of their cluster")
        if len(self.traces) not in (0, len(self.profiles)):
            reason = f"{len(self.traces)} traces for {len(self.profiles)} profiles"
            raise InvalidValue("Intake.traces", reason)
        if present & OBSERVED_KINDS and self.observed_at is None:
            reason = "fabrics, forwarding tables and layouts of hosts need the time of their observation"
            raise InvalidValue("Intake.observed_at", reason)
        if self.intended is not None and self.intended.declared_at is None:
            reason = "intended wiring needs the time since when it is valid"
            raise InvalidValue("IntendedWiring.declared_at", reason)
        for moment, attribute in ((self.observed_at, "observed_at"), (self.started_at, "started_at")):
            if moment is not None and moment.tzinfo is None:
                raise InvalidValue(f"Intake.{attribute}", "needs a time zone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Result of saving the data of one kind."""

    ids: tuple[str, ...] = ()
    """Ids of the stored things, in the order of the intake, both new and known ones. Empty for kinds that are
    only counted."""
    new_ids: tuple[str, ...] = ()
    """Ids that did not exist before."""
    new: int = 0
    """Number of things that are new or changed."""
    warnings: tuple[str, ...] = ()
    """Warnings about the data, one line each."""
    unknown_hosts: tuple[str, ...] = ()
    """Hosts in the data that the fabric lacks."""
    unknown_devices: tuple[str, ...] = ()
    """Devices with counters that the fabric lacks: ``GUID 0x...`` or ``LID 17``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What saving an `Intake` changed."""

    cluster: str | None = None
    """Name of the cluster."""
    snapshot: str | None = None
    """Id of the fabric's snapshot at the time of the observation."""
    new_content: bool = False
    """True if the snapshot is new."""
    new_observation: bool = False
    """True if the observation is new."""
    routing: str | None = None
    """Id of the forwarding tables."""
    new_routing: bool = False
    """True if the forwarding tables are new."""
    links_opened: int = 0
    links_closed: int = 0
    """Number of directed links that appeared or disappeared since the previous observation."""
    size: str = ""
    """Number of hosts, switches and cables of the fabric as it is stored, see `Fabric.size`."""
    saved: Mapping[str, Saved] = field(default_factory=dict)
    """Result of each kind, by the kind's name."""
    warnings: tuple[str, ...] = ()
    """Warnings of the intake and of saving."""
    seconds: float = 0.0
    """Wall time of the transaction."""

    def ids(self, kind: str) -> tuple[str, ...]:
        """Return the ids of the things of a kind, in the order of the intake."""
        return self.saved.get(kind, Saved()).ids

    @property
    def unknown_hosts(self) -> tuple[str, ...]:
        """Hosts in the data that the fabric lacks, each once."""
        return tuple(dict.fromkeys(host for one in self.saved.values() for host in one.unknown_hosts))

    @property
    def unknown_devices(self) -> tuple[str, ...]:
        """Devices with counters that the fabric lacks."""
        return tuple(device for one in self.saved.values() for device in one.unknown_devices)

    def new(self, kind: str) -> int:
        """Return the number of things of a kind that are new or changed."""
        return self.saved.get(kind, Saved()).new
