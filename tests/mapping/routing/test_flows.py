"""What one pair puts on which links, as search kernels ask for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing import forwarding_tables, shortest_paths
from registry.model import Fabric
from tests.support.flow_checks import check_flows
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics, table_fabrics

RAILS = st.sampled_from(["all-connected", "same-rail"])


@given(fabric=st.one_of(adapter_fabrics(), plain_fabrics()), rails=RAILS)
def test_flows_on_shortest_paths_sum_to_the_loads(fabric: Fabric, rails: str) -> None:
    check_flows(shortest_paths.build(fabric, fabric.hosts, rails=rails))


@given(fabric=st.one_of(table_fabrics(), table_fabrics(broken=True)), rails=RAILS)
def test_flows_on_tables_sum_to_the_loads(fabric: Fabric, rails: str) -> None:
    check_flows(forwarding_tables.build(fabric, fabric.hosts, rails=rails))


@pytest.mark.parametrize("module", [forwarding_tables, shortest_paths])
@pytest.mark.parametrize("name", ["ndr-dgx-minhop", "irregular-16sw-updown"])
def test_flows_on_real_fabrics_sum_to_the_loads(module: object, name: str) -> None:
    fabric = infiniband(name)
    hosts = np.random.default_rng(2).choice(fabric.hosts, 8, replace=False)
    check_flows(module.build(fabric, hosts))  # type: ignore[attr-defined]
