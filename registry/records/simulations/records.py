"""A simulated run with its provenance: to be saved, as stored, and as a row of the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from registry.model import Simulation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationRecord:
    """A simulated run to be saved.

    Attributes
    ----------
    placement : str
        Id of the saved placement.
    content : str
        Id of the snapshot on whose fabric it was simulated, as `Fabrics.read` gives it: the placement's own,
        or another one of its cluster.
    tables : str or None
        Id of the forwarding tables that were used.
    profile : str
        Id of the profile whose messages were sent.
    trace : str or None
        Id of the profile's trace that was replayed; None where the profile was turned into rounds.
    simulation : Simulation
    parameters : mapping of str to str, int, float or bool
        Of the simulator, and how messages were made.
    wall_seconds : float
        Spent on it.
    code_version : str
    """

    placement: str
    content: str
    tables: str | None = None
    profile: str
    trace: str | None = None
    simulation: Simulation
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    wall_seconds: float = 0.0
    code_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredSimulation(SimulationRecord):
    """A simulated run as it was saved.

    Attributes
    ----------
    id, cluster : str
    recorded_at : datetime
        UTC.
    """

    id: str
    cluster: str
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationInfo:
    """A row of the history of simulated runs.

    Attributes
    ----------
    snapshot : str
        Id of the content.
    median_latency_seconds, latency_99_seconds, max_latency_seconds : float
        Percentiles 50, 99 and 100 of the latency of messages.
    """

    id: str
    recorded_at: datetime
    cluster: str
    snapshot: str
    placement: str
    profile: str
    trace: str | None
    mode: str
    routing: str
    seed: int
    complete: bool
    completion_seconds: float
    delivered_bytes: float
    messages: int
    packet_hops: int
    mean_latency_seconds: float
    median_latency_seconds: float
    latency_99_seconds: float
    max_latency_seconds: float
    parameters: Mapping[str, str | int | float | bool]
    wall_seconds: float
    code_version: str

    @property
    def throughput(self) -> float:
        """Delivered bytes a simulated second; 0 where the run took no time."""
        return self.delivered_bytes / self.completion_seconds if self.completion_seconds > 0.0 else 0.0
