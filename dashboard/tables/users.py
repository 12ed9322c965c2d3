"""Tables of the jobs on a link or below a device, and of the rank pairs on a link. Pure functions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dashboard.state.viewer import OTHERS, Viewer
from mapping.service.live import Live
from mapping.traffic.job_loads import RankPairs
from registry.model import Fabric, Ints, Placement


def users_of_link(live: Live, row: int, viewer: Viewer) -> pd.DataFrame:
    """Return the jobs that load a link, largest share first; jobs that the viewer may not see are one row.

    Returns
    -------
    DataFrame
        Columns ``job``, ``user``, ``application``, ``bytes`` (per period) and ``part`` (share of the
        link's bytes, 0 to 1).
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

    Returns
    -------
    DataFrame
        Columns ``job``, ``user``, ``application``, ``hosts here``, ``of its hosts`` (all hosts of
        the job) and ``ranks here`` (empty if the placement is not known).
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

    Returns
    -------
    DataFrame
        Columns ``from rank``, ``on``, ``to rank``, ``on host``, ``bytes`` (per period) and
        ``part`` (share of the job's bytes on the link, 0 to 1).
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
