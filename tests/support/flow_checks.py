"""Compare the flows of single pairs, as search kernels use them, with the exact loads of routes."""

from __future__ import annotations

import numpy as np

from mapping.routing.kernels.flows import new_scratch, pair_flows
from mapping.routing.routes import Routes
from registry.model import Floats


def loads_by_flows(routes: Routes, i: int, j: int) -> Floats | None:
    """Return the loads of one byte from `pair_flows`, or None if the hosts are not connected."""
    flows = routes.flows
    scratch = new_scratch(flows)
    links, shares = np.zeros(flows.max_entries, np.int32), np.zeros(flows.max_entries)
    for _ in range(2):  # the second call finds the scratch as the first left it
        count = pair_flows(flows, scratch, i, j, links, shares)
    if count < 0:
        return None
    assert len(set(links[:count].tolist())) == count
    loads = np.zeros(len(routes.fabric.links))
    loads[links[:count]] = shares[:count]
    return loads


def check_flows(routes: Routes) -> None:
    for i, j in np.ndindex(len(routes.hosts), len(routes.hosts)):
        loads = loads_by_flows(routes, i, j)
        if not np.isfinite(routes.distances[i, j]):
            assert loads is None
            continue
        assert loads is not None
        np.testing.assert_allclose(loads, routes.link_bytes([i], [j], [1.0]), atol=1e-12)
        np.testing.assert_allclose(loads.sum(), routes.distances[i, j])
