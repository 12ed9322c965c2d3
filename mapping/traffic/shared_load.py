"""Loads of all running jobs on the links of one fabric: the jobs that cause them, and measured rates.

Every job is assumed to send its profile once per iteration, all at the same pace
(`mapping.distances.cost_model`, ``added``): the time of a link is the bytes of all jobs divided by its
capacity, in seconds per iteration. `mapping.traffic.shared_load` scales profiles by the times of iterations.

How much jobs on common links slow each other: their profiles scaled by the time of an iteration.

A job sends its profile once in the time of an iteration, which gives its mean rate on each link. A job gets
the capacity that the other jobs' rates leave; a link whose rates exceed its capacity delays all its jobs by
the ratio. In each iteration a job waits for its slowest link, so an iteration becomes longer by the time that
this link takes more than the slowest one alone.

Without the times of all jobs on a link their rates cannot be compared: then only the bytes of their profiles
are, as an estimated share of the link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from mapping.cost.metrics import LoadedLink, link_with
from mapping.distances.cost_model import ADDED, Background
from registry.errors import InvalidValue, UnknownName
from registry.model import Fabric, Floats, Ints, Longs
from registry.model.placement import LoadedLinks
from registry.model.views import one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobLoad:
    """Load of one job's placement on the links of a fabric."""

    job: str
    """Id of the scheduler."""
    user: str = ""
    """Empty if unknown."""
    application: str | None = None
    """Application of its profile."""
    placement: str = ""
    """Id of the placement; empty if it was not saved."""
    iteration_seconds: float | None = None
    """Time in which the job sends its profile once; None if unknown."""
    iteration_from: str = ""
    """Origin of that time: ``stated``, ``trace``, ``measured`` or empty."""
    loads: LoadedLinks
    """Bytes on links per iteration."""

    __repr__ = one_line

    @property
    def link_bytes(self) -> Floats:
        """Load of every link (float64[m])."""
        return self.loads.dense()


class LinkUser(NamedTuple):
    """One job's part of a link's traffic."""

    number: int
    """Index into `SharedLoad.jobs`."""
    job: str
    user: str
    application: str | None
    bytes: float
    """Bytes per iteration."""
    part: float
    """Share of all jobs' bytes on the link, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HotLink:
    """A link direction and the jobs that load it."""

    row: int
    """Row of ``fabric.links``."""
    load: LoadedLink
    """Both ends by name, GUID and port; bytes per iteration, bytes/s, seconds per iteration."""
    network: bool
    """True if it connects two vertices that forward, False for a host's own cable."""
    users: tuple[LinkUser, ...]
    """Largest part first; equal ones in the order of the jobs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedLoad:
    """Loads of jobs by links, as CSR."""

    fabric: Fabric
    jobs: tuple[JobLoad, ...]
    """Length j."""
    indptr: Longs
    """int64[j + 1]."""
    link: Ints
    """int32[nnz]: Rows of ``fabric.links`` that each job loads, ascending within a job."""
    bytes: Floats
    """float64[nnz]: Bytes per iteration."""

    __repr__ = one_line

    @classmethod
    def of(cls, fabric: Fabric, jobs: Iterable[JobLoad]) -> Self:
        """Return the loads of jobs together.

        Raises:
            InvalidValue: A job's load has another number of links, or a job occurs twice.
        """
        several = tuple(jobs)
        for one in several:
            if one.loads.links != len(fabric.links):
                raise InvalidValue(
                    "SharedLoad.jobs",
                    f"job {one.job}: {one.loads.links} link loads for a fabric of {len(fabric.links)} links",
                )
        if len({one.job for one in several}) != len(several):
            raise InvalidValue("SharedLoad.jobs", "a job occurs twice")
        counts = [len(one.loads.link) for one in several]
        indptr = np.r_[0, np.cumsum(counts)].astype(np.int64)
        link = np.concatenate([np.zeros(0, np.int32), *(one.loads.link for one in several)])
        size = np.concatenate([np.zeros(0), *(one.loads.bytes for one in several)])
        for column in (indptr, link, size):
            column.flags.writeable = False
        return cls(fabric=fabric, jobs=several, indptr=indptr, link=link, bytes=size)

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def link_bytes(self) -> Floats:
        """Bytes of all jobs on each link (float64[m])."""
        links = len(self.fabric.links)
        return np.bincount(self.link, weights=self.bytes, minlength=links).astype(np.float64)

    @property
    def seconds(self) -> Floats:
        """Time of each link for the bytes that all jobs send in an iteration (float64[m])."""
        return self.link_bytes / self.fabric.links.capacity

    def index(self, job: str) -> int:
        """Return the index of a job in `jobs`.

        Raises:
            UnknownName: There is no such job, or it has no load here; the error names the closest ones.
        """
        names = [one.job for one in self.jobs]
        if job not in names:
            raise UnknownName("running job with traffic", job, names)
        return names.index(job)

    def background(self, job: str) -> Background | None:
        """Return the bytes of all other jobs as background of `job`; None if no other job loads anything.

        Args:
            job: If it has no load here, all jobs are the others.
        """
        others = [one for one in self.jobs if one.job != job and len(one.loads.link)]
        if not others:
            return None
        return Background(kind=ADDED, load=SharedLoad.of(self.fabric, others).link_bytes, jobs=len(others))

    def hottest(self, count: int, *, network_only: bool = False) -> tuple[HotLink, ...]:
        """Return the loaded links with the largest times, worst first; equal ones by row.

        Args:
            count: Largest number of links.
            network_only: Leave out the hosts' own cables.
        """
        seconds = self.seconds
        rows = np.flatnonzero((seconds > 0) & (self.fabric.network_link | (not network_only)))
        rows = rows[np.argsort(-seconds[rows], kind="stable")[:count]]
        return self.links(rows)

    def links(self, rows: ArrayLike) -> tuple[HotLink, ...]:
        """Return these rows of ``fabric.links`` with the jobs that load each.

        Raises:
            InvalidValue: There is no such row.
        """
        wanted = np.asarray(rows, np.int64).reshape(-1)
        by_job = self._columns(wanted).tocsc()
        inner, total = self.fabric.network_link, np.asarray(by_job.sum(axis=0)).reshape(-1)
        hot_links = []
        for index, row in enumerate(wanted.tolist()):
            part = slice(by_job.indptr[index], by_job.indptr[index + 1])
            jobs, size = by_job.indices[part], by_job.data[part]
            order = np.lexsort((jobs, -size))
            users = tuple(self._user(int(jobs[k]), float(size[k]), float(total[index])) for k in order)
            load = link_with(self.fabric, row, float(total[index]))
            hot_links.append(HotLink(row=row, load=load, network=bool(inner[row]), users=users))
        return tuple(hot_links)

    def isolated_seconds(self) -> Floats:
        """Return the time of each job's worst link without other jobs (float64[j]); 0 if it loads nothing."""
        return self.worst(self.bytes / self.fabric.links.capacity[self.link])

    def together_seconds(self) -> Floats:
        """Return the time of the worst link that each job loads, with all jobs' bytes (float64[j])."""
        return self.worst(self.seconds[self.link])

    def worst_shared_link(self) -> HotLink | None:
        """Return the busiest link that several jobs load, or None if there is none."""
        shared = np.bincount(self.link, minlength=len(self.fabric.links)) > 1
        if not shared.any():
            return None
        (link,) = self.links([int(np.argmax(np.where(shared, self.seconds, -1.0)))])
        return link

    def matrix(self, rows: ArrayLike) -> Floats:
        """Return the seconds (float64[j, len(rows)]) of each job's own bytes on rows of ``fabric.links``.

        Raises:
            InvalidValue
        """
        wanted = np.asarray(rows, np.int64).reshape(-1)
        found: Floats = self._columns(wanted).toarray() / self.fabric.links.capacity[wanted]
        return found

    def _columns(self, rows: Longs) -> csr_array:
        """Return the bytes of the jobs on some links: sparse [j, len(rows)]."""
        links = len(self.fabric.links)
        if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= links):
            raise InvalidValue("SharedLoad.links", f"rows must be from 0 to {links - 1}")
        whole = csr_array((self.bytes, self.link, self.indptr), shape=(len(self), links))
        return whole[:, rows]

    def worst(self, values: Floats) -> Floats:
        """Return each job's largest of some values, one for each entry of `link` (float64[j]); 0 without."""
        found, loading = np.zeros(len(self)), np.flatnonzero(np.diff(self.indptr))
        if len(loading):
            found[loading] = np.maximum.reduceat(values, self.indptr[loading])
        return found

    def _user(self, number: int, size: float, total: float) -> LinkUser:
        one = self.jobs[number]
        return LinkUser(number, one.job, one.user, one.application, size, size / total)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgainstCounters:
    """Predicted and measured utilisation, by row of ``fabric.links``."""

    iterations_per_second: float
    """Measured bytes/s divided by predicted bytes per iteration, each summed over the measured network links;
    NaN if one of the sums is zero."""
    predicted_share: Floats
    measured_share: Floats
    """float64[m]: Share of capacity, 0 to 1; the predicted one at that number of periods per second. NaN if
    unknown."""

    __repr__ = one_line

    @property
    def difference(self) -> Floats:
        """Measured share minus predicted share (float64[m])."""
        return self.measured_share - self.predicted_share


def against_counters(fabric: Fabric, link_bytes: Floats, bytes_per_second: Floats) -> AgainstCounters:
    """Return predicted loads compared with measured rates.

    Args:
        link_bytes (float64[m]): Predicted bytes per iteration.
        bytes_per_second (float64[m]): Measured rates; NaN if not measured.

    Raises:
        InvalidValue: There is not one value per link.
    """
    capacity = fabric.links.capacity
    for name, values in (("link_bytes", link_bytes), ("bytes_per_second", bytes_per_second)):
        if values.shape != capacity.shape:
            raise InvalidValue(name, f"{len(values)} values for {len(capacity)} links")
    both = fabric.network_link & ~np.isnan(bytes_per_second)
    predicted, measured = float(link_bytes[both].sum()), float(bytes_per_second[both].sum())
    scale = measured / predicted if predicted > 0 and measured > 0 else float("nan")
    return AgainstCounters(
        iterations_per_second=scale,
        predicted_share=scale * link_bytes / capacity,
        measured_share=bytes_per_second / capacity,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interference:
    """What sharing links costs each job."""

    iteration_seconds: Floats
    """float64[j]: Time of an iteration of each job; NaN if it is unknown, or shorter than the job's worst
    link takes alone, which means that the profile does not hold one iteration."""
    utilisation: Floats
    """float64[m]: Mean rate of all jobs over the capacity of each link; NaN if a job on it has no known time.
    """
    worst_link: Longs
    """int64[j]: Link for which each job waits longest with the others, or if that is unknown the link of the
    job with most bytes of all jobs over its capacity; -1 if it loads none."""
    share: Floats
    """float64[j]: The job's part of that link's traffic, 0 to 1: of the rates, or of the bytes if a rate is
    unknown."""
    alone_seconds: Floats
    """float64[j]: Time of the worst link in an iteration with the job's own bytes; 0 if it loads none."""
    together_seconds: Floats
    """float64[j]: Time of the worst link in an iteration with the other jobs' rates; NaN if unknown."""

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
