"""Running jobs on small fabrics, drawn at random or written by hand, for tests of shared links."""

from __future__ import annotations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.traffic.job_loads import JobTraffic, Loader
from mapping.traffic.shared_load import JobLoad, SharedLoad
from registry.model import Allocation, Fabric, Links, Profile
from tests.support.small_fabrics import any_fabrics, given_placement, placements, profiles

SHORTEST = CostModel(routing="shortest-paths")


@st.composite
def running_jobs(draw: st.DrawFn, *, connected: bool = True) -> tuple[Fabric, tuple[JobTraffic, ...]]:
    """Draw up to three jobs, which may share hosts, on any small fabric."""
    fabric = draw(any_fabrics())
    jobs = tuple(draw(_placed(fabric, f"j{number}")) for number in range(draw(st.integers(1, 3))))
    if connected:
        loader = Loader(fabric, [one.placement for one in jobs], SHORTEST)
        assume(len(loader.routes.hosts) == 0 or loader.routes.connected)
    return fabric, jobs


@st.composite
def _placed(draw: st.DrawFn, fabric: Fabric, job: str) -> JobTraffic:
    profile = draw(profiles(max_ranks=5))
    placement = draw(placements(fabric, profile))
    return JobTraffic(job=job, user=f"user of {job}", profile=profile, placement=placement)


def shared_load(fabric: Fabric, jobs: tuple[JobTraffic, ...]) -> SharedLoad:
    loader = Loader(fabric, [one.placement for one in jobs], SHORTEST)
    loads = [loader.load(one.profile, one.placement) for one in jobs]
    both = zip(jobs, loads, strict=True)
    return SharedLoad.of(fabric, [JobLoad(job=one.job, user=one.user, loads=load) for one, load in both])


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
    edges = zip(*((hosts.index(a), hosts.index(b), size) for a, b, size in pairs), strict=True)
    profile = Profile.from_edges(*edges, ranks=len(hosts))
    placement = given_placement(Allocation.of(fabric, hosts), fabric.vertices(hosts))
    return JobTraffic(job=job, user=user, profile=profile, placement=placement)
