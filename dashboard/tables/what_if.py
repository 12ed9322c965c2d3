"""What a change does to running jobs, as plain tables, and the changed fabric to draw. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dashboard.state.viewer import Viewer
from mapping.traffic.what_if import WhatIf
from registry.model import Bools, Fabric, Floats, Links, Longs
from registry.model.links import LINK_COLUMNS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Whole:
    """A changed fabric together with the links that the change took away.

    Attributes
    ----------
    fabric : Fabric
        Links that are there after the change, and those that are gone; without tables.
    row_after : int64[m]
        Row of ``after.fabric.links`` of each; -1 for one that is gone.
    """

    fabric: Fabric
    row_after: Longs

    @property
    def gone(self) -> Bools:
        """bool[m]: links that the change took away."""
        found: Bools = self.row_after < 0
        return found

    def values(self, after: Floats) -> Floats:
        """float64[m]: what is known of each link after the change; NaN for those that are gone."""
        found: Floats = np.append(after, np.nan)[self.row_after]
        return found


def whole(found: WhatIf) -> Whole:
    """The fabric after a change, and what is gone at the place where it was."""
    before, after = found.before.fabric.links, found.after.fabric.links
    gone = np.setdiff1d(np.arange(len(before)), found.row_before)
    columns = {
        name: np.concatenate((getattr(after, name), getattr(before, name)[gone])) for name in LINK_COLUMNS
    }
    links = Links(**columns)
    rows = np.append(np.arange(len(after)), np.full(len(gone), -1)).astype(np.int64)
    order = links.order()
    fabric = replace(found.after.fabric, links=links.take(order), tables=None)
    return Whole(fabric=fabric, row_after=rows[order])


def effects(found: WhatIf, viewer: Viewer) -> pd.DataFrame:
    """The jobs that may be seen, those that lose ways first, then those that slow down most.

    Returns
    -------
    DataFrame
        Columns ``job``, ``user``, ``application``, ``before``, ``unchanged`` (the fabric as it is, by the
        rule for afterwards) and ``after`` (s a period, its worst link), ``times`` (after over unchanged),
        ``unreachable pairs``, ``unreachable bytes``, ``lost ranks`` and ``lost hosts``.
    """
    rows = [
        (
            one.job,
            viewer.name(one.user),
            load.application or "",
            one.before_seconds,
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
    columns = ["job", "user", "application", "before", "unchanged", "after", "times", "unreachable pairs"]
    table = pd.DataFrame(rows, columns=[*columns, "unreachable bytes", "lost ranks", "lost hosts"])
    order = np.lexsort((-table["times"].fillna(0).to_numpy(float), -table["unreachable pairs"].to_numpy(int)))
    return table.iloc[order].reset_index(drop=True)


def seconds_more(found: WhatIf) -> Floats:
    """float64[links after]: seconds that each link needs more than unchanged, by the same rule of routing.

    An added cable had none.
    """
    unchanged = np.append(found.unchanged.seconds, 0.0)  # -1 is an added cable
    return np.asarray(found.after.seconds - unchanged[found.row_before])
