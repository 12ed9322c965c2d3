"""What one pair puts on which links, as search kernels ask for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.kernels.flows import new_scratch, pair_flows
from mapping.routing import forwarding_tables, shortest_paths
from mapping.routing.routes import Routes
from registry.model import Fabric, Floats
from tests.infiniband_data import infiniband
from tests.small_fabrics import adapter_fabrics, plain_fabrics, table_fabrics

RAILS = st.sampled_from(["all-connected", "same-rail"])


def loads_by_flows(routes: Routes, i: int, j: int) -> Floats | None:
    """Loads of one byte, from `pair_flows`; None where the hosts are not connected."""
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


def check(routes: Routes) -> None:
    for i, j in np.ndindex(len(routes.hosts), len(routes.hosts)):
        loads = loads_by_flows(routes, i, j)
        if not np.isfinite(routes.distances[i, j]):
            assert loads is None
            continue
        assert loads is not None
        np.testing.assert_allclose(loads, routes.link_bytes([i], [j], [1.0]), atol=1e-12)
        np.testing.assert_allclose(loads.sum(), routes.distances[i, j])


@given(fabric=st.one_of(adapter_fabrics(), plain_fabrics()), rails=RAILS)
def test_flows_on_shortest_paths_sum_to_the_loads(fabric: Fabric, rails: str) -> None:
    check(shortest_paths.build(fabric, fabric.hosts, rails=rails))


@given(fabric=st.one_of(table_fabrics(), table_fabrics(broken=True)), rails=RAILS)
def test_flows_on_tables_sum_to_the_loads(fabric: Fabric, rails: str) -> None:
    check(forwarding_tables.build(fabric, fabric.hosts, rails=rails))


@pytest.mark.parametrize("module", [forwarding_tables, shortest_paths])
@pytest.mark.parametrize("name", ["ndr-dgx-minhop", "irregular-16sw-updown"])
def test_flows_on_real_fabrics_sum_to_the_loads(module: object, name: str) -> None:
    fabric = infiniband(name)
    hosts = np.random.default_rng(2).choice(fabric.hosts, 8, replace=False)
    check(module.build(fabric, hosts))  # type: ignore[attr-defined]
