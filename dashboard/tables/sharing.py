"""Tables of shared links: jobs and pairs of ranks on a link, jobs on hosts, slowdowns. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dashboard.state.viewer import OTHERS, Viewer
from dashboard.tables.links import link_text
from mapping.service.live import Live
from mapping.traffic.job_loads import RankPairs
from mapping.traffic.shared_load import HotLink, LinkUser, SharedLoad
from registry import units
from registry.model import Fabric, Floats, Ints, Longs, Placement

MOST_JOBS = 40
"""Maximum number of jobs with their own row in the heat map; other jobs share a further row."""
REST = "all other jobs"
"""Row of the jobs with little load on these links."""
ALONE, TOGETHER, SLOWDOWN = "alone", "together", "slowdown"
UNITS = {ALONE: units.SECONDS, TOGETHER: units.SECONDS}
"""Base units of columns."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Heat:
    """A heat map of jobs (rows) and links (columns).

    Attributes
    ----------
    rows : tuple of str
        Jobs, those with most load on these links first; the combined rows of other jobs last.
    cells : DataFrame
        Columns ``row`` (one of `rows`), ``place`` (number of the link, 1 is the busiest), ``link``,
        ``seconds`` (time of the job's own bytes on the link), ``part`` (share of all bytes on it).
    links : DataFrame
        Columns ``place``, ``link``, ``seconds`` (for all jobs' bytes), ``jobs`` (number of jobs on it).
    """

    rows: tuple[str, ...]
    cells: pd.DataFrame
    links: pd.DataFrame


def heat(shared: SharedLoad, hot: Sequence[HotLink], viewer: Viewer, most: int = MOST_JOBS) -> Heat:
    """Return the time of each job's bytes on each of some links.

    Parameters
    ----------
    hot : sequence of HotLink
        Links of `SharedLoad.hottest`.
    most : int
        Maximum number of jobs with their own row.
    """
    matrix = shared.matrix([link.row for link in hot])
    names = _row_names(shared, matrix, viewer, most)
    rows = tuple(dict.fromkeys(names[j] for j in _by_load(matrix) if matrix[j].any()))
    texts = [link_text(shared.fabric, link.row) for link in hot]
    job, place = np.nonzero(matrix)
    cells = pd.DataFrame(
        {
            "row": [names[j] for j in job.tolist()],
            "place": place + 1,
            "link": [texts[number] for number in place.tolist()],
            "seconds": matrix[job, place],
        }
    )
    cells = cells.groupby(["row", "place", "link"], sort=False)["seconds"].sum().reset_index()
    total = matrix.sum(axis=0)
    cells["part"] = cells["seconds"].to_numpy() / total[cells["place"].to_numpy() - 1]
    links = pd.DataFrame(
        {
            "place": np.arange(len(hot)) + 1,
            "link": texts,
            "seconds": total,
            "jobs": [len(link.users) for link in hot],
        }
    )
    return Heat(rows=_last_together(rows), cells=cells, links=links)


def slowdowns(shared: SharedLoad, viewer: Viewer) -> pd.DataFrame:
    """Return the slowdown of each visible job, largest first; equal ones in the order of the jobs.

    It is the time of the job's worst link with all jobs' bytes (together) over that with its own bytes only
    (alone), both in seconds. ``shared most with`` is the other job with most bytes on the worst link.
    """
    slow = shared.slowdowns()
    order = [j for j in np.argsort(-slow, kind="stable").tolist() if viewer.sees(shared.jobs[j].user)]
    worst = worst_links(shared)
    links = {link.row: link for link in shared.links(np.unique(worst[worst >= 0]))}
    alone, together = shared.isolated_seconds(), shared.together_seconds()
    return pd.DataFrame(
        {
            "job": [shared.jobs[j].job for j in order],
            "user": [viewer.name(shared.jobs[j].user) for j in order],
            "application": [shared.jobs[j].application or "" for j in order],
            ALONE: alone[order],
            TOGETHER: together[order],
            SLOWDOWN: slow[order],
            "worst link": ["" if worst[j] < 0 else link_text(shared.fabric, int(worst[j])) for j in order],
            "shared most with": [_other(links.get(int(worst[j])), j, viewer) for j in order],
        }
    )


def shared_links(shared: SharedLoad, count: int) -> tuple[HotLink, ...]:
    """Return the busiest links that more than one job loads, worst first; equal ones by row."""
    users = np.bincount(shared.link, minlength=len(shared.fabric.links))
    rows = np.flatnonzero(users > 1)
    return shared.links(rows[np.argsort(-shared.seconds[rows], kind="stable")[:count]])


def worst_links(shared: SharedLoad) -> Longs:
    """Return int64[j]: the worst link of each job, counting all jobs' bytes; -1 if it loads none."""
    seconds = shared.seconds[shared.link]
    worst = np.full(len(shared), -1, np.int64)
    for j in np.flatnonzero(np.diff(shared.indptr)).tolist():
        part = slice(shared.indptr[j], shared.indptr[j + 1])
        worst[j] = shared.link[part][np.argmax(seconds[part])]
    return worst


def job_text(user: LinkUser, viewer: Viewer) -> str:
    """Return a job as text: id, application and user, as far as the viewer may see them."""
    if not viewer.sees(user.user):
        return OTHERS
    about = ", ".join(part for part in (user.application or "", viewer.name(user.user)) if part)
    return f"job {user.job} ({about})" if about else f"job {user.job}"


def pair_text(shared: SharedLoad, link: HotLink, viewer: Viewer) -> str:
    """Return a sentence about the two jobs with most bytes on the busiest link that several jobs load."""
    one, other = link.users[:2]
    seconds = units.text(link.load.seconds, units.SECONDS)
    more = len(link.users) - 2
    others = "" if more <= 0 else f" {more:,} more jobs use it." if more > 1 else " One more job uses it."
    first, second = (job_text(user, viewer) for user in (one, other))
    return (
        f"{link_text(shared.fabric, link.row)} needs {seconds} per period: {one.part:.0%} of its "
        f"bytes come from {first}, {other.part:.0%} from {second}."
        f"{others}"
    )


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

    With their bytes per period, and their share of the link's bytes (``part``, 0 to 1).
    """
    users = live.shared.links([row])[0].users
    seen = [user for user in users if viewer.sees(user.user)]
    rows = [(u.job, viewer.name(u.user), u.application or "", u.bytes, u.part) for u in seen]
    hidden = [user for user in users if not viewer.sees(user.user)]
    if hidden:
        rows.append((OTHERS, "", "", sum(u.bytes for u in hidden), sum(u.part for u in hidden)))
    return pd.DataFrame(rows, columns=["job", "user", "application", "bytes", "part"])


def jobs_on_hosts(live: Live, hosts: Ints, viewer: Viewer) -> pd.DataFrame:
    """Return the visible running jobs on these hosts, the job with most of the hosts first.

    Its ranks here are an empty text if its placement is not known.
    """
    names = {live.fabric.names[v] for v in hosts.tolist()}
    placed = {load.job: place for load, place in zip(live.shared.jobs, live.placements, strict=True)}
    rows = []
    for one in live.running.jobs:
        job = one.stored.job
        here = len(names.intersection(job.hosts))
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

    With their bytes per period, and their share of the job's bytes on the link (``part``, 0 to 1).
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
