"""Differences between two fabrics by devices and cables, and cables that vanished in a period."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from registry.errors import UnknownName
from registry.model import Fabric, format_guid
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.changes import Cable, Changes, Rename, compare, in_words, summary
from registry.store.snapshots import canonical
from registry.upkeep.clusters import delete_cluster
from tests.support.fat_tree import LEAF_GUID, at, fat_tree, tree_tables
from tests.support.inputs import fabric_of, read

PORT = re.compile(r'< \[(\d+)]\t"[SH]-([0-9a-f]{16})"\[(\d+)]')


def ends(changes: Changes) -> list[tuple[str, int, str, int]]:
    """Each cable that vanished, its ends in the order of their names."""
    gone = changes.cables_vanished
    cables = (((one.source, one.source_port), (one.target, one.target_port)) for one in gone)
    return sorted((*min(cable), *max(cable)) for cable in cables)


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


def test_a_renamed_switch_keeps_its_cables_and_a_host_is_known_by_its_adapters() -> None:
    swapped = {"node00": "node01", "node01": "node00"}
    for kind, renamed in (("switch", {"leaf0": "zz"}), ("host", {"node01": "login"}), ("host", swapped)):
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
    (one,) = shown.capacity_changed
    assert (one.before.capacity_back, one.after.capacity_back) == (0.0, 1.0)


@pytest.mark.parametrize("folder", ["fattree2-64-broken-link", "fattree2-64-dead-spine"])
def test_cables_pulled_from_a_real_scan_are_those_of_ibnetdiscover(folder: str) -> None:
    before, after = (
        fabric_of(IBNETDISCOVER, read(f"infiniband/{folder}/{name}"))
        for name in ("before.ibnetdiscover", "ibnetdiscover.txt")
    )
    shown = compare(before, after)
    assert shown.cables_appeared == ()
    assert {ends_by_guid(cable, before) for cable in shown.cables_vanished} == own_diff(folder)
    back = compare(after, before)
    assert back.cables_appeared == shown.cables_vanished


def ends_by_guid(cable: Cable, fabric: Fabric) -> frozenset[tuple[str, int]]:
    switch = {name: format_guid(int(guid)) for name, guid in zip(fabric.names, fabric.guid, strict=True)}
    near, far = cable.source_guid or switch[cable.source], cable.target_guid or switch[cable.target]
    return frozenset({(near, cable.source_port), (far, cable.target_port)})


def own_diff(folder: str) -> set[frozenset[tuple[str, int]]]:
    """Ends of the cables that ``ibnetdiscover --diff`` itself reports as gone."""
    gone, here = set(), ""
    for line in read(f"infiniband/{folder}/ibnetdiscover.diff").decode().splitlines():
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


Ends = tuple[tuple[str, int], ...]


def save(registry: Registry, *scans: Fabric) -> None:
    for number, fabric in enumerate(scans):
        registry.save(Intake(cluster="toy", observed_at=at(10 * number), fabric=fabric))


def vanished(registry: Registry, start: float, until: float | None = None) -> dict[Ends, int]:
    end = None if until is None else at(until)
    return {
        tuple(sorted([(one.source, one.source_port), (one.target, one.target_port)])): one.times
        for one in registry.fabrics.losses(registry.fabrics.read("toy", end), at(start), end).interruptions
    }


def cables(fabric: Fabric) -> set[Ends]:
    names = ("source", "source_port", "target", "target_port")
    ends = zip(*(getattr(fabric.links, name).tolist() for name in names), strict=True)
    return {tuple(sorted([(fabric.names[a], p), (fabric.names[b], q)])) for a, p, b, q in ends}


FLAPPING = ("leaf0", 3), ("spine0", 1)


def test_a_cable_that_comes_and_goes_is_counted_and_a_slower_one_is_not(registry: Registry) -> None:
    whole, without, slow = fat_tree(), fat_tree(without=(0,)), fat_tree(slow=(0, 1))
    save(registry, whole, without, whole, without, slow, whole, without)
    assert vanished(registry, 0) == {FLAPPING: 3}
    assert vanished(registry, 10) == {FLAPPING: 2}
    assert vanished(registry, 0, 30) == {FLAPPING: 2}
    assert vanished(registry, 60) == {}


def test_the_counts_are_those_of_a_walk_through_the_scans(registry: Registry) -> None:
    draw = np.random.default_rng(1)
    gone = [tuple(np.flatnonzero(draw.random(12) < 0.4).tolist()) for _ in range(8)]
    scans = [fat_tree(rails=2, without=without) for without in gone]
    save(registry, *scans)
    for start, until in ((0, 70), (20, 50), (35, 70)):
        counts: Counter[Ends] = Counter()
        for number in range(1, len(scans)):
            if start < 10 * number <= until:
                counts.update(cables(scans[number - 1]) - cables(scans[number]))
        assert vanished(registry, start, until) == dict(counts)


def missing(registry: Registry, minute: float | None = None) -> list[tuple[str, str, int, float]]:
    """What is missing at a time: its kind, devices and cables, and the minute since when."""
    time = None if minute is None else at(minute)
    losses = registry.fabrics.losses(registry.fabrics.read("toy", time), at(0), time)
    scans = [one for one in registry.fabrics.observations("toy") if time is None or one.at <= time]
    assert losses.observation == scans[-1].id
    return [
        (one.kind, " ".join(one.devices), one.cables, (one.since - at(0)).total_seconds() / 60)
        for one in losses.vanished
    ]


SPINE1 = ("switch", "spine1", 2, 10.0)


def test_what_vanished_is_missing_until_it_is_back(registry: Registry) -> None:
    whole, pulled = fat_tree(), ("cable", "leaf0 spine0", 1, 30.0)
    save(registry, whole, fat_tree(spines=1), fat_tree(spines=1, slow=(0,)), fat_tree(without=(0,)), whole)
    found = [missing(registry, 10 * number) for number in range(5)]
    assert found == [[], [SPINE1], [SPINE1], [pulled], []]
    assert missing(registry) == []


def test_a_leaf_is_missing_with_its_cables_and_hosts(registry: Registry) -> None:
    save(registry, fat_tree(), fat_tree(leaves=1))
    leaf = ("switch", "leaf1", 4, 10.0)
    assert missing(registry) == [leaf, ("host", "node02", 1, 10.0), ("host", "node03", 1, 10.0)]


def test_what_was_renamed_replaced_or_moved_is_not_missing(registry: Registry) -> None:
    whole = fat_tree()
    other = replace(whole, guid=np.where(whole.guid == LEAF_GUID, LEAF_GUID + 99, whole.guid))
    ports = whole.links.source_port.copy(), whole.links.target_port.copy()
    for column in ports:
        column[column == 4] = 40  # leaves' cables to the second spine
    moved = replace(whole, links=replace(whole.links, source_port=ports[0], target_port=ports[1]))
    renamed = fat_tree(renamed={"leaf0": "zz", "node01": "login"})
    for scan in (other, moved, renamed, fat_tree(slow=(0, 1))):
        save(registry, whole, scan)
        assert missing(registry) == []
        delete_cluster(registry.database, "toy")


def test_cables_without_ports_are_missing_by_their_number(registry: Registry) -> None:
    several, one = (np.repeat([0, 1], count) for count in (3, 1))
    scans = [Fabric.from_arcs(["a", "b"], each, 1 - each, 1e9) for each in (several, one)]
    save(registry, *scans)
    assert sum(cables for _, _, cables, _ in missing(registry)) == 2
    assert {(kind, name) for kind, name, _, _ in missing(registry)} == {("cable", "a b")}


def test_an_accepted_fabric_is_missed_no_more_but_later_losses_are(registry: Registry) -> None:
    save(registry, fat_tree(), fat_tree(spines=1))
    accepted = registry.fabrics.accept("toy")
    assert [one.devices for one in accepted] == [("spine1",)]
    assert missing(registry) == []
    assert registry.fabrics.accept("toy") == ()
    registry.save(Intake(cluster="toy", observed_at=at(20), fabric=fat_tree(spines=1, leaves=1)))
    assert [name for kind, name, _, _ in missing(registry) if kind == "switch"] == ["leaf1"]
    with pytest.raises(UnknownName):
        registry.fabrics.accept("other")


def test_the_last_change_is_of_the_wiring_and_ends_with_the_last_observation(registry: Registry) -> None:
    tables = [tree_tables(turn=turn) for turn in (0, 1)]
    save(registry, fat_tree())
    registry.save(Intake(cluster="toy", observed_at=at(5), tables=tables[0]))
    assert registry.fabrics.before_last_change("toy") == at(0)
    registry.save(Intake(cluster="toy", observed_at=at(10), fabric=fat_tree(without=(0,))))
    registry.save(Intake(cluster="toy", observed_at=at(15), tables=tables[1]))
    start = registry.fabrics.before_last_change("toy")
    changes = registry.fabrics.changes("toy", start)
    assert (changes.start, changes.end) == (at(5), at(15))
    assert (len(changes.cables_vanished), len(changes.switches_rerouted)) == (1, 2)
    registry.save(Intake(cluster="toy", observed_at=at(20), tables=tables[1]))
    assert registry.fabrics.before_last_change("toy") == at(5)
