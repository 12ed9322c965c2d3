"""What a parser hands back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from registry.model import (
    Bools,
    CounterSweep,
    Fabric,
    ForwardingTables,
    HostOrder,
    IntendedWiring,
    Job,
    Profile,
    Trace,
)
from registry.model.arrays import readonly
from registry.model.host_layout import HostLayout


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parsed:
    """What one source holds.

    Attributes
    ----------
    fabric : Fabric or None
        Its `observed_at` is the scan's own time, None where the source tells none.
    assumed : bool[m] or None
        Links of the fabric whose capacity the source does not tell: another source of the same call may.
        None: it tells all.
    incomplete : str
        Why the fabric is no fabric alone (it tells no links), and what to give with it. Empty: it is one.
    tables : ForwardingTables or None
    counters : CounterSweep or None
        At the caller's time, else the file's.
    intended : IntendedWiring or None
        It holds since the caller's time, else the file's.
    layouts : tuple of HostLayout
    profile : Profile or None
    trace : Trace or None
        That the profile was counted from.
    jobs : tuple of Job
    placement : HostOrder or None
    warnings : tuple of str
        What was odd but could be read, counted; one line each.
    """

    fabric: Fabric | None = None
    assumed: Bools | None = None
    incomplete: str = ""
    tables: ForwardingTables | None = None
    counters: CounterSweep | None = None
    intended: IntendedWiring | None = None
    layouts: tuple[HostLayout, ...] = ()
    profile: Profile | None = None
    trace: Trace | None = None
    jobs: tuple[Job, ...] = ()
    placement: HostOrder | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.assumed is not None:
            object.__setattr__(self, "assumed", readonly(self.assumed, np.bool_, "Parsed.assumed"))
