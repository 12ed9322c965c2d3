"""What one call of `Registry.save` takes, and what it tells afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from registry.errors import InvalidValue
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
from registry.model.host_layout import HostLayout

MAX_NAME = 200
"""Longest name of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intake:
    """Everything read from the files of one call: saved as a whole or not at all.

    Attributes
    ----------
    cluster : str or None
        Needed with all but profiles; without ``/``, which ends it in composed ids.
    observed_at : datetime or None
        When the files were true, with a time zone; needed with a fabric or tables.
    fabric : Fabric or None
        Its own `tables` are not looked at.
    tables : ForwardingTables or None
    profiles : tuple of Profile
    traces : tuple of (Trace or None)
        That each of the profiles was counted from; empty where none was.
    jobs : tuple of Job
    placements : tuple of HostOrder
    counters : tuple of CounterSweep
        Each has a time of its own.
    intended : IntendedWiring or None
        With the time since when it holds.
    layouts : tuple of HostLayout
        Of hosts of the cluster, as of `observed_at`.
    source : str
        What the files are: names of their formats, with a comma and a blank between them.
    files : tuple of str
    warnings : tuple of str
        What the parsers had to say; handed on in the receipt.
    digest : str
        SHA-256 of the files' bytes, in hexadecimal.
    key : str
        See `registry.runs.Attempt.key`.
    started_at : datetime or None
        When reading began, with a time zone; None: when saving begins.
    """

    cluster: str | None = None
    observed_at: datetime | None = None
    fabric: Fabric | None = None
    tables: ForwardingTables | None = None
    profiles: tuple[Profile, ...] = ()
    traces: tuple[Trace | None, ...] = ()
    jobs: tuple[Job, ...] = ()
    placements: tuple[HostOrder, ...] = ()
    counters: tuple[CounterSweep, ...] = ()
    intended: IntendedWiring | None = None
    layouts: tuple[HostLayout, ...] = ()
    source: str = ""
    files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    digest: str = ""
    key: str = ""
    started_at: datetime | None = None

    def __post_init__(self) -> None:
        name = self.cluster or ""
        if "/" in name or not name.isprintable() or len(name) > MAX_NAME:
            raise InvalidValue("Intake.cluster", f"needs at most {MAX_NAME} printable characters without '/'")
        seen = self.fabric is not None or self.tables is not None
        of_cluster = (self.jobs, self.placements, self.counters, self.layouts)
        needs_cluster = seen or self.intended is not None or any(of_cluster)
        if not self.cluster and needs_cluster:
            raise InvalidValue("Intake.cluster", "all but profiles need the name of their cluster")
        if len(self.traces) not in (0, len(self.profiles)):
            reason = f"{len(self.traces)} traces beside {len(self.profiles)} profiles"
            raise InvalidValue("Intake.traces", reason)
        if (seen or self.layouts) and self.observed_at is None:
            reason = "a fabric, tables or layouts of hosts need the time they were seen"
            raise InvalidValue("Intake.observed_at", reason)
        if self.intended is not None and self.intended.declared_at is None:
            raise InvalidValue("IntendedWiring.declared_at", "a plan needs the time since when it holds")
        for moment, field in ((self.observed_at, "observed_at"), (self.started_at, "started_at")):
            if moment is not None and moment.tzinfo is None:
                raise InvalidValue(f"Intake.{field}", "needs a time zone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a saved `Intake` changed.

    Attributes
    ----------
    cluster : str or None
    snapshot : str or None
        Id of the content that was seen.
    new_content, new_observation : bool
    routing : str or None
        Id of the forwarding tables that were seen.
    new_routing : bool
    profiles : tuple of str
        Id of each profile of the intake, in its order, new or not.
    new_profiles : int
    traces : tuple of str
        Id of each trace of the intake, in its order, new or not.
    new_traces : int
    jobs : int
        Jobs that were new or told something new.
    placements : tuple of str
        Id of each placement of the intake, in its order, new or not.
    sweeps : tuple of str
        Id of each sweep of counters that is kept, in the intake's order, new or not.
    new_sweeps : int
    intended : str or None
        Id of the intended wiring.
    new_intended : bool
    layouts, new_layouts : int
        Layouts of hosts of the intake, and those that were not known already.
    links_opened, links_closed : int
        Directed links that appeared or vanished against the observation before.
    warnings : tuple of str
        Those of the intake, and what saving had to say.
    seconds : float
        Wall time of the transaction.
    """

    cluster: str | None = None
    snapshot: str | None = None
    new_content: bool = False
    new_observation: bool = False
    routing: str | None = None
    new_routing: bool = False
    profiles: tuple[str, ...] = ()
    new_profiles: int = 0
    traces: tuple[str, ...] = ()
    new_traces: int = 0
    jobs: int = 0
    placements: tuple[str, ...] = ()
    sweeps: tuple[str, ...] = ()
    new_sweeps: int = 0
    intended: str | None = None
    new_intended: bool = False
    layouts: int = 0
    new_layouts: int = 0
    links_opened: int = 0
    links_closed: int = 0
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
