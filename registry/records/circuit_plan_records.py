"""A circuit plan with its provenance: to be saved, as stored, and as a row of a list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from registry.errors import InvalidValue
from registry.model.circuit_plan import CircuitPlan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitPlanRecord:
    """A circuit plan to be saved.

    Attributes
    ----------
    cluster : str or None
        Cluster whose optical switch it is for.
    hosts : tuple of str
        Host of each node of the switch, in their order; empty if nodes are only numbered.
    profiles : tuple of str
        Ids of the profiles that it was made for; with jobs, one profile per job.
    ranks : tuple of int
        Ranks of each profile: ``plan.node_of_vertex`` holds them one profile after the other.
    jobs : tuple of str
        Scheduler's ids of the running jobs, one per profile; their ranks are not moved.
    plan : CircuitPlan
    parameters : mapping of str to str, int, float or bool
        Parameters of the search.
    wall_seconds : float
        Time that the search took.
    code_version : str
    """

    cluster: str | None = None
    hosts: tuple[str, ...] = ()
    profiles: tuple[str, ...]
    ranks: tuple[int, ...]
    jobs: tuple[str, ...] = ()
    plan: CircuitPlan
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    wall_seconds: float = 0.0
    code_version: str = ""

    def __post_init__(self) -> None:
        if not self.profiles:
            raise InvalidValue("CircuitPlanRecord.profiles", "needs at least one profile")
        if len(self.ranks) != len(self.profiles) or sum(self.ranks) != len(self.plan.node_of_vertex):
            reason = (
                f"are {sum(self.ranks)} of {len(self.ranks)} profiles, not {len(self.plan.node_of_vertex)}"
            )
            raise InvalidValue("CircuitPlanRecord.ranks", f"{reason} of {len(self.profiles)}")
        if self.hosts and len(self.hosts) != self.plan.nodes:
            raise InvalidValue("CircuitPlanRecord.hosts", f"needs {self.plan.nodes} entries")
        if self.jobs and len(self.jobs) != len(self.profiles):
            raise InvalidValue("CircuitPlanRecord.jobs", f"needs {len(self.profiles)} entries")
        if self.jobs and self.cluster is None:
            raise InvalidValue("CircuitPlanRecord.cluster", "jobs run on a cluster")

    def node_name(self, node: int) -> str:
        """Return the host of a node, or the number of the node if hosts are not known."""
        return self.hosts[node] if self.hosts else str(node)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredCircuitPlan(CircuitPlanRecord):
    """A circuit plan as it was saved.

    Attributes
    ----------
    id : str
    recorded_at : datetime
        UTC.
    applied_at : datetime or None
        Time when the switch was last set to this plan, UTC.
    """

    id: str
    recorded_at: datetime
    applied_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitPlanInfo:
    """A row of the list of circuit plans.

    Attributes
    ----------
    profile_names, applications : tuple of str
        Latest names and applications of the profiles; each once, ascending.
    circuits, removed, inserted : int
        Number of circuits in all, to remove and to insert; the last two are None if the present circuits are
        unknown.
    throughput, present_throughput, upper_bound : float or None
        Applications per second; None if unlimited or unknown.
    gain, break_even_seconds : float or None
        None if unknown; `break_even_seconds` also if nothing is gained.
    """

    id: str
    recorded_at: datetime
    applied_at: datetime | None
    cluster: str | None
    profiles: tuple[str, ...]
    profile_names: tuple[str, ...]
    applications: tuple[str, ...]
    jobs: tuple[str, ...]
    nodes: int
    max_degree: int
    max_edges: int
    circuits: int
    removed: int | None
    inserted: int | None
    throughput: float | None
    present_throughput: float | None
    upper_bound: float | None
    bound: str
    gain: float | None
    reconfiguration_seconds: float | None
    break_even_seconds: float | None
    method: str
    seed: int
    complete: bool
    parameters: Mapping[str, str | int | float | bool]
    wall_seconds: float
    code_version: str
