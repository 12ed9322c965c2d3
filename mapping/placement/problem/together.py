"""Several jobs placed together: their profiles joined into one guest of several parts, and taken apart again.

The joined guest is disconnected, which every strategy takes; what congests is then the sum of all jobs'
loads, as if each sent its profile in the same period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Placement, Profile


def join(profiles: Sequence[Profile], *, times: Sequence[float] | None = None) -> Profile:
    """One profile of all jobs: the ranks of the first, then those of the second, and so on.

    Parameters
    ----------
    profiles : sequence of Profile
    times : sequence of float, optional
        How often each job does what its profile holds while the others do theirs; 1 unless told.

    Raises
    ------
    InvalidValue
        No profile, or as many times as there are no profiles.
    """
    if not profiles:
        raise InvalidValue("join.profiles", "at least one is needed")
    factors = [1.0] * len(profiles) if times is None else list(times)
    if len(factors) != len(profiles) or not all(np.isfinite(factors)) or min(factors) <= 0:
        raise InvalidValue("join.times", "one number above zero a profile is needed")
    first = np.cumsum([0, *(profile.ranks for profile in profiles)])
    missing = [rank + at for at, p in zip(first.tolist(), profiles, strict=False) for rank in p.missing_ranks]
    return Profile.from_edges(
        np.concatenate([p.sender + at for at, p in zip(first, profiles, strict=False)]),
        np.concatenate([p.partner + at for at, p in zip(first, profiles, strict=False)]),
        np.concatenate([p.bytes * factor for p, factor in zip(profiles, factors, strict=True)]),
        ranks=int(first[-1]),
        messages=np.concatenate([p.messages for p in profiles]),
        name="+".join(p.name or f"job {at}" for at, p in enumerate(profiles)),
        missing_ranks=tuple(missing),
    )


def split(placement: Placement, ranks: Sequence[int]) -> tuple[Placement, ...]:
    """The placement of each job out of one of all together.

    A job's allocation has the hosts that it got, in the order of the whole, with as many slots as it has
    ranks there: hosts may be shared between jobs, slots are not.

    Parameters
    ----------
    ranks : sequence of int
        Of each job, in the order in which they were joined.

    Raises
    ------
    InvalidPlacement
        The ranks are not as many as the placement's.
    """
    if sum(ranks) != placement.ranks or min(ranks, default=0) < 1:
        raise InvalidPlacement(
            f"{len(ranks)} jobs of {sum(ranks)} ranks are not the placement's {placement.ranks}"
        )
    return tuple(_part(placement, part) for part in np.split(placement.host_of_rank, np.cumsum(ranks)[:-1]))


def _part(placement: Placement, hosts: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Placement:
    order = placement.allocation.hosts
    taken = np.bincount(hosts, minlength=int(order.max()) + 1)[order]
    allocation = Allocation(hosts=order[taken > 0], slots=taken[taken > 0].astype(np.int32))
    return replace(placement, host_of_rank=hosts, allocation=allocation)
