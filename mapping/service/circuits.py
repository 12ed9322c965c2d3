"""Requests for circuit plans: the application, the optical switch and the running jobs that they name."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.topology import Topology
from mapping.service.live import Unloaded, placed_jobs
from registry.errors import InvalidValue, WrongRanks
from registry.model import Ints, Placement, Time
from registry.model.views import one_line
from registry.registry import Registry
from registry.store.circuit_plans import OpticalSwitch
from registry.store.profiles import StoredProfile
from registry.store.running_jobs import Running, RunningJob


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitPlanRequest:
    """Circuits to plan, by the names of the data.

    Attributes
    ----------
    profile : str or None
        Name or id; None: all running jobs on the switch, whose ranks stay on their hosts.
    cluster : str or None
        Cluster whose optical switch is used.
    at : datetime or None
        Time of the running jobs; default: now.
    compute_seconds : float or None
        Computing time of each rank; default: the switch's. Ranks that are placed need some, or all would be
        placed on one node: 1 if the switch has none.
    machine : Machine or None
        Nodes and circuits, if no cluster is given; its compute speed follows from `compute_seconds`.
    """

    profile: str | None = None
    cluster: str | None = None
    at: Time | None = None
    compute_seconds: float | None = None
    machine: Machine | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobsOnSwitch:
    """Running jobs whose hosts are on an optical switch.

    Attributes
    ----------
    running : Running
        All running jobs of the cluster, including those left out here.
    jobs : tuple of RunningJob
        Jobs with a known profile and all ranks on hosts of the switch, in the order of `running`.
    without_profile : tuple of RunningJob
        Jobs left out because their profile is not known.
    unloaded : tuple of Unloaded
        Jobs left out although their profile is known, with the reason: not on the switch, or no placement.
    """

    running: Running
    jobs: tuple[RunningJob, ...]
    without_profile: tuple[RunningJob, ...]
    unloaded: tuple[Unloaded, ...]

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitPlanCase:
    """The data of a circuit plan.

    Attributes
    ----------
    application : Application
        Traffic between ranks, or between the nodes of the switch if ranks stay.
    machine : Machine
        Nodes of the switch, and the limits of its circuits.
    present : Topology or None
        Present circuits, if known.
    compute_seconds : float
        Computing time of each rank.
    node_of_rank : int32[ranks] or None
        Node of each rank, one job after the other; None: ranks are placed, too.
    profiles : tuple of StoredProfile
        The profile to plan for, or the profile of each job.
    switch : OpticalSwitch or None
        Switch of a cluster.
    jobs : JobsOnSwitch or None
        The running jobs, if their ranks stay.
    """

    application: Application
    machine: Machine
    present: Topology | None = None
    compute_seconds: float = 0.0
    node_of_rank: Ints | None = None
    profiles: tuple[StoredProfile, ...] = ()
    switch: OpticalSwitch | None = None
    jobs: JobsOnSwitch | None = None

    __repr__ = one_line

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the nodes; empty if they have only numbers."""
        return () if self.switch is None else self.switch.hosts

    @property
    def compute_throughput(self) -> float:
        """Largest throughput that computing allows if ranks stay."""
        fullest = float(self.application.vertex_weight.max()) * self.compute_seconds
        return 1.0 / fullest if fullest > 0.0 else math.inf


def circuit_case(registry: Registry, request: CircuitPlanRequest) -> CircuitPlanCase:
    """Read the data that a request names.

    Raises
    ------
    UnknownName
        There is no such profile or cluster, or the cluster has no optical switch.
    InvalidValue
        The computing time is out of range, or ranks of the profile exchange nothing.
    """
    if request.profile is None:
        return _case_of_jobs(registry, request)
    stored = registry.profiles.read(request.profile)
    switch = None if request.cluster is None else registry.optical.read(request.cluster)
    seconds = request.compute_seconds
    if seconds is None:
        seconds = switch.compute_seconds if switch is not None and switch.compute_seconds > 0.0 else 1.0
    if not (math.isfinite(seconds) and seconds > 0.0):
        raise InvalidValue("compute_seconds", f"is {seconds}, must be finite and above zero")
    if switch is not None:
        machine = machine_of(switch, seconds)
    elif request.machine is not None:
        machine = replace(request.machine, compute_speed=1.0 / seconds)
    else:
        raise InvalidValue("CircuitPlanRequest.machine", "a machine or a cluster is needed")
    return CircuitPlanCase(
        application=Application.of_profile(stored.profile),
        machine=machine,
        present=None if switch is None else topology_of(switch),
        compute_seconds=seconds,
        profiles=(stored,),
        switch=switch,
    )


def _case_of_jobs(registry: Registry, request: CircuitPlanRequest) -> CircuitPlanCase:
    """Return the case of the jobs that run on the switch; each sends its profile once, weighted by ranks."""
    if request.cluster is None:
        raise InvalidValue("CircuitPlanRequest.cluster", "a profile or a cluster is needed")
    switch = registry.optical.read(request.cluster)
    running = registry.running(request.cluster, request.at)
    without, unloaded, placed = placed_jobs(running)
    stored = registry.profiles.read_many({job.stored.profile or "" for job, _ in placed})
    jobs, profiles, left_out = [], [], list(unloaded)
    nodes = [np.zeros(0, np.int32)]
    for job, placement in placed:
        profile = stored[job.stored.profile or ""]
        try:
            nodes.append(_nodes(placement, running, switch, profile))
        except (InvalidValue, WrongRanks) as error:
            left_out.append(Unloaded(job=job, reason=error.reason))
            continue
        jobs.append(job)
        profiles.append(profile)
    each = list(zip(nodes[1:], (one.profile for one in profiles), strict=True))
    node_of_rank = np.concatenate(nodes)
    return CircuitPlanCase(
        application=Application.from_edges(
            np.concatenate([nodes[0], *(at[one.sender] for at, one in each)]),
            np.concatenate([nodes[0], *(at[one.partner] for at, one in each)]),
            np.concatenate([np.zeros(0), *(one.bytes for _, one in each)]),
            vertex_weight=np.bincount(node_of_rank, minlength=len(switch.hosts)),
            connected=False,
        ),
        machine=machine_of(switch, request.compute_seconds),
        present=topology_of(switch),
        compute_seconds=switch.compute_seconds
        if request.compute_seconds is None
        else request.compute_seconds,
        node_of_rank=node_of_rank,
        profiles=tuple(profiles),
        switch=switch,
        jobs=JobsOnSwitch(
            running=running, jobs=tuple(jobs), without_profile=without, unloaded=tuple(left_out)
        ),
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


def _nodes(placement: Placement, running: Running, switch: OpticalSwitch, profile: StoredProfile) -> Ints:
    """Return the switch's node of each rank: int32[ranks].

    Raises
    ------
    WrongRanks
        The profile has another number of ranks.
    InvalidValue
        A host is not on the switch.
    """
    if placement.ranks != profile.profile.ranks:
        raise WrongRanks(placement.ranks, profile.profile.ranks)
    number = {host: node for node, host in enumerate(switch.hosts)}
    names = [running.snapshot.fabric.names[vertex] for vertex in placement.host_of_rank.tolist()]
    if missing := sorted(set(names) - number.keys()):
        raise InvalidValue("hosts", f"{missing[0]!r} is not on the optical switch")
    return np.array([number[name] for name in names], np.int32)
