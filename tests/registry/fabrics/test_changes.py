"""Differences between two fabrics by devices and cables."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.formats.fabrics import ibnetdiscover
from ingest.options import Options
from ingest.reading.source import SourceFile
from registry.fabrics.changes import Cable, Changes, Rename, compare, in_words, summary
from registry.fabrics.contents import canonical
from registry.model import Fabric, format_guid
from tests.support import paths
from tests.support.fat_tree import fat_tree

INFINIBAND = paths.DATA / "infiniband"
PORT = re.compile(r'< \[(\d+)]\t"[SH]-([0-9a-f]{16})"\[(\d+)]')


def ends(changes: Changes) -> list[tuple[str, int, str, int]]:
    """Each cable that vanished, its ends in the order of their names."""
    found = []
    for cable in changes.cables_vanished:
        near, far = sorted([(cable.source, cable.source_port), (cable.target, cable.target_port)])
        found.append((*near, *far))
    return sorted(found)


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), rails=st.integers(1, 3), cables=st.integers(1, 3))
def test_the_same_wiring_has_no_changes(seed: int, rails: int, cables: int) -> None:
    shown = compare(fat_tree(rails=rails, cables=cables), fat_tree(rails=rails, cables=cables, shuffle=seed))
    assert shown.empty


def test_a_pulled_cable_is_listed_with_its_ports_and_a_slower_one_with_its_capacity() -> None:
    shown = compare(fat_tree(cables=2), fat_tree(cables=2, without=(1,), shuffle=3))
    assert ends(shown) == [("leaf0", 4, "spine0", 2)]
    assert [cable.capacity for cable in shown.cables_vanished] == [50e9]
    assert shown == replace(Changes(), cables_vanished=shown.cables_vanished)
    plugged = compare(fat_tree(cables=2, without=(1,)), fat_tree(cables=2))
    assert plugged == replace(Changes(), cables_appeared=shown.cables_vanished)
    shown = compare(fat_tree(), fat_tree(slow=(0,)))
    assert [(one.before.capacity, one.after.capacity) for one in shown.capacity_changed] == [(50e9, 25e9)]
    assert (shown.cables_appeared, shown.cables_vanished) == ((), ())


@pytest.mark.parametrize(
    ("kind", "renamed"),
    [
        ("switch", {"leaf0": "zz"}),
        ("host", {"node01": "login"}),
        ("host", {"node00": "node01", "node01": "node00"}),
    ],
)
def test_a_renamed_switch_keeps_its_cables_and_a_host_is_known_by_its_adapters(
    kind: str, renamed: dict[str, str]
) -> None:
    shown = compare(fat_tree(rails=2), fat_tree(rails=2, renamed=renamed))
    renames = tuple(Rename(kind=kind, old=old, new=new) for old, new in renamed.items())
    assert shown == replace(Changes(), renamed=renames)


def test_a_host_with_a_new_adapter_stays_the_same_host() -> None:
    fabric = canonical(fat_tree())
    adapters = fabric.adapters
    swapped = replace(fabric, adapters=replace(adapters, guid=adapters.guid + np.uint64(0x100000)))
    shown = compare(fabric, swapped)
    assert (shown.hosts_appeared, shown.hosts_vanished, shown.renamed) == ((), (), ())
    assert len(shown.cables_appeared) == len(shown.cables_vanished) == 4


def test_an_adapter_that_moved_does_not_take_its_hosts_name_along() -> None:
    fabric = canonical(fat_tree(hosts=1, rails=2))
    host = fabric.adapters.host.copy()
    host[2] = host[0]
    shown = compare(fabric, replace(fabric, adapters=replace(fabric.adapters, host=host)))
    assert shown.renamed == ()


def test_hosts_and_switches_that_came_and_went() -> None:
    shown = compare(fat_tree(leaves=2), fat_tree(leaves=3))
    assert (shown.switches_appeared, shown.hosts_appeared) == (("leaf2",), ("node04", "node05"))
    assert len(shown.cables_appeared) == 4
    back = compare(fat_tree(leaves=3), fat_tree(leaves=2))
    assert (back.switches_vanished, back.hosts_vanished) == (("leaf2",), ("node04", "node05"))
    fabric = canonical(fat_tree())
    guid = fabric.guid.copy()
    guid[fabric.names.index("leaf0")] += np.uint64(99)
    other = compare(fabric, replace(fabric, guid=guid))  # another switch of the same name
    assert (other.switches_vanished, other.switches_appeared) == (("leaf0",), ("leaf0",))


def test_cables_without_ports_are_counted() -> None:
    def bundle(count: int, capacity: float = 1.0) -> Fabric:
        ends = [0] * count + [1] * count
        return Fabric.from_arcs(list("ab"), ends, [1 - end for end in ends], capacity)

    more = compare(bundle(2), bundle(5))
    assert [(cable.cables, cable.capacity) for cable in more.cables_appeared] == [(3, 3.0)]
    assert more.capacity_changed == ()
    fewer = compare(bundle(5), bundle(1, 2.0))
    assert [cable.cables for cable in fewer.cables_vanished] == [4]
    assert [(one.before.capacity, one.after.capacity) for one in fewer.capacity_changed] == [(5.0, 2.0)]


def test_a_link_of_one_direction_is_a_cable() -> None:
    one_way = Fabric.from_arcs(list("ab"), [0], [1], 1.0)
    shown = compare(one_way, Fabric.from_arcs(list("ab"), [0, 1], [1, 0], 1.0))
    assert shown.cables_appeared == ()
    assert [(one.before.capacity_back, one.after.capacity_back) for one in shown.capacity_changed] == [
        (0.0, 1.0)
    ]


@pytest.mark.parametrize("folder", ["fattree2-64-broken-link", "fattree2-64-dead-spine"])
def test_cables_pulled_from_a_real_scan_are_those_of_ibnetdiscover(folder: str) -> None:
    before, after = (
        scan(INFINIBAND / folder / name) for name in ("before.ibnetdiscover", "ibnetdiscover.txt")
    )
    shown = compare(before, after)
    assert shown.cables_appeared == ()
    assert {ends_by_guid(cable, before) for cable in shown.cables_vanished} == own_diff(folder)
    back = compare(after, before)
    assert back.cables_appeared == shown.cables_vanished


def scan(path: Path) -> Fabric:
    moment = datetime(2025, 1, 1, tzinfo=UTC)
    source = SourceFile(path=str(path), data=path.read_bytes(), modified_at=moment)
    fabric = ibnetdiscover.parse([source], Options()).fabric
    assert fabric is not None
    return fabric


def ends_by_guid(cable: Cable, fabric: Fabric) -> frozenset[tuple[str, int]]:
    switch = {name: format_guid(int(guid)) for name, guid in zip(fabric.names, fabric.guid, strict=True)}
    near, far = cable.source_guid or switch[cable.source], cable.target_guid or switch[cable.target]
    return frozenset({(near, cable.source_port), (far, cable.target_port)})


def own_diff(folder: str) -> set[frozenset[tuple[str, int]]]:
    """Ends of the cables that ``ibnetdiscover --diff`` itself reports as gone."""
    gone, here = set(), ""
    for line in (INFINIBAND / folder / "ibnetdiscover.diff").read_text().splitlines():
        if owner := re.search(r'^(?:< )?(?:Switch|Ca)\t\d+ "[SH]-([0-9a-f]{16})"', line):
            here = f"0x{owner[1]}"
        elif pulled := PORT.match(line):
            gone.add(frozenset({(here, int(pulled[1])), (f"0x{pulled[2]}", int(pulled[3]))}))
    return gone


def test_changes_are_described_and_counted() -> None:
    whole = canonical(fat_tree())
    cut = compare(whole, canonical(fat_tree(without=(0,))))
    assert in_words(cut) == ["cable leaf0:3 - spine0:1 vanished"]
    assert summary(cut) == "1 cable vanished"
    slower = compare(whole, canonical(fat_tree(slow=(1,))))
    assert in_words(slower) == ["cable leaf0:4 - spine1:1 now carries 25 GB/s, before 50 GB/s"]
    assert summary(slower) == "1 cable changed in speed"
    assert summary(compare(whole, whole)) == "nothing changed"
    assert summary(compare(fat_tree(cables=3), fat_tree(cables=3, without=(0, 1)))) == "2 cables vanished"
