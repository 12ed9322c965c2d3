"""What one call of `Registry.save` takes, and what it tells afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from registry.errors import InvalidValue
from registry.model import Fabric, ForwardingTables, HostOrder, Job, Profile

MAX_NAME = 200
"""Longest name of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intake:
    """Everything read from the files of one call: saved as a whole or not at all.

    Attributes
    ----------
    cluster : str or None
        Needed with a fabric, tables, jobs or placements; without ``/``, which ends it in composed ids.
    observed_at : datetime or None
        When the files were true, with a time zone; needed with a fabric or tables.
    fabric : Fabric or None
        Its own `tables` are not looked at.
    tables : ForwardingTables or None
    profiles : tuple of Profile
    jobs : tuple of Job
    placements : tuple of HostOrder
    source : str
        What the user named: a path, a folder.
    files : tuple of str
    warnings : tuple of str
        What the parsers had to say; handed on in the receipt.
    digest : str
        SHA-256 of the files' bytes, in hexadecimal.
    """

    cluster: str | None = None
    observed_at: datetime | None = None
    fabric: Fabric | None = None
    tables: ForwardingTables | None = None
    profiles: tuple[Profile, ...] = ()
    jobs: tuple[Job, ...] = ()
    placements: tuple[HostOrder, ...] = ()
    source: str = ""
    files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    digest: str = ""

    def __post_init__(self) -> None:
        name = self.cluster or ""
        if "/" in name or not name.isprintable() or len(name) > MAX_NAME:
            raise InvalidValue("Intake.cluster", f"needs at most {MAX_NAME} printable characters without '/'")
        seen = self.fabric is not None or self.tables is not None
        if not self.cluster and (seen or self.jobs or self.placements):
            raise InvalidValue(
                "Intake.cluster", "a fabric, tables, jobs or placements need their cluster's name"
            )
        if seen and self.observed_at is None:
            raise InvalidValue("Intake.observed_at", "a fabric or tables need the time they were seen")
        if self.observed_at is not None and self.observed_at.tzinfo is None:
            raise InvalidValue("Intake.observed_at", "needs a time zone")


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
    jobs : int
        Jobs that were new or told something new.
    placements : tuple of str
        Id of each placement of the intake, in its order, new or not.
    links_opened, links_closed : int
        Directed links that appeared or vanished against the observation before.
    warnings : tuple of str
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
    jobs: int = 0
    placements: tuple[str, ...] = ()
    links_opened: int = 0
    links_closed: int = 0
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
