"""Distances in a byte each say what distances in eight say."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mapping.distances.distances import LINKS, SWITCHES, Distances, WholeDistances, distances
from mapping.routing.catalog import build_routes
from mapping.routing.routes import Routes
from registry.model import Fabric
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics, table_fabrics


def plain(name: str, routes: Routes) -> Distances:
    group, between = routes.grouped_hops()
    return Distances(name=name, group=group, between=np.maximum(between - (name == SWITCHES), 0.0))


@given(
    fabric=st.one_of(plain_fabrics(), adapter_fabrics(), table_fabrics()),
    name=st.sampled_from([LINKS, SWITCHES]),
)
def test_bytes_say_what_means_say(fabric: Fabric, name: str) -> None:
    routes = build_routes("shortest-paths" if fabric.tables is None else "tables", fabric, fabric.hosts)
    found, expected = distances(name, routes), plain(name, routes)
    assert found.name == name
    assert found.groups == expected.groups
    assert found.symmetric == expected.symmetric
    hosts = np.arange(len(fabric.hosts))
    np.testing.assert_array_equal(found.of(hosts[:, None], hosts), expected.of(hosts[:, None], hosts))
    np.testing.assert_array_equal(found.between, expected.between)
    np.testing.assert_array_equal(found.matrix(), expected.matrix())


def test_hosts_of_one_port_have_distances_of_a_byte_that_survive_pickling() -> None:
    at = np.arange(6)
    ring = Fabric.from_arcs(map(str, at), np.r_[at, (at + 1) % 6], np.r_[(at + 1) % 6, at], 1.0)
    found = distances(SWITCHES, build_routes("shortest-paths", ring, at))
    assert isinstance(found, WholeDistances)
    again = pickle.loads(pickle.dumps(found))
    assert again.of(0, at).tolist() == [0, 0, 1, 2, 1, 0]
    codes, value = again.codes
    np.testing.assert_array_equal(value[codes], again.between)


def test_routings_whose_ways_have_mean_lengths_give_no_bytes() -> None:
    at = np.arange(6)
    ring = Fabric.from_arcs(map(str, at), np.r_[at, (at + 1) % 6], np.r_[(at + 1) % 6, at], 1.0)
    assert build_routes("valiant", ring, at).grouped_links() is None
