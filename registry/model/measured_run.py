"""A run of a program by a launcher, with the times that were measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from registry.errors import InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A run of a program, as `almanac run` measured it.

    Attributes
    ----------
    program : str
        Hash of the program and its arguments: only runs of the same program are compared.
    hosts, slots : tuple of str, tuple of int
        Hosts in the order in which the launcher fills them, and the ranks that each can take.
    launcher : str
        Name and version.
    profile, placement : str or None
        Ids of the profile and of the placement; without a placement the ranks ran in order.
    job : str or None
        The scheduler's id of the job.
    started_at : datetime
        UTC.
    wall_seconds : float
        Time from the start of the launcher to its end.
    step_seconds : float or None
        Time of a step of the program, if its output has it.
    steps : int
        Number of steps from which that time was measured.
    exit_code : int
        Exit code of the launcher; negative: the signal that ended it.
    recorded : bool
        True if the MPI library counted messages meanwhile, which takes time: such runs are not compared.
    verified : bool or None
        True if the launcher was seen, just before this run, to start each rank where the order has it; False
        if it did not; None if that was not tried.
    """

    cluster: str
    application: str
    program: str
    ranks: int
    hosts: tuple[str, ...]
    slots: tuple[int, ...]
    launcher: str
    profile: str | None = None
    placement: str | None = None
    job: str | None = None
    started_at: datetime
    wall_seconds: float
    step_seconds: float | None = None
    steps: int = 0
    exit_code: int = 0
    recorded: bool = False
    verified: bool | None = None

    def __post_init__(self) -> None:
        if not self.hosts or len(self.hosts) != len(self.slots):
            raise InvalidValue("MeasuredRun.slots", "needs a number for each of at least one host")
        for name in ("wall_seconds", "step_seconds"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value < math.inf:
                raise InvalidValue(f"MeasuredRun.{name}", f"is {value}, must be finite and not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMeasuredRun(MeasuredRun):
    """A measured run as it was saved.

    Attributes
    ----------
    recorded_at : datetime
        UTC.
    other_jobs : tuple of str
        The scheduler's ids of other jobs that ran on the cluster meanwhile, as far as the registry knew.
    other_load : float or None
        Largest share of the capacity of a link of the run that these jobs used, by estimates
        (`mapping.service.other_load`); None if it is unknown.
    rank_order : str
        Hash of the hosts of all ranks; empty if they ran in order.
    congestion_seconds, in_order_congestion_seconds : float or None
        Estimated load of the worst link with the placement, and with the ranks in order.
    """

    id: str
    recorded_at: datetime
    other_jobs: tuple[str, ...] = ()
    other_load: float | None = None
    rank_order: str = ""
    congestion_seconds: float | None = None
    in_order_congestion_seconds: float | None = None
