"""All running jobs' loads on the links of one fabric: how hot each is, and whose traffic it is.

Every job is taken to send its profile once in the same period (`mapping.distances.background`, ``added``): a
link's time is all jobs' bytes over its capacity, in seconds a period.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from mapping.distances.background import ADDED, Background
from mapping.evaluation.loaded_links import LoadedLink, link_with
from registry.errors import InvalidValue, UnknownName
from registry.model import Fabric, Floats, Ints, Longs
from registry.model.loaded_links import LoadedLinks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobLoad:
    """What one job's placement puts on the links of a fabric.

    Attributes
    ----------
    job : str
        The scheduler's id.
    user : str
        Empty where it is not known.
    application : str or None
        Of its profile.
    placement : str
        Id; empty for one that was not saved.
    loads : LoadedLinks
        Bytes that it puts on links in a period.
    """

    job: str
    user: str = ""
    application: str | None = None
    placement: str = ""
    loads: LoadedLinks

    @property
    def link_bytes(self) -> Floats:
        """float64[m]: load of every link."""
        return self.loads.dense()


class User(NamedTuple):
    """One job's part of a link's traffic.

    Attributes
    ----------
    number : int
        Place among `SharedLoad.jobs`.
    job, user : str
    application : str or None
    bytes : float
        A period.
    part : float
        Of all jobs' bytes on the link, 0 to 1.
    """

    number: int
    job: str
    user: str
    application: str | None
    bytes: float
    part: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HotLink:
    """A link direction and whose traffic is on it.

    Attributes
    ----------
    row : int
        Of ``fabric.links``.
    load : LoadedLink
        Both ends by name, GUID and port; bytes a period, bytes/s, seconds a period.
    network : bool
        Whether it joins two vertices that forward; else it is a host's own cable.
    users : tuple of User
        The largest part first; equals by their place among the jobs.
    """

    row: int
    load: LoadedLink
    network: bool
    users: tuple[User, ...]


class Pair(NamedTuple):
    """The two jobs that put most on the hottest link that more than one job loads.

    Attributes
    ----------
    link : HotLink
    first, second : User
        `first` puts at least as much there as `second`.
    """

    link: HotLink
    first: User
    second: User


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedLoad:
    """Jobs by links: CSR.

    Attributes
    ----------
    fabric : Fabric
    jobs : tuple of JobLoad
        Length j.
    indptr : int64[j + 1]
    link : int32[nnz]
        Rows of ``fabric.links`` that each job loads, ascending within a job.
    bytes : float64[nnz]
        A period.
    """

    fabric: Fabric
    jobs: tuple[JobLoad, ...]
    indptr: Longs
    link: Ints
    bytes: Floats

    @classmethod
    def of(cls, fabric: Fabric, jobs: Iterable[JobLoad]) -> Self:
        """The loads of jobs together.

        Raises
        ------
        InvalidValue
            A job's load is for another number of links, or a job comes twice.
        """
        several = tuple(jobs)
        for one in several:
            if one.loads.links != len(fabric.links):
                raise InvalidValue(
                    "SharedLoad.jobs",
                    f"job {one.job}: {one.loads.links} link loads for a fabric of {len(fabric.links)} links",
                )
        if len({one.job for one in several}) != len(several):
            raise InvalidValue("SharedLoad.jobs", "a job comes twice")
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
        """float64[m]: all jobs' bytes on each link."""
        links = len(self.fabric.links)
        return np.bincount(self.link, weights=self.bytes, minlength=links).astype(np.float64)

    @property
    def seconds(self) -> Floats:
        """float64[m]: time that each link needs for all jobs' bytes of a period."""
        return self.link_bytes / self.fabric.links.capacity

    def index(self, job: str) -> int:
        """Place of a job among `jobs`.

        Raises
        ------
        UnknownName
            No such job, or it has no load here; with the closest.
        """
        names = [one.job for one in self.jobs]
        if job not in names:
            raise UnknownName("running job with traffic", job, names)
        return names.index(job)

    def background(self, job: str) -> Background | None:
        """All other jobs' bytes, as `job` finds them; None where no other job loads anything.

        Parameters
        ----------
        job : str
            May be one that has no load here: then all jobs are the others.
        """
        others = [one for one in self.jobs if one.job != job and len(one.loads.link)]
        if not others:
            return None
        return Background(kind=ADDED, load=SharedLoad.of(self.fabric, others).link_bytes, jobs=len(others))

    def hottest(self, count: int, *, network_only: bool = False) -> tuple[HotLink, ...]:
        """The loaded links that need most seconds, the worst first; equals by row.

        Parameters
        ----------
        count : int
            At most so many.
        network_only : bool
            Leave the hosts' own cables out.
        """
        seconds = self.seconds
        rows = np.flatnonzero((seconds > 0) & (self.fabric.network_link | (not network_only)))
        rows = rows[np.argsort(-seconds[rows], kind="stable")[:count]]
        return self.links(rows)

    def links(self, rows: ArrayLike) -> tuple[HotLink, ...]:
        """These rows of ``fabric.links``, each with whose traffic is on it.

        Raises
        ------
        InvalidValue
            A row that there is not.
        """
        wanted = np.asarray(rows, np.int64).reshape(-1)
        by_job = self._columns(wanted).tocsc()
        inner, total = self.fabric.network_link, np.asarray(by_job.sum(axis=0)).reshape(-1)
        found = []
        for at, row in enumerate(wanted.tolist()):
            part = slice(by_job.indptr[at], by_job.indptr[at + 1])
            jobs, size = by_job.indices[part], by_job.data[part]
            order = np.lexsort((jobs, -size))
            users = tuple(self._user(int(jobs[k]), float(size[k]), float(total[at])) for k in order)
            load = link_with(self.fabric, row, float(total[at]))
            found.append(HotLink(row=row, load=load, network=bool(inner[row]), users=users))
        return tuple(found)

    def alone_seconds(self) -> Floats:
        """float64[j]: each job's worst link, were it alone; 0 for one that loads nothing."""
        return self._worst(self.bytes)

    def together_seconds(self) -> Floats:
        """float64[j]: of the links that each job loads, the worst with all jobs' bytes on it."""
        return self._worst(self.link_bytes[self.link])

    def slowdowns(self) -> Floats:
        """float64[j]: how many times longer each job's worst link takes by sharing; 1 for not at all."""
        alone, together = self.alone_seconds(), self.together_seconds()
        return np.divide(together, alone, out=np.ones(len(self)), where=alone > 0)

    def worst_pair(self, *, network_only: bool = False) -> Pair | None:
        """Who shares the hottest link that more than one job loads; None where none is shared."""
        users = np.bincount(self.link, minlength=len(self.fabric.links))
        shared = (users > 1) & (self.fabric.network_link | (not network_only))
        if not shared.any():
            return None
        (link,) = self.links([int(np.argmax(np.where(shared, self.seconds, -1.0)))])
        return Pair(link, link.users[0], link.users[1])

    def matrix(self, rows: ArrayLike) -> Floats:
        """float64[j, len(rows)]: seconds that each job's own bytes need on these rows of ``fabric.links``.

        Raises
        ------
        InvalidValue
        """
        wanted = np.asarray(rows, np.int64).reshape(-1)
        found: Floats = self._columns(wanted).toarray() / self.fabric.links.capacity[wanted]
        return found

    def _columns(self, rows: Longs) -> csr_array:
        """Bytes of the jobs on some links: sparse [j, len(rows)]."""
        links = len(self.fabric.links)
        if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= links):
            raise InvalidValue("SharedLoad.links", f"a row is outside 0 .. {links - 1}")
        whole = csr_array((self.bytes, self.link, self.indptr), shape=(len(self), links))
        return whole[:, rows]

    def _worst(self, size: Floats) -> Floats:
        seconds = size / self.fabric.links.capacity[self.link]
        found, loading = np.zeros(len(self)), np.flatnonzero(np.diff(self.indptr))
        if len(loading):
            found[loading] = np.maximum.reduceat(seconds, self.indptr[loading])
        return found

    def _user(self, number: int, size: float, total: float) -> User:
        one = self.jobs[number]
        return User(number, one.job, one.user, one.application, size, size / total)
