"""Traffic of the running jobs, and which ranks load a link; cached for all sessions.

Columns of tables: times, numbers, units, and lists of numbers as text. Pure functions.

Tables of shared links: jobs and pairs of ranks on a link, jobs on hosts, slowdowns. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import streamlit as st
from scipy.sparse import csr_array

from dashboard.shared.caching import KEYS
from dashboard.shared.viewer import OTHERS, Viewer
from mapping.distances.cost_model import CostModel
from mapping.questions.live import Live, pairs_on, traffic, with_measured_iterations
from mapping.traffic.job_loads import RankPairs, rank_pairs
from mapping.traffic.names import short_link
from mapping.traffic.shared_load import HotLink, Interference, LinkUser, SharedLoad, interference
from registry import units
from registry.model import Fabric, Floats, Ints, Longs, Placement
from registry.registry import Registry
from registry.store.counters import rates_of
from registry.store.fabric_history import read_fabric_history
from registry.store.fabrics import ClusterInfo
from registry.store.jobs import StoredJob
from registry.store.placements import OpenPlacement


def in_utc(times: Iterable[datetime | None]) -> pd.Series:
    """Return times as a column in UTC, to the second; the title of the column must name the zone."""
    plain = [
        None if time is None else time.astimezone(UTC).replace(tzinfo=None, microsecond=0) for time in times
    ]
    return pd.Series(plain, dtype="datetime64[s]")


def numbers(values: Iterable[float | None]) -> list[float]:
    """Return values as floats, NaN instead of None."""
    return [math.nan if value is None else float(value) for value in values]


def in_units(table: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return the table with some columns in a suitable unit, three figures; the unit is added to the titles.

    Args:
        columns: Base unit of each column, such as `registry.units.SECONDS`.
    """
    scaled = table.copy()
    for name, base in columns.items():
        unit = units.unit_for(table[name].dropna().tolist(), base)
        scaled[name] = [float(f"{value / unit.size:.3g}") for value in table[name]]
        scaled = scaled.rename(columns={name: f"{name} ({unit.name})"})
    return scaled


def folded(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text with ranges: ``0-3, 7``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


MOST_JOBS = 40
"""Maximum number of jobs with their own row in the heat map; other jobs share a further row."""
MOST_LINKS = 20
"""Maximum number of links in the heat map."""
REST = "all other jobs"
"""Row of the jobs with little load on these links."""
SHARE, SLOWDOWN, ITERATION = "share of worst link", "slowdown", "time per iteration"
"""Columns of `sharing_table`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Heat:
    """A heat map of jobs (rows) and links (columns)."""

    of_capacity: bool
    """True if values are shares of the capacity of links, False if the time of an iteration of a job is
    unknown: then they are shares of the traffic."""
    rows: tuple[str, ...]
    """Jobs, those with most load on these links first; the combined rows of other jobs last."""
    cells: pd.DataFrame
    """Columns ``row`` (one of `rows`), ``place`` (number of the link, 1 is the busiest), ``link``, ``share``
    (of the capacity or the traffic, 0 to 1)."""
    links: pd.DataFrame
    """Columns ``place``, ``link``, ``share`` (of all jobs), ``jobs`` (number of jobs on it)."""


def heat(shared: SharedLoad, found: Interference, rows: Longs, viewer: Viewer, most: int = MOST_JOBS) -> Heat:
    """Return the share of each job in each of some links.

    Args:
        rows (int64[k]): Links, of `busiest`.
        most: Maximum number of jobs with their own row.
    """
    matrix = shared.matrix(rows)
    of_capacity = not np.isnan(found.utilisation[rows]).any()
    if of_capacity:
        matrix = np.where(matrix > 0, matrix / found.iteration_seconds[:, None], 0.0)
    else:
        matrix /= matrix.sum(axis=0)
    names = _row_names(shared, matrix, viewer, most)
    shown = tuple(dict.fromkeys(names[j] for j in _by_load(matrix) if matrix[j].any()))
    texts = [short_link(shared.fabric, row) for row in rows.tolist()]
    job, place = np.nonzero(matrix)
    cells = pd.DataFrame(
        {
            "row": [names[j] for j in job.tolist()],
            "place": place + 1,
            "link": [texts[number] for number in place.tolist()],
            "share": matrix[job, place],
        }
    )
    cells = cells.groupby(["row", "place", "link"], sort=False)["share"].sum().reset_index()
    total, jobs = matrix.sum(axis=0), (matrix > 0).sum(axis=0)
    links = pd.DataFrame({"place": np.arange(len(rows)) + 1, "link": texts, "share": total, "jobs": jobs})
    return Heat(of_capacity=of_capacity, rows=_last_together(shown), cells=cells, links=links)


def sharing_table(shared: SharedLoad, found: Interference, viewer: Viewer) -> pd.DataFrame:
    """Return what sharing links costs each visible job: largest slowdown first, unknown ones last.

    The share is the job's part of the traffic of its worst link (0 to 1), the slowdown the time of an
    iteration with the other jobs over that without (NaN if unknown). ``shared with`` is the other job with
    most traffic on that link.
    """
    slow = np.nan_to_num(found.slowdowns, nan=0.0)
    part = np.where(found.share > 0, found.share, 2.0)  # jobs that load nothing are last
    order = [j for j in np.lexsort((part, -slow)).tolist() if viewer.sees(shared.jobs[j].user)]
    worst = found.worst_link
    links = {link.row: link for link in shared.links(np.unique(worst[worst >= 0]))}
    jobs = [shared.jobs[j] for j in order]
    return pd.DataFrame(
        {
            "job": [one.job for one in jobs],
            "user": [viewer.name(one.user) for one in jobs],
            "application": [one.application or "" for one in jobs],
            SHARE: found.share[order],
            SLOWDOWN: found.slowdowns[order],
            ITERATION: [
                f"{units.short(one.iteration_seconds, units.SECONDS)} ({one.iteration_from})"
                if one.iteration_seconds
                else "unknown"
                for one in jobs
            ],
            "worst link": ["" if worst[j] < 0 else short_link(shared.fabric, int(worst[j])) for j in order],
            "shared with": [_other(links.get(int(worst[j])), j, viewer) for j in order],
        }
    )


def sharers(shared: SharedLoad, viewer: Viewer, most: int = 3) -> dict[str, list[str]]:
    """Return for each job the jobs that load some of the same links, those with most common links first.

    At most `most` jobs and the number of further ones; jobs that the viewer may not see have no name.
    """
    size = (len(shared), len(shared.fabric.links))
    loads = csr_array((np.ones(len(shared.link), np.int64), shared.link, shared.indptr), shape=size)
    common = (loads @ loads.T).toarray()
    np.fill_diagonal(common, 0)
    found = {}
    for number, one in enumerate(shared.jobs):
        others = [k for k in np.argsort(-common[number], kind="stable").tolist() if common[number, k]]
        jobs = [shared.jobs[k] for k in others[:most]]
        names = [job.job if viewer.sees(job.user) else OTHERS for job in jobs]
        more = len(others) - most
        found[one.job] = [*dict.fromkeys(names), *([f"{more} more"] if more > 0 else [])]
    return found


def busiest(shared: SharedLoad, found: Interference, count: int, *, by_jobs: int = 2) -> Longs:
    """Return the busiest links (int64) that at least `by_jobs` jobs load, worst first; equal ones by row.

    They are sorted by utilisation, or by the time of the bytes of all profiles if a utilisation is unknown.
    """
    rows = np.flatnonzero(np.bincount(shared.link, minlength=len(shared.fabric.links)) >= by_jobs)
    use = found.utilisation[rows]
    value = shared.seconds[rows] if np.isnan(use).any() else use
    return rows[np.argsort(-value, kind="stable")[:count]]


def job_text(user: LinkUser, viewer: Viewer) -> str:
    """Return a job as text: id, application and user, as far as the viewer may see them."""
    if not viewer.sees(user.user):
        return OTHERS
    about = ", ".join(part for part in (user.application or "", viewer.name(user.user)) if part)
    return f"job {user.job} ({about})" if about else f"job {user.job}"


def pair_text(shared: SharedLoad, row: int, viewer: Viewer) -> str:
    """Return a sentence about the two jobs with most bytes on a link that several jobs load."""
    (link,) = shared.links([row])
    more = len(link.users) - 2
    others = "" if more <= 0 else f" {more:,} more jobs use it." if more > 1 else " One more job uses it."
    first, second = (job_text(user, viewer) for user in link.users[:2])
    return f"{short_link(shared.fabric, row)}: {first} and {second}.{others}"


def _row_names(shared: SharedLoad, matrix: Floats, viewer: Viewer, most: int) -> list[str]:
    """Return the row of each job; hidden jobs share a row, and so do jobs with little traffic here."""
    seen = [j for j in _by_load(matrix) if viewer.sees(shared.jobs[j].user) and matrix[j].any()][:most]
    names = [OTHERS if not viewer.sees(one.user) else REST for one in shared.jobs]
    for j in seen:
        one = shared.jobs[j]
        names[j] = f"{one.job} · {one.application}" if one.application else one.job
    return names


def _by_load(matrix: Floats) -> list[int]:
    found: list[int] = np.argsort(-matrix.sum(axis=1), kind="stable").tolist()
    return found


def _last_together(rows: tuple[str, ...]) -> tuple[str, ...]:
    """Return the rows with the combined rows of several jobs last."""
    return (*(r for r in rows if r not in (REST, OTHERS)), *(r for r in (REST, OTHERS) if r in rows))


def _other(link: HotLink | None, job: int, viewer: Viewer) -> str:
    found = None if link is None else next((user for user in link.users if user.number != job), None)
    if found is None:
        return ""
    return found.job if viewer.sees(found.user) else OTHERS


def users_of_link(live: Live, row: int, viewer: Viewer) -> pd.DataFrame:
    """Return the jobs that load a link, largest share first; jobs that the viewer may not see are one row.

    With their bytes per iteration, and their share of the link's bytes (``part``, 0 to 1).
    """
    users = live.shared.links([row])[0].users
    seen = [user for user in users if viewer.sees(user.user)]
    rows = [(u.job, viewer.name(u.user), u.application or "", u.bytes, u.part) for u in seen]
    hidden = [user for user in users if not viewer.sees(user.user)]
    if hidden:
        rows.append((OTHERS, "", "", sum(u.bytes for u in hidden), sum(u.part for u in hidden)))
    return pd.DataFrame(rows, columns=["job", "user", "application", "bytes", "part"])


def most_loading(live: Live | None, rows: Longs, viewer: Viewer) -> list[str]:
    """Return the job that loads each link most, with its part; empty if it is unknown or hidden."""
    if live is None:
        return [""] * len(rows)
    texts = []
    for link in live.shared.links(rows.tolist()):
        first = next(iter(link.users), None)
        seen = first is not None and viewer.sees(first.user)
        texts.append(f"{first.part:.0%} of the estimate: {job_text(first, viewer)}" if first and seen else "")
    return texts


def jobs_on_hosts(live: Live, hosts: Ints, viewer: Viewer) -> pd.DataFrame:
    """Return the visible running jobs on these hosts, the job with most of the hosts first.

    Its ranks here are an empty text if its placement is not known.
    """
    here_only = set(hosts.tolist())
    vertex = live.fabric.known_vertices({host for one in live.running.jobs for host in one.stored.job.hosts})
    placed = {load.job: place for load, place in zip(live.shared.jobs, live.placements, strict=True)}
    rows = []
    for one in live.running.jobs:
        job = one.stored.job
        here = sum(vertex.get(host) in here_only for host in job.hosts)
        if not here or not viewer.sees(job.user):
            continue
        placement = placed.get(job.id)
        ranks = "" if placement is None else str(int(np.isin(placement.host_of_rank, hosts).sum()))
        rows.append((job.id, viewer.name(job.user), one.application or "", here, len(job.hosts), ranks))
    rows.sort(key=lambda row: (-row[3], row[0]))
    columns = ["job", "user", "application", "hosts here", "of its hosts", "ranks here"]
    return pd.DataFrame(rows, columns=columns)


def pairs_table(fabric: Fabric, placement: Placement, pairs: RankPairs) -> pd.DataFrame:
    """Return the pairs of ranks that load a link, largest share first.

    With their bytes per iteration, and their share of the job's bytes on the link (``part``, 0 to 1).
    """
    names, host = fabric.names, placement.host_of_rank
    whole = pairs.total_bytes if pairs.total_bytes > 0 else 1.0
    return pd.DataFrame(
        {
            "from rank": pairs.sender,
            "on": [names[v] for v in host[pairs.sender].tolist()],
            "to rank": pairs.receiver,
            "on host": [names[v] for v in host[pairs.receiver].tolist()],
            "bytes": pairs.bytes,
            "part": pairs.bytes / whole,
        }
    )


TRAFFICS_CACHED = 4
"""Number of clusters and times whose traffic is cached."""
PAIRS_CACHED = 256
"""Number of links and jobs whose rank pairs are cached."""
FRESH = timedelta(minutes=5)
"""Lifetime of a cache entry: jobs with a known end time end without a change in the registry."""


@st.cache_resource(
    max_entries=TRAFFICS_CACHED,
    ttl=FRESH,
    show_spinner="Adding up the traffic of the running jobs ...",
    hash_funcs=KEYS,
)
def cached_traffic(registry: Registry, cluster: ClusterInfo, time: datetime | None) -> Live:
    """Return the traffic of the jobs that run on a cluster: three statements, none if it is cached.

    Args:
        cluster: The cluster; entries cached for an older version of it are not used.
        time: None for now.

    Raises:
        UnknownName: No observation of the cluster until then.
    """
    return traffic(registry, cluster.name, time)


@st.cache_resource(max_entries=TRAFFICS_CACHED, ttl=FRESH, show_spinner=False, hash_funcs=KEYS)
def cached_sharing(
    registry: Registry, cluster: ClusterInfo, time: datetime | None
) -> tuple[Live, Interference]:
    """Return the traffic of running jobs with measured times of iterations, and what sharing costs each job.

    One statement more than `cached_traffic`, which also describes parameters and errors.
    """
    live = cached_traffic(registry, cluster, time)
    read = read_fabric_history(registry.database, cluster.name, live.running.at, counters=True)
    live = with_measured_iterations(live, rates_of(live.fabric, read.sweeps))
    return live, interference(live.shared)


def sharers_of(
    registry: Registry, clusters: Mapping[str, ClusterInfo], jobs: Sequence[StoredJob], viewer: Viewer
) -> dict[str, list[str]]:
    """Return for each running job the jobs on its links, with the statements of `cached_traffic`."""
    found: dict[str, list[str]] = {}
    running = {one.cluster for one in jobs if one.job.started_at is not None and not one.job.has_ended}
    for cluster in sorted(running & clusters.keys()):
        shared = cached_traffic(registry, clusters[cluster], None).shared
        found |= {f"{cluster}/{job}": others for job, others in sharers(shared, viewer).items()}
    return found


@st.cache_resource(max_entries=PAIRS_CACHED, show_spinner=False, hash_funcs=KEYS)
def cached_rank_pairs(
    registry: Registry, cluster: ClusterInfo, live: Live, job: str, row: int, most: int
) -> RankPairs:
    """Return the rank pairs of a running job that load a link: one statement, none if they are cached.

    Raises:
        UnknownName: The job has no traffic.
    """
    return pairs_on(registry, live, job, row, most=most)


def pairs_of_placement(opened: OpenPlacement, row: int, most: int) -> RankPairs | None:
    """Return the rank pairs of a placement that load a link, or None if its profile is not known.

    Raises:
        InvalidPlacement, DisconnectedAllocation, UnreachablePair
    """
    evaluation = opened.stored.evaluation
    if opened.profile is None or evaluation is None:
        return None
    return rank_pairs(
        opened.snapshot.fabric,
        opened.profile.profile,
        opened.stored.placement,
        row,
        CostModel(routing=evaluation.routing, rails=evaluation.rails),
        most=most,
    )
