from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.tables.changes import FASTER, GONE, NEW, SLOWER, UNCHANGED, overlay
from registry.fabrics.changes import compare
from registry.model import Fabric
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import adapter_fabrics

Ends = tuple[str, str, int, int]


def ends(fabric: Fabric, row: int) -> Ends:
    links = fabric.links
    return (
        fabric.names[links.source[row]],
        fabric.names[links.target[row]],
        int(links.source_port[row]),
        int(links.target_port[row]),
    )


def counted(fabric: Fabric) -> Counter[Ends]:
    return Counter(ends(fabric, row) for row in range(len(fabric.links)))


@settings(deadline=None)
@given(adapter_fabrics(), st.integers(0, 5))
def test_every_link_of_both_states_is_there_once(fabric: Fabric, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kept = np.flatnonzero(rng.random(len(fabric.links)) < 0.7)
    other = replace(fabric, links=fabric.links.take(kept))
    for before, after, kind in ((fabric, other, GONE), (other, fabric, NEW)):
        found = overlay(before, after, compare(before, after))
        told = Counter(
            {
                k: Counter(ends(found.fabric, row) for row in np.flatnonzero(found.kind == k).tolist())
                for k in (UNCHANGED, kind)
            }
        )
        assert told[UNCHANGED] == counted(other)
        assert told[kind] == counted(fabric) - counted(other)
        assert found.differs == (len(kept) < len(fabric.links))


def test_a_change_of_speed_is_shown_by_its_sign() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    capacity = fabric.links.capacity.copy()
    capacity[3] *= 2
    capacity[9] /= 2
    after = replace(fabric, links=replace(fabric.links, capacity=capacity))
    found = overlay(fabric, after, compare(fabric, after))
    assert np.flatnonzero(found.kind == FASTER).tolist() == [3]
    assert np.flatnonzero(found.kind == SLOWER).tolist() == [9]


def test_a_renamed_switch_keeps_its_links_and_a_lost_host_is_still_drawn() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    switch, host = int(fabric.switches[0]), int(fabric.hosts[-1])
    names = [*fabric.names]
    names[switch] = "another name"
    links = fabric.links
    kept = np.flatnonzero((links.source != host) & (links.target != host))
    after = replace(fabric, names=tuple(names), links=links.take(kept))
    found = overlay(fabric, after, compare(fabric, after))
    assert "another name" in found.fabric.names
    assert fabric.names[switch] not in found.fabric.names
    gone = np.flatnonzero(found.kind == GONE)
    assert len(gone) == len(links) - len(kept)
    assert all(fabric.names[host] in ends(found.fabric, row)[:2] for row in gone.tolist())
