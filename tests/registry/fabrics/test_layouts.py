"""Layouts of hosts: joined to the fabric by their adapters, kept over time, used where ranks are placed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ingest.formats.hosts.hwloc_xml import read_layout
from registry.errors import InvalidValue, UnknownName
from registry.fabrics.layouts import match_hosts
from registry.model import Adapters, Fabric
from registry.model.host_layout import HostLayout
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.inputs import file, read

T0 = datetime(2026, 3, 1, tzinfo=UTC)
LAYOUT = read_layout(file(read("hwloc/two_rails_v2.xml")))
PLAIN = read_layout(file(read("hwloc/four_cores.xml")))


def fabric(names: tuple[str, ...] = ("a", "b", "n0001"), *, guids: dict[str, int] | None = None) -> Fabric:
    """Hosts on one switch; adapters with these GUIDs where they are given."""
    hosts = len(names)
    ends = np.arange(hosts)
    made = Fabric.from_arcs(
        [*names, "switch"],
        np.r_[ends, np.full(hosts, hosts)],
        np.r_[np.full(hosts, hosts), ends],
        1e9,
        slots=[4] * hosts + [0],
    )
    owned = [(names.index(name), guid) for name, guid in sorted((guids or {}).items())]
    adapters = Adapters(
        names=tuple(names[host] for host, _ in owned),
        guid=np.array([guid for _, guid in owned], np.uint64),
        system_guid=np.zeros(len(owned), np.uint64),
        host=np.array([host for host, _ in owned], np.int32),
    )
    return replace(made, adapters=adapters)


def named(name: str, layout: HostLayout = PLAIN) -> HostLayout:
    return replace(layout, name=name)


def same(one: HostLayout, two: HostLayout) -> bool:
    fields = ("core_domain", "core_cpu", "domain_node", "distance", "nic_fabric", "nic_guid", "nic_near")
    texts = ("nic_name", "name", "source")
    return all(np.array_equal(getattr(one, field), getattr(two, field)) for field in fields) and all(
        getattr(one, field) == getattr(two, field) for field in texts
    )


def test_a_layout_belongs_to_the_host_of_its_guid_or_else_of_its_name() -> None:
    by_guid = fabric(guids={"b": 0x0C42A10300123500})
    matched = match_hosts([LAYOUT, named("a.site.example")], by_guid)
    assert list(matched.known) == ["b", "a"]
    assert matched.warnings == ("the layout named n0001 has adapters of host b: taken as b's",)
    assert match_hosts([LAYOUT], fabric()) == ({"n0001": LAYOUT}, (), ())
    matched = match_hosts([named(""), named("n0002"), named("a")], fabric())
    assert list(matched.known) == ["a"]
    nameless, unknown = map(str, matched.unknown)
    assert nameless.startswith("a layout has no host name, and its adapters (")
    assert unknown.startswith("there is no host 'n0002'; closest: n0001")
    both = fabric(guids={"a": 0x0C42A10300123400, "b": 0x0C42A10300123500})
    with pytest.raises(InvalidValue, match="in a and b, not in one host"):
        match_hosts([LAYOUT], both)
    with pytest.raises(InvalidValue, match="two layouts of host a"):
        match_hosts([named("a"), named("a.site")], fabric())


def test_a_layout_is_kept_as_it_was_and_the_same_again_adds_nothing(registry: Registry) -> None:
    intake = Intake(cluster="c", observed_at=T0, fabric=fabric(), layouts=(LAYOUT, named("a")))
    receipt = registry.save(intake)
    assert receipt.new("layouts") == 2
    first, second = registry.layouts.list("c")
    assert (first.host, second.host, first.at) == ("a", "n0001", T0)
    assert same(second.layout, LAYOUT)
    assert registry.save(intake).new("layouts") == 0
    later = replace(intake, fabric=None, observed_at=T0 + timedelta(days=1))
    assert registry.save(later).new("layouts") == 0
    assert registry.layouts.list("c", T0 - timedelta(days=1)) == ()
    assert registry.layouts.list("nobody") == ()


def test_each_host_has_the_layout_that_held_at_a_time_whatever_the_order_of_saving(
    registry: Registry,
) -> None:
    days = [T0 + timedelta(days=day) for day in range(3)]
    swapped = replace(LAYOUT, source="hwloc 3.0")
    registry.save(Intake(cluster="c", observed_at=days[2], fabric=fabric(), layouts=(swapped,)))
    registry.save(Intake(cluster="c", observed_at=days[0], layouts=(LAYOUT, named("b"))))
    for day, source in ((days[0], LAYOUT.source), (days[1], LAYOUT.source), (days[2], "hwloc 3.0")):
        found = {one.host: one.layout.source for one in registry.layouts.list("c", day)}
        assert found == {"n0001": source, "b": PLAIN.source}


def test_a_layout_without_its_host_saves_nothing(registry: Registry) -> None:
    with pytest.raises(UnknownName):
        registry.save(Intake(cluster="c", observed_at=T0, fabric=fabric(), layouts=(named("nobody"),)))
    assert registry.fabrics.clusters() == ()
