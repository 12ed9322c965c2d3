"""Circuit plans for the jobs that run on a cluster's optical switch, and saving circuit plans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.topology import Topology
from mapping.service.circuit_search import CircuitPlanReport, CircuitSearchOptions, plan_next
from mapping.service.live import Unloaded, placed_jobs
from registry.errors import InvalidValue
from registry.model import Ints, Placement, Profile
from registry.progress import Progress, silent
from registry.records.circuit_plans import CircuitPlanRecord
from registry.records.optical_switches import OpticalSwitch
from registry.registry import Registry
from registry.running.running_jobs import Running, RunningJob
from registry.version import code_version


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnSwitch:
    """Running jobs whose hosts are on an optical switch.

    Attributes
    ----------
    switch : OpticalSwitch
    running : Running
        All running jobs of the cluster, including those left out here.
    jobs : tuple of RunningJob
        Jobs with a known profile and all ranks on hosts of the switch, in the order of `running`.
    profiles : tuple of Profile
        Profile of each job in `jobs`.
    nodes : tuple of int32[ranks]
        For each job in `jobs`: the switch's node of each rank.
    without_profile : tuple of RunningJob
        Jobs left out because their profile is not known.
    unloaded : tuple of Unloaded
        Jobs left out although their profile is known, with the reason: not on the switch, or no placement.
    """

    switch: OpticalSwitch
    running: Running
    jobs: tuple[RunningJob, ...]
    profiles: tuple[Profile, ...]
    nodes: tuple[Ints, ...]
    without_profile: tuple[RunningJob, ...]
    unloaded: tuple[Unloaded, ...]

    @property
    def ranks(self) -> tuple[int, ...]:
        """Number of ranks of each job."""
        return tuple(len(nodes) for nodes in self.nodes)

    @property
    def node_of_rank(self) -> Ints:
        """int32[ranks of all jobs]: the switch's node of each rank, one job after the other."""
        return np.concatenate([np.zeros(0, np.int32), *self.nodes])

    def application(self) -> Application:
        """Return the traffic between nodes if every job sends its profile once, weighted by ranks."""
        pairs = list(zip(self.nodes, self.profiles, strict=True))
        return Application.from_edges(
            np.concatenate([np.zeros(0, np.int32), *(at[one.sender] for at, one in pairs)]),
            np.concatenate([np.zeros(0, np.int32), *(at[one.partner] for at, one in pairs)]),
            np.concatenate([np.zeros(0), *(one.bytes for one in self.profiles)]),
            vertex_weight=np.bincount(self.node_of_rank, minlength=len(self.switch.hosts)),
            connected=False,
        )


def on_switch(registry: Registry, cluster: str, at: datetime | None = None) -> OnSwitch:
    """Return the jobs that run on the optical switch of a cluster.

    Parameters
    ----------
    registry : Registry
    cluster : str
    at : datetime, optional
        Time; default: now.

    Raises
    ------
    UnknownName
        There is no such cluster, no observation of it until that time, or no optical switch saved for it.
    """
    switch = registry.optical.read(cluster)
    running = registry.running(cluster, at)
    without, unloaded, placed = placed_jobs(running)
    stored = registry.profiles.read_many({job.stored.profile or "" for job, _ in placed})
    jobs: list[RunningJob] = []
    profiles: list[Profile] = []
    nodes: list[Ints] = []
    apart = list(unloaded)
    for job, placement in placed:
        profile = stored[job.stored.profile or ""].profile
        try:
            nodes.append(_nodes(placement, running, switch, profile))
        except InvalidValue as error:
            apart.append(Unloaded(job=job, reason=error.reason))
            continue
        jobs.append(job)
        profiles.append(profile)
    return OnSwitch(
        switch=switch,
        running=running,
        jobs=tuple(jobs),
        profiles=tuple(profiles),
        nodes=tuple(nodes),
        without_profile=without,
        unloaded=tuple(apart),
    )


def next_circuits(
    found: OnSwitch,
    search: CircuitSearchOptions,
    *,
    present: Topology | None = None,
    compute_seconds: float | None = None,
    progress: Progress = silent,
) -> CircuitPlanReport:
    """Plan circuits for the jobs on a switch; ranks stay on their hosts. Nothing is saved.

    All traffic between two hosts uses one path, as with forwarding by destination.

    Parameters
    ----------
    present : Topology, optional
        Present circuits; default: those in the registry.
    compute_seconds : float, optional
        Seconds per rank that replace `OpticalSwitch.compute_seconds`.

    Raises
    ------
    InvalidValue
        No job is on the switch, or the present circuits exceed its limits or do not connect all hosts.
    """
    switch = found.switch
    if not found.jobs:
        reason = f"no running job with a known profile is on the optical switch of {switch.cluster}"
        raise InvalidValue("reconfigure.jobs", reason)
    machine = machine_of(switch, compute_seconds)
    each = switch.compute_seconds if compute_seconds is None else compute_seconds
    application = found.application()
    fullest = float(application.vertex_weight.max()) * each
    return plan_next(
        application,
        machine,
        search,
        node_of_rank=found.node_of_rank,
        present=topology_of(switch) if present is None else present,
        compute_throughput=1.0 / fullest if fullest > 0.0 else math.inf,
        progress=progress,
    )


def machine_of(switch: OpticalSwitch, compute_seconds: float | None = None) -> Machine:
    """Return the machine that a switch forms; its compute speed is 1 if computing takes no time.

    Parameters
    ----------
    switch : OpticalSwitch
    compute_seconds : float, optional
        Seconds per rank that replace `OpticalSwitch.compute_seconds`.

    Raises
    ------
    InvalidValue
        Negative or infinite seconds.
    """
    each = switch.compute_seconds if compute_seconds is None else compute_seconds
    if not 0.0 <= each < math.inf:
        raise InvalidValue("compute_seconds", f"is {each}, must be finite and not negative")
    return Machine(
        nodes=len(switch.hosts),
        max_degree=switch.max_degree,
        max_edges=switch.max_edges,
        compute_speed=1.0 / each if each > 0.0 else 1.0,
        link_speed=switch.link_speed,
    )


def topology_of(switch: OpticalSwitch) -> Topology | None:
    """Return the present circuits of a switch, or None if they are not known."""
    return Topology.of(len(switch.hosts), switch.circuits) if switch.circuits else None


def save_circuits(
    registry: Registry,
    planned: CircuitPlanReport,
    profiles: Sequence[str],
    ranks: Sequence[int],
    *,
    switch: OpticalSwitch | None = None,
    jobs: Sequence[str] = (),
) -> str:
    """Save a circuit plan and return its id.

    Parameters
    ----------
    registry : Registry
    planned : CircuitPlanReport
    profiles : sequence of str
        Ids of the profiles; if there are jobs, one per job.
    ranks : sequence of int
        Number of ranks of each profile.
    switch : OpticalSwitch, optional
        Switch that the plan is for.
    jobs : sequence of str
        Ids of the jobs, as the scheduler gives them.

    Raises
    ------
    UnknownName, InvalidValue
        As `registry.records.circuit_plans.CircuitPlans.save`.
    """
    record = CircuitPlanRecord(
        cluster=None if switch is None else switch.cluster,
        hosts=() if switch is None else switch.hosts,
        profiles=tuple(profiles),
        ranks=tuple(ranks),
        jobs=tuple(jobs),
        plan=planned.plan,
        parameters=planned.search.parameters,
        wall_seconds=planned.seconds,
        code_version=code_version(),
    )
    return registry.circuit_plans.save(record)


def save_next_circuits(registry: Registry, planned: CircuitPlanReport, on: OnSwitch) -> str:
    """Save the circuit plan for the jobs on a switch and return its id; errors as `save_circuits`."""
    jobs = [one.stored for one in on.jobs]
    profiles, ids = [one.profile or "" for one in jobs], [one.job.id for one in jobs]
    return save_circuits(registry, planned, profiles, on.ranks, switch=on.switch, jobs=ids)


def _nodes(placement: Placement, running: Running, switch: OpticalSwitch, profile: Profile) -> Ints:
    """Return the switch's node of each rank: int32[ranks].

    Raises
    ------
    InvalidValue
        A host is not on the switch, or the profile has another number of ranks.
    """
    if placement.ranks != profile.ranks:
        reason = f"{placement.ranks} ranks are placed, the profile has {profile.ranks}"
        raise InvalidValue("profile", reason)
    number = {host: node for node, host in enumerate(switch.hosts)}
    names = [running.snapshot.fabric.names[vertex] for vertex in placement.host_of_rank.tolist()]
    if apart := sorted(set(names) - number.keys()):
        raise InvalidValue("hosts", f"{apart[0]!r} is not on the optical switch")
    return np.array([number[name] for name in names], np.int32)
