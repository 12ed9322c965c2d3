"""A proposed configuration with its provenance: to be saved, as stored, and as a row of the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from registry.errors import InvalidValue
from registry.model.circuit_plan import CircuitPlan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitPlanRecord:
    """A proposed configuration to be saved.

    Attributes
    ----------
    cluster : str or None
        Whose optical switch it is for.
    hosts : tuple of str
        Hosts that are the switch's nodes, in their order; empty where nodes are only numbered.
    profiles : tuple of str
        Ids of the profiles that it was proposed for, a job's each where there are jobs.
    ranks : tuple of int
        Of each of them: ``plan.node_of_vertex`` has their ranks one profile after the other.
    jobs : tuple of str
        The scheduler's ids of the jobs that ran, one a profile: their ranks stayed where they are.
    plan : CircuitPlan
    parameters : mapping of str to str, int, float or bool
        Of the search.
    wall_seconds : float
        Spent on it.
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
            raise InvalidValue("CircuitPlanRecord.profiles", "is for no profile")
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
        """The host that is a node, or the node's number where hosts are not told."""
        return self.hosts[node] if self.hosts else str(node)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredCircuitPlan(CircuitPlanRecord):
    """A proposed configuration as it was saved.

    Attributes
    ----------
    id : str
    recorded_at : datetime
        UTC.
    applied_at : datetime or None
        When the switch was last said to have been set so; UTC.
    """

    id: str
    recorded_at: datetime
    applied_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitPlanInfo:
    """A row of the history of proposed configurations.

    Attributes
    ----------
    profile_names, applications : tuple of str
        Names that the profiles were given last, and of what they are; each once, ascending.
    circuits, removed, inserted : int
        Circuits in all, to take away and to put in; of the last two None where the present ones are unknown.
    throughput, present_throughput, upper_bound : float or None
        Applications a second; None where nothing limits it, or it is not known.
    gain, break_even_seconds : float or None
        None where they are not known; of the second also where nothing is gained.
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
