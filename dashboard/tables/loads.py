"""The links that placements load, as one table for several of them: pure functions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from dashboard.tables.links import port_text
from registry.model import Fabric, Floats, Longs


def loaded_links(
    fabric: Fabric, seconds: Mapping[str, Floats], link_bytes: Floats, count: int | None
) -> tuple[Longs, pd.DataFrame]:
    """The links that any of several placements loads, those that need longest in any of them first.

    Parameters
    ----------
    seconds : mapping of str to float64[m]
        By placement the time that each link needs.
    link_bytes : float64[m]
        Loads of one of them, for the column ``load``.
    count : int or None
        At most so many rows.

    Returns
    -------
    int64[k], DataFrame
        Rows of ``fabric.links``; columns ``from``, ``from port``, ``to``, ``to port``, ``kind``, one for each
        placement (s), ``load`` (bytes) and ``capacity`` (bytes/s).
    """
    links = fabric.links
    worst = np.max(list(seconds.values()), axis=0)
    order = np.argsort(-worst, kind="stable")[:count]
    order = order[worst[order] > 0]
    network = fabric.network_link
    table = pd.DataFrame(
        {
            "from": [fabric.names[v] for v in links.source[order].tolist()],
            "from port": [port_text(fabric, row, "source") for row in order.tolist()],
            "to": [fabric.names[v] for v in links.target[order].tolist()],
            "to port": [port_text(fabric, row, "target") for row in order.tolist()],
            "kind": np.where(network[order], "network", "host cable"),
            **{name: values[order] for name, values in seconds.items()},
            "load": link_bytes[order],
            "capacity": links.capacity[order],
        }
    )
    return order, table
