"""Equivalent distances against networkx's resistance distance and the published table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.distances.distances import distances
from mapping.routing.catalog import build_routes
from mapping.routing.routes import Routes
from mapping.selfcheck.oracles import resistance, shortest_path_route, table_route
from registry.model import Fabric
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics, table_fabrics


@pytest.mark.parametrize("name", ["equivalent", "equivalent+2"])
@pytest.mark.parametrize("routing", ["shortest-paths", "tables"])
@given(data=st.data())
def test_equivalent_distances_are_those_of_networkx(name: str, routing: str, data: st.DataObject) -> None:
    if routing == "tables":
        fabric = data.draw(table_fabrics())
    else:
        fabric = data.draw(st.one_of(adapter_fabrics(), plain_fabrics()))
    routes = build_routes(routing, fabric, fabric.hosts)
    find = {"shortest-paths": shortest_path_route, "tables": table_route}[routing]
    found = distances(name, routes).matrix()
    for i, j in itertools.permutations(range(len(fabric.hosts)), 2):
        source, target = int(fabric.hosts[i]), int(fabric.hosts[j])
        route = find(fabric, source, target)
        if route is None:
            assert found[i, j] == np.inf
            continue
        rows = sorted({row for row, part in route if part > 0})
        wanted = resistance(fabric, rows, source, target, own_cables=name == "equivalent+2")
        assert found[i, j] == pytest.approx(wanted, abs=1e-9)


AUTONET = "0-2 0-4 0-9 1-2 1-4 1-9 2-6 3-6 3-7 3-8 4-6 5-7 5-8 5-9 7-8"
"""Links of Figure 3's network: the only kind that gives Table 2 and Table 1 (found by search)."""
TABLE_2 = """
0 1 1 2 1 3 1 3 3 1
1 0 1 2 1 3 1 3 3 1
1 1 0 2 2 3 1 3 3 1
2 2 2 0 2 1 1 1 1 2
1 1 2 2 0 3 1 3 3 1
3 3 3 1 3 0 2 1 1 1
1 1 1 1 1 2 0 2 2 1.25
3 3 3 1 3 1 2 0 1 2
3 3 3 1 3 1 2 1 0 2
1 1 1 2 1 1 1.25 2 2 0
"""


def autonet(hosts_each: int) -> Fabric:
    """The 10 switches of Orduña et al. 2004, Figure 3, with hosts on each."""
    pairs = np.array([link.split("-") for link in AUTONET.split()], np.int64)
    switch = np.repeat(np.arange(10), hosts_each)
    host = 10 + np.arange(len(switch))
    a, b = np.r_[pairs[:, 0], switch], np.r_[pairs[:, 1], host]
    names = [f"N{s}" for s in range(10)] + [f"h{h}" for h in range(len(host))]
    slots = np.r_[np.zeros(10, int), np.ones(len(host), int)]
    return Fabric.from_arcs(names, np.r_[a, b], np.r_[b, a], 1.0, slots=slots, forwards=False)


def up_down(fabric: Fabric) -> Routes:
    return build_routes("up-down:root=N6", fabric, fabric.hosts)


def test_the_published_table_of_equivalent_distances() -> None:
    """Orduña et al. 2004, Table 2: up*/down* from root 6."""
    fabric = autonet(1)
    published = np.array([row.split() for row in TABLE_2.split("\n") if row], np.float64)
    found = distances("equivalent", up_down(fabric))
    np.testing.assert_allclose(found.matrix(), published, atol=1e-12)
    assert found.symmetric


def test_processors_are_two_further_than_their_switches_and_zero_within_a_host() -> None:
    """Orduña et al. 2004, section 4."""
    fabric = autonet(2)
    found = distances("equivalent+2", up_down(fabric))
    switches = distances("equivalent", up_down(autonet(1))).matrix()
    wanted = np.kron(switches, np.ones((2, 2))) + 2 - 2 * np.eye(20)
    np.testing.assert_allclose(found.matrix(), wanted, atol=1e-12)
    assert len(found.between) == 10
