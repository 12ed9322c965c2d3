"""Order of ranks on hosts by Slurm's distributions.

`Job.slots` gives the number of ranks on each host, a distribution decides which ones. Checked against srun of
Slurm 22.05, 24.11 and 26.05 for hosts with equal and different numbers of ranks, and under topology/tree and
topology/block. Before 26.05 these choose the hosts of a job, but not the order of its ranks; under 26.05
``block`` visits the hosts of one leaf switch or block after those of another, in the order of topology.conf.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Longs
from registry.model.job import Job
from registry.model.placement import HostOrder

BLOCK, CYCLIC, PLANE, ARBITRARY = DISTRIBUTIONS = ("block", "cyclic", "plane", "arbitrary")
MEASURED = ((22, 5), (24, 11), (26, 5))
"""Versions of Slurm whose order of ranks was measured, as year and month."""
_BY_LEAF = (26, 5)
"""First of these whose ``block`` visits the hosts of one leaf switch or block after those of another."""


def measured_version(version: tuple[int, int]) -> tuple[int, int]:
    """Return the last measured version of Slurm up to one, or the first measured version."""
    return max((one for one in MEASURED if one <= version), default=MEASURED[0])


def visits_leaves(version: tuple[int, int]) -> bool:
    """Return True if ``block`` of a measured version visits one leaf switch or block after the other."""
    return version >= _BY_LEAF


def rank_order(counts: Sequence[int], distribution: str, plane: int | None = None) -> Longs:
    """Return the host of each rank.

    Hosts are visited in order, round after round, until each has its ranks: ``block`` gives a host all its
    ranks at once, ``cyclic`` one per round, ``plane`` a fixed number per round.

    Parameters
    ----------
    counts : sequence of int
        Number of ranks of each host.
    distribution : str
        ``block``, ``cyclic`` or ``plane``.
    plane : int, optional
        Ranks per round of ``plane``.

    Returns
    -------
    int64[ranks]
        Index of the host of each rank.

    Raises
    ------
    InvalidValue
        The distribution is unknown or has no order (``arbitrary``); a plane without a size.
    """
    left = np.asarray(counts, np.int64)
    if distribution not in (BLOCK, CYCLIC, PLANE):
        known = "its order is only in the host list or the report of the job"
        reason = known if distribution == ARBITRARY else f"must be one of {', '.join(DISTRIBUTIONS)}"
        raise InvalidValue("distribution", f"is {distribution!r}: {reason}")
    if distribution == PLANE and (plane is None or plane < 1):
        raise InvalidValue("plane", "the size of a plane is needed; accounting does not record it")
    if not len(left) or int(left.min()) < 0:
        raise InvalidValue("counts", "needs at least one host, and no negative number of ranks")
    most = max(1, int(left.max()))
    each = {BLOCK: most, CYCLIC: 1, PLANE: plane or 1}[distribution]
    host = np.repeat(np.arange(len(left)), left)
    within = np.arange(len(host)) - np.repeat(np.cumsum(left) - left, left)
    return host[np.lexsort((within, host, within // each))]


def shared(ranks: int, slots_of_host: Sequence[int]) -> tuple[int, ...]:
    """Return the number of ranks of each host by Slurm's rule.

    Each round gives one rank to every host with free slots; when all are full, one to every host.

    Parameters
    ----------
    slots_of_host : sequence of int
        Number of slots of each host.
    """
    taken = [0] * len(slots_of_host)
    while ranks and taken:
        free = [host for host, slots in enumerate(slots_of_host) if taken[host] < slots]
        rounds = min((slots_of_host[host] - taken[host] for host in free), default=ranks)
        sharing = free or range(len(slots_of_host))
        rounds = min(rounds, max(1, ranks // len(sharing)))
        for host in sharing[:ranks]:
            taken[host] += rounds
        ranks -= rounds * min(ranks, len(sharing))
    return tuple(taken)


def order_of_job(
    job: Job,
    *,
    distribution: str | None = None,
    plane: int | None = None,
    leaves: Sequence[Sequence[str]] = (),
) -> HostOrder:
    """Return the host of each rank of a job by its distribution.

    Parameters
    ----------
    distribution : str, optional
        Default: the job's own, or ``block`` if it has none.
    plane : int, optional
        Ranks per round of ``plane``, which accounting does not record.
    leaves : sequence of sequence of str
        Hosts of each leaf switch or block, if ``block`` visits one after the other: Slurm 26.05 with
        topology/tree or topology/block. The hosts of one are visited in the order of the job.

    Raises
    ------
    InvalidValue
        The job has no hosts, its order is unknown, or a host is on no leaf.
    """
    if not job.hosts:
        raise InvalidValue("Job.hosts", f"job {job.id} has none")
    ranks = job.ranks or sum(job.slots)
    counts = job.slots if sum(job.slots) == ranks else shared(ranks, job.slots)
    distribution = distribution or job.distribution or BLOCK
    visited = list(range(len(job.hosts)))
    if leaves and distribution == BLOCK:
        leaf = {host: at for at, hosts in enumerate(leaves) for host in hosts}
        if missing := [host for host in job.hosts if host not in leaf]:
            raise InvalidValue("topology", f"{missing[0]} is on no switch or block of it")
        visited.sort(key=lambda host: leaf[job.hosts[host]])
    order = rank_order([counts[host] for host in visited], distribution, plane)
    hosts = tuple(job.hosts[visited[place]] for place in order.tolist())
    return HostOrder(hosts=hosts, source=job.source, name=job.id)
