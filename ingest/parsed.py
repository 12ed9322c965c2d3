"""What a parser hands back."""

from __future__ import annotations

from dataclasses import dataclass

from registry.model import Fabric, ForwardingTables, HostOrder, Job, Profile


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parsed:
    """What one source holds.

    Attributes
    ----------
    fabric : Fabric or None
        Its `observed_at` is the scan's own time, None where the source tells none.
    tables : ForwardingTables or None
    profile : Profile or None
    jobs : tuple of Job
    placement : HostOrder or None
    warnings : tuple of str
        What was odd but could be read, counted; one line each.
    """

    fabric: Fabric | None = None
    tables: ForwardingTables | None = None
    profile: Profile | None = None
    jobs: tuple[Job, ...] = ()
    placement: HostOrder | None = None
    warnings: tuple[str, ...] = ()
