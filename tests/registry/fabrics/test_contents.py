"""Contents: one hash for one wiring, and facts that contain all of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.database import codec
from registry.errors import DatabaseError
from registry.fabrics.contents import canonical, content_hash, pack_fabric, unpack_fabric
from registry.fabrics.facts import device_facts, device_keys, fabric_of, link_facts
from registry.model import LINK_COLUMNS, Fabric
from tests.support.fat_tree import at, fat_tree, tree_tables
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics


def wired_alike(one: Fabric, other: Fabric) -> bool:
    """Whether two canonical fabrics have the same of everything; compares field by field, not hashes."""
    plain = all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("names", "kind", "slots", "forwards", "guid", "lid")
    )
    links = all(np.array_equal(getattr(one.links, n), getattr(other.links, n)) for n in LINK_COLUMNS)
    adapters = one.adapters.names == other.adapters.names and all(
        np.array_equal(getattr(one.adapters, name), getattr(other.adapters, name))
        for name in ("guid", "system_guid", "host", "port_adapter", "port_number", "port_guid", "port_lid")
    )
    return plain and links and adapters


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), rails=st.integers(1, 3), cables=st.integers(1, 2))
def test_the_order_in_a_file_changes_nothing(seed: int, rails: int, cables: int) -> None:
    shown = canonical(fat_tree(rails=rails, cables=cables))
    shuffled = canonical(fat_tree(rails=rails, cables=cables, shuffle=seed))
    assert wired_alike(shown, shuffled)
    assert content_hash(shown) == content_hash(shuffled)


def test_each_part_of_the_wiring_changes_the_hash() -> None:
    plain = canonical(fat_tree())
    adapters = plain.adapters
    other_lids = replace(adapters, port_lid=adapters.port_lid + 1)
    variants = [
        plain,
        fat_tree(without=(0,)),
        fat_tree(slow=(0,)),
        fat_tree(renamed={"leaf0": "leafX"}),
        fat_tree(rails=2),
        replace(plain, lid=plain.lid + 1),
        replace(plain, slots=plain.slots * 2),
        replace(plain, forwards=np.ones(len(plain), bool)),
        replace(plain, level=np.zeros(len(plain), np.int32)),
        replace(plain, coordinates=np.zeros((len(plain), 3), np.int32)),
        replace(plain, adapters=other_lids),
    ]
    assert len({content_hash(canonical(fabric)) for fabric in variants}) == len(variants)


def test_time_and_tables_are_no_part_of_the_wiring() -> None:
    scan = replace(fat_tree(), observed_at=at(0), tables=tree_tables())
    assert content_hash(canonical(scan)) == content_hash(canonical(fat_tree()))


def test_parallel_cables_without_ports_are_ordered_by_capacity() -> None:
    one = Fabric.from_arcs(list("ab"), [0, 0, 1], [1, 1, 0], [1.0, 2.0, 3.0])
    other = Fabric.from_arcs(list("ab"), [1, 0, 0], [0, 1, 1], [3.0, 2.0, 1.0])
    assert content_hash(canonical(one)) == content_hash(canonical(other))


@settings(max_examples=60)
@given(fabric=adapter_fabrics() | plain_fabrics())
def test_bytes_and_facts_contain_the_whole_wiring(fabric: Fabric) -> None:
    wiring = canonical(fabric)
    assert wired_alike(unpack_fabric(pack_fabric(wiring)), wiring)
    assert wired_alike(fabric_of(device_facts(wiring).values(), link_facts(wiring)), wiring)


def test_facts_contain_levels_and_coordinates() -> None:
    plain = canonical(fat_tree())
    axes = np.arange(2 * len(plain), dtype=np.int32).reshape(-1, 2)
    wiring = replace(plain, level=np.arange(len(plain), dtype=np.int32), coordinates=axes)
    shown = fabric_of(device_facts(wiring).values(), link_facts(wiring))
    assert content_hash(shown) == content_hash(wiring)


def test_keys_of_links_and_devices_stay_when_capacities_and_names_change() -> None:
    fast, slow = (link_facts(canonical(fat_tree(slow=slow))) for slow in ((), (0,)))
    assert {(fact.source, fact.key) for fact in fast} == {(fact.source, fact.key) for fact in slow}
    assert set(fast) != set(slow)
    arcs = Fabric.from_arcs(list("ab"), [0, 0, 0, 1], [1, 1, 1, 0], [1.0, 1.0, 2.0, 3.0])
    assert len({(fact.source, fact.key) for fact in link_facts(canonical(arcs))}) == 4
    keys = [set(device_keys(fat_tree(renamed=names))) for names in ({}, {"leaf0": "top"})]
    assert keys[0] == keys[1]
    twins = replace(fat_tree(), guid=np.full(8, 7, np.uint64))  # known by their names
    assert len(set(device_keys(twins))) == len(twins)


def test_a_blob_of_something_else_is_refused() -> None:
    with pytest.raises(DatabaseError, match="stored fabric is damaged"):
        unpack_fabric(codec.pack({"names": ["a"]}))
    columns = codec.unpack(pack_fabric(canonical(fat_tree())))
    with pytest.raises(DatabaseError, match="stored fabric is damaged"):
        unpack_fabric(codec.pack({**columns, "link_source": columns["link_source"] + 100}))
