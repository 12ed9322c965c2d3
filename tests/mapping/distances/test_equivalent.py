"""Equivalent distances against networkx's resistance distance and the published table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.papers.mapping.autonet import TABLE_2
from ingest.generate.irregular import autonet
from mapping.distances.distances import Distances, distances
from mapping.routing.catalog import build_routes
from mapping.selfcheck.oracles import resistance, shortest_path_route, table_route
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics, table_fabrics


@pytest.mark.parametrize("routing", ["shortest-paths", "tables"])
@given(data=st.data())
def test_equivalent_distances_are_those_of_networkx(routing: str, data: st.DataObject) -> None:
    tables = routing == "tables"
    fabric = data.draw(table_fabrics() if tables else st.one_of(adapter_fabrics(), plain_fabrics()))
    routes, find = build_routes(routing, fabric, fabric.hosts), table_route if tables else shortest_path_route
    found = {name: distances(name, routes).matrix() for name in ("equivalent", "equivalent+2")}
    for i, j in itertools.permutations(range(len(fabric.hosts)), 2):
        source, target = int(fabric.hosts[i]), int(fabric.hosts[j])
        route = find(fabric, source, target)
        rows = sorted({row for row, part in route or [] if part > 0})
        for name, matrix in found.items():
            if route is None:
                assert matrix[i, j] == np.inf
            else:
                wanted = resistance(fabric, rows, source, target, own_cables=name == "equivalent+2")
                assert matrix[i, j] == pytest.approx(wanted, abs=1e-9)


def by_up_down(name: str, hosts_each: int) -> Distances:
    """The 10 switches of Orduña et al. 2004, Figure 3, with hosts on each; up*/down* from root 6."""
    fabric = autonet(hosts=hosts_each)
    return distances(name, build_routes("up-down:root=switch6", fabric, fabric.hosts))


def test_the_published_table_of_equivalent_distances() -> None:
    """Orduña et al. 2004, Table 2."""
    found = by_up_down("equivalent", 1)
    np.testing.assert_allclose(found.matrix(), TABLE_2, atol=1e-12)
    assert found.symmetric


def test_processors_are_two_further_than_their_switches_and_zero_within_a_host() -> None:
    """Orduña et al. 2004, section 4."""
    found = by_up_down("equivalent+2", 2)
    wanted = np.kron(np.array(TABLE_2), np.ones((2, 2))) + 2 - 2 * np.eye(20)
    np.testing.assert_allclose(found.matrix(), wanted, atol=1e-12)
    assert len(found.between) == 10
