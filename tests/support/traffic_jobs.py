"""Running jobs on small fabrics, drawn at random or written by hand, for tests of shared links."""

from __future__ import annotations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.traffic.job_loads import JobTraffic, Loader
from mapping.traffic.shared_load import JobLoad, SharedLoad
from registry.model import Allocation, Fabric, Links, Placement, Profile
from tests.support.small_fabrics import adapter_fabrics, allocations, plain_fabrics, profiles

SHORTEST = CostModel(routing="shortest-paths")


@st.composite
def running_jobs(draw: st.DrawFn, *, connected: bool = True) -> tuple[Fabric, tuple[JobTraffic, ...]]:
    """Draw up to three jobs, which may share hosts, on any small fabric."""
    fabric = draw(st.one_of(plain_fabrics(), adapter_fabrics()))
    jobs = tuple(draw(_placed(fabric, f"j{number}")) for number in range(draw(st.integers(1, 3))))
    if connected:
        loader = Loader(fabric, [one.placement for one in jobs], SHORTEST)
        assume(len(loader.routes.hosts) == 0 or loader.routes.connected)
    return fabric, jobs


@st.composite
def _placed(draw: st.DrawFn, fabric: Fabric, job: str) -> JobTraffic:
    profile = draw(profiles(max_ranks=5))
    allocation = draw(allocations(fabric, profile.ranks))
    slots = draw(st.permutations(allocation.host_of_slot.tolist()))
    placement = Placement(
        host_of_rank=np.array(slots[: profile.ranks]), allocation=allocation, strategy="given"
    )
    return JobTraffic(job=job, user=f"user of {job}", profile=profile, placement=placement)


def shared_load(fabric: Fabric, jobs: tuple[JobTraffic, ...]) -> SharedLoad:
    """Return the load of all jobs by all shortest paths."""
    loader = Loader(fabric, [one.placement for one in jobs], SHORTEST)
    loads = [loader.load(one.profile, one.placement) for one in jobs]
    return SharedLoad.of(
        fabric,
        [JobLoad(job=one.job, user=one.user, loads=load) for one, load in zip(jobs, loads, strict=True)],
    )


def two_leaves(uplinks: int = 2) -> Fabric:
    """Return hosts a0 a1 on switch A, b0 b1 on switch B, joined by parallel cables of 1 byte/s."""
    names = ("a0", "a1", "b0", "b1", "A", "B")
    cables = [(0, 4, 1, 1), (1, 4, 1, 2), (2, 5, 1, 1), (3, 5, 1, 2)]  # two vertices and their ports
    cables += [(4, 5, 10 + number, 10 + number) for number in range(uplinks)]
    source, target, near, far = np.array(cables + [(b, a, q, p) for a, b, p, q in cables]).T
    return Fabric(
        names=names,
        kind=np.array([0, 0, 0, 0, 1, 1]),
        slots=np.array([2, 2, 2, 2, 0, 0]),
        forwards=np.array([False] * 4 + [True] * 2),
        guid=np.array([0, 0, 0, 0, 0xA0, 0xB0], np.uint64),
        lid=np.zeros(6, np.int32),
        links=Links.of(source, target, 1.0, source_port=near, target_port=far),
    )


def job_between(fabric: Fabric, job: str, pairs: list[tuple[str, str, float]], user: str = "") -> JobTraffic:
    """Return a job with a rank on every named host, each pair sending so many bytes."""
    hosts = list(dict.fromkeys(host for a, b, _ in pairs for host in (a, b)))
    return JobTraffic(
        job=job,
        user=user,
        profile=Profile.from_edges(
            [hosts.index(a) for a, _, _ in pairs],
            [hosts.index(b) for _, b, _ in pairs],
            [size for _, _, size in pairs],
            ranks=len(hosts),
        ),
        placement=Placement(
            host_of_rank=fabric.vertices(hosts), allocation=Allocation.of(fabric, hosts), strategy="given"
        ),
    )
