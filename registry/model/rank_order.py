"""Which rank a scheduler puts on which host: the order of Slurm's distributions.

How many ranks a host gets is decided first (`Job.slots`); a distribution says which ones. Seen from srun of
Slurm 22.05 for hosts with equal and different numbers of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Longs
from registry.model.job import Job
from registry.model.placement import HostOrder

BLOCK, CYCLIC, PLANE, ARBITRARY = DISTRIBUTIONS = ("block", "cyclic", "plane", "arbitrary")


def rank_order(counts: Sequence[int], distribution: str, plane: int | None = None) -> Longs:
    """The host of each rank.

    Hosts are visited in order, round after round, while they have ranks left to get: ``block`` gives a host
    all of its ranks at once, ``cyclic`` one a round, ``plane`` so many a round.

    Parameters
    ----------
    counts : sequence of int
        Ranks of each host.
    distribution : str
        ``block``, ``cyclic`` or ``plane``.
    plane : int, optional
        Ranks a round of ``plane``.

    Returns
    -------
    int64[ranks]
        Index of the host of each rank.

    Raises
    ------
    InvalidValue
        A distribution that has no order of its own (``arbitrary``) or is not known; a plane without a size.
    """
    left = np.asarray(counts, np.int64)
    if distribution not in (BLOCK, CYCLIC, PLANE):
        known = "only the list that the job was started with, or its own report, tells its order"
        reason = known if distribution == ARBITRARY else f"must be one of {', '.join(DISTRIBUTIONS)}"
        raise InvalidValue("distribution", f"is {distribution!r}: {reason}")
    if distribution == PLANE and (plane is None or plane < 1):
        raise InvalidValue("plane", "the size of a plane is needed; accounting does not keep it")
    if not len(left) or int(left.min()) < 0:
        raise InvalidValue("counts", "needs at least one host, and no negative number of ranks")
    most = max(1, int(left.max()))
    each = {BLOCK: most, CYCLIC: 1, PLANE: plane or 1}[distribution]
    host = np.repeat(np.arange(len(left)), left)
    within = np.arange(len(host)) - np.repeat(np.cumsum(left) - left, left)
    return host[np.lexsort((within, host, within // each))]


def shared(ranks: int, room: Sequence[int]) -> tuple[int, ...]:
    """Ranks of each host as Slurm counts them, whatever order it then puts them in.

    One rank a host and round while the host has room; when all are full, one a host and round again.

    Parameters
    ----------
    ranks : int
    room : sequence of int
        Ranks that each host takes.
    """
    taken = [0] * len(room)
    while ranks and taken:
        free = [host for host, slots in enumerate(room) if taken[host] < slots]
        rounds = min((room[host] - taken[host] for host in free), default=ranks)
        sharing = free or range(len(room))
        rounds = min(rounds, max(1, ranks // len(sharing)))
        for host in sharing[:ranks]:
            taken[host] += rounds
        ranks -= rounds * min(ranks, len(sharing))
    return tuple(taken)


def order_of_job(job: Job, *, distribution: str | None = None, plane: int | None = None) -> HostOrder:
    """The host of each rank of a job, as its distribution puts them.

    Parameters
    ----------
    job : Job
    distribution : str, optional
        Instead of the job's own; one that told none is taken to be ``block``.
    plane : int, optional
        Ranks a round of ``plane``, which no accounting tells.

    Raises
    ------
    InvalidValue
        The job has no hosts, or its order cannot be told.
    """
    if not job.hosts:
        raise InvalidValue("Job.hosts", f"job {job.id} has none")
    ranks = job.ranks or sum(job.slots)
    counts = job.slots if sum(job.slots) == ranks else shared(ranks, job.slots)
    order = rank_order(counts, distribution or job.distribution or BLOCK, plane)
    return HostOrder(hosts=tuple(job.hosts[host] for host in order.tolist()), source=job.source, name=job.id)
