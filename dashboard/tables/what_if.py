"""Effects of a change on running jobs as a table, and the changed fabric to draw. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from dashboard.state.viewer import Viewer
from dashboard.tables.links import with_removed
from mapping.traffic.what_if import WhatIf
from registry.model import Bools, Fabric, Floats, Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangedFabric:
    """A changed fabric together with the links that the change removed.

    Attributes
    ----------
    fabric : Fabric
        Fabric with the links after the change and the removed links; without forwarding tables.
    row_after : int64[m]
        Row of ``after.fabric.links`` of each link; -1 for a removed link.
    """

    fabric: Fabric
    row_after: Longs

    @property
    def gone(self) -> Bools:
        """bool[m]: links that the change removed."""
        found: Bools = self.row_after < 0
        return found

    def values(self, after: Floats) -> Floats:
        """Return float64[m]: the given values of links after the change; NaN for removed links."""
        found: Floats = np.append(after, np.nan)[self.row_after]
        return found


def changed_fabric(found: WhatIf) -> ChangedFabric:
    """Return the fabric after a change together with the removed links."""
    before, after = found.before.fabric.links, found.after.fabric.links
    gone = np.setdiff1d(np.arange(len(before)), found.row_before)
    links = with_removed(after, before, gone)
    rows = np.append(np.arange(len(after)), np.full(len(gone), -1)).astype(np.int64)
    order = links.order()
    fabric = replace(found.after.fabric, links=links.take(order), tables=None)
    return ChangedFabric(fabric=fabric, row_after=rows[order])


SLOWER = 1.01
"""Ratio of the times of a worst link above which it counts as slower."""


class Totals(NamedTuple):
    """Main numbers of a change, both sides by its routing rule.

    Attributes
    ----------
    before_seconds, after_seconds : float
        Time of the worst link of all jobs together.
    change : str
        Its relative change as text, such as ``+25.0 %, ``; empty if nothing was sent before.
    worse : bool
        True if the worst link takes longer than `SLOWER` allows.
    jobs, slower : int
        Number of jobs, and of those whose worst link is slower.
    largest : float
        Largest factor by which a job's worst link is slower.
    cut_pairs, cut_jobs : int
        Pairs of ranks that no path connects any more, and the number of their jobs.
    lost_ranks : int
        Ranks on drained hosts.
    """

    before_seconds: float
    after_seconds: float
    change: str
    worse: bool
    jobs: int
    slower: int
    largest: float
    cut_pairs: int
    cut_jobs: int
    lost_ranks: int


def totals(found: WhatIf) -> Totals:
    """Return the main numbers of a change."""
    before, after = (float(side.seconds.max(initial=0.0)) for side in (found.unchanged, found.after))
    factors = [one.after_seconds / one.unchanged_seconds for one in found.jobs if one.unchanged_seconds > 0]
    return Totals(
        before_seconds=before,
        after_seconds=after,
        change=f"{100 * (after / before - 1):+.1f} %, " if before > 0 else "",
        worse=after > SLOWER * before,
        jobs=len(found.jobs),
        slower=sum(factor > SLOWER for factor in factors),
        largest=max(factors, default=1.0),
        cut_pairs=sum(one.unreachable_pairs for one in found.jobs),
        cut_jobs=sum(one.unreachable_pairs > 0 for one in found.jobs),
        lost_ranks=sum(one.lost_ranks for one in found.jobs),
    )


def effects(found: WhatIf, viewer: Viewer) -> pd.DataFrame:
    """Return the visible jobs, those with unreachable pairs first, then by slowdown.

    Times of the worst link, s per iteration, both by the routing rule of the change: before and after it;
    ``times`` is after over before.
    """
    rows = [
        (
            one.job,
            viewer.name(one.user),
            load.application or "",
            one.unchanged_seconds,
            one.after_seconds,
            one.after_seconds / one.unchanged_seconds if one.unchanged_seconds > 0 else float("nan"),
            one.unreachable_pairs,
            one.unreachable_bytes,
            one.lost_ranks,
            ", ".join(one.lost_hosts),
        )
        for one, load in zip(found.jobs, found.before.jobs, strict=True)
        if viewer.sees(one.user)
    ]
    columns = ["job", "user", "application", "before", "after", "times", "unreachable pairs"]
    table = pd.DataFrame(rows, columns=[*columns, "unreachable bytes", "lost ranks", "lost hosts"])
    order = np.lexsort((-table["times"].fillna(0).to_numpy(float), -table["unreachable pairs"].to_numpy(int)))
    return table.iloc[order].reset_index(drop=True)


def seconds_more(found: WhatIf) -> Floats:
    """Return float64[links after]: time of each link less its time without the change, same routing rule.

    The time of an added cable without the change is 0.
    """
    unchanged = np.append(found.unchanged.seconds, 0.0)  # row -1 is an added cable
    return np.asarray(found.after.seconds - unchanged[found.row_before])
