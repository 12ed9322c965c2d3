"""What a change does to running jobs, as plain tables. Pure functions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dashboard.viewer import Viewer
from mapping.traffic.what_if import WhatIf
from registry.model import Floats


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
