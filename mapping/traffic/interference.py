"""How much jobs on common links slow each other: their profiles scaled by the time of an iteration.

A job sends its profile once in the time of an iteration, which gives its mean rate on each link. A job gets
the capacity that the other jobs' rates leave; a link whose rates exceed its capacity delays all its jobs by
the ratio. In each iteration a job waits for its slowest link, so an iteration becomes longer by the time that
this link takes more than the slowest one alone.

Without the times of all jobs on a link their rates cannot be compared: then only the bytes of their profiles
are, as an estimated share of the link.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapping.traffic.shared_load import SharedLoad
from registry.model import Floats, Longs
from registry.model.views import one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interference:
    """What sharing links costs each job.

    Attributes
    ----------
    iteration_seconds : float64[j]
        Time of an iteration of each job; NaN if it is unknown, or shorter than the job's worst link takes
        alone, which means that the profile does not hold one iteration.
    utilisation : float64[m]
        Mean rate of all jobs over the capacity of each link; NaN if a job on it has no known time.
    worst_link : int64[j]
        Link for which each job waits longest with the others, or if that is unknown the link of the job with
        most bytes of all jobs over its capacity; -1 if it loads none.
    share : float64[j]
        The job's part of that link's traffic, 0 to 1: of the rates, or of the bytes if a rate is unknown.
    alone_seconds : float64[j]
        Time of the worst link in an iteration with the job's own bytes; 0 if it loads none.
    together_seconds : float64[j]
        Time of the worst link in an iteration with the other jobs' rates; NaN if unknown.
    """

    iteration_seconds: Floats
    utilisation: Floats
    worst_link: Longs
    share: Floats
    alone_seconds: Floats
    together_seconds: Floats

    __repr__ = one_line

    @property
    def slowdowns(self) -> Floats:
        """Time of an iteration with the other jobs over that without (float64[j]); NaN if unknown."""
        return 1.0 + (self.together_seconds - self.alone_seconds) / self.iteration_seconds


def interference(shared: SharedLoad) -> Interference:
    """Return what sharing links costs each of these jobs."""
    capacity = shared.fabric.links.capacity
    alone = shared.isolated_seconds()
    stated = np.array([one.iteration_seconds or np.nan for one in shared.jobs], np.float64)
    iteration = np.where(alone <= stated, stated, np.nan)
    per_entry = np.repeat(iteration, np.diff(shared.indptr))
    rate = shared.bytes / per_entry
    total = np.bincount(shared.link, weights=rate, minlength=len(capacity))[shared.link]
    room = capacity[shared.link]
    with np.errstate(divide="ignore"):
        free = shared.bytes / (room - (total - rate))
    together = np.where(total <= room, free, per_entry * total / room)
    worst = _worst_entries(shared, together)
    loads = worst >= 0
    known = loads & ~np.isnan(shared.worst(together))
    of_bytes = shared.bytes / shared.link_bytes[shared.link]
    part = np.where(np.isnan(total), of_bytes, rate / total)
    return Interference(
        iteration_seconds=iteration,
        utilisation=np.bincount(shared.link, weights=rate, minlength=len(capacity)) / capacity,
        worst_link=np.where(loads, np.append(shared.link, -1)[worst], -1).astype(np.int64),
        share=np.where(loads, np.append(part, 0.0)[worst], 0.0),
        alone_seconds=alone,
        together_seconds=np.where(known, np.append(together, 0.0)[worst], np.where(loads, np.nan, 0.0)),
    )


def _worst_entries(shared: SharedLoad, together: Floats) -> Longs:
    """Return the entry of `SharedLoad.link` of each job's worst link (int64[j]), -1 if it loads none."""
    seconds = shared.seconds[shared.link]
    worst = np.full(len(shared), -1, np.int64)
    for job in np.flatnonzero(np.diff(shared.indptr)).tolist():
        part = slice(int(shared.indptr[job]), int(shared.indptr[job + 1]))
        values = seconds[part] if np.isnan(together[part]).any() else together[part]
        worst[job] = part.start + int(np.argmax(values))
    return worst
