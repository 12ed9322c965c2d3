"""Layouts of hosts: joined to the fabric by their adapters, kept over time; and drawings of fabrics."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ingest.formats.hwloc_xml import read_layout
from registry.errors import DatabaseError, InvalidValue, UnknownName
from registry.model import Adapters, Fabric
from registry.model.hosts import HostLayout
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.layouts import match_hosts
from tests.support.busy_cluster import fill
from tests.support.full_cluster import same
from tests.support.inputs import file, read

T0 = datetime(2026, 3, 1, tzinfo=UTC)
LAYOUT = read_layout(file(read("hwloc/two_rails_v2.xml")))
PLAIN = read_layout(file(read("hwloc/four_cores.xml")))


def fabric(names: tuple[str, ...] = ("a", "b", "n0001"), *, guids: dict[str, int] | None = None) -> Fabric:
    """Hosts on one switch; adapters with these GUIDs where they are given."""
    ends, switch = np.arange(len(names)), np.full(len(names), len(names))
    arcs = np.r_[ends, switch], np.r_[switch, ends]
    made = Fabric.from_arcs([*names, "switch"], *arcs, 1e9, slots=[4] * len(names) + [0])
    owners, guid = sorted(guids or {}), np.array([one for _, one in sorted((guids or {}).items())], np.uint64)
    host = np.array([names.index(name) for name in owners], np.int32)
    adapters = Adapters(names=tuple(owners), guid=guid, system_guid=np.zeros_like(guid), host=host)
    return replace(made, adapters=adapters)


def named(name: str, layout: HostLayout = PLAIN) -> HostLayout:
    return replace(layout, name=name)


def test_a_layout_belongs_to_the_host_of_its_guid_or_else_of_its_name() -> None:
    by_guid = fabric(guids={"b": 0x0C42A10300123500})
    matched = match_hosts([LAYOUT, named("a.site.example")], by_guid)
    assert list(matched.known) == ["b", "a"]
    assert matched.warnings == ("the layout named n0001 has adapters of host b: taken as b's",)
    assert match_hosts([LAYOUT], fabric()) == ({"n0001": LAYOUT}, (), ())
    (doubt,) = match_hosts([named("a.x.org")], fabric(("a.y.org", "b"))).warnings
    assert doubt.startswith("a.x.org is taken as a.y.org, though the domains differ")
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


def test_each_host_has_the_layout_of_a_time_whatever_the_order_of_saving(registry: Registry) -> None:
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


def test_a_saved_drawing_is_read_back_and_stays(registry: Registry) -> None:
    fill(registry)
    snapshot = registry.fabrics.read("toy")
    n = len(snapshot.fabric)
    x, y, tier = np.linspace(0, 1, n), np.arange(n) / 3, np.arange(n)
    assert registry.drawings.read(snapshot.id, "free-1") is None
    registry.drawings.save(snapshot.id, "free-1", x, y, tier)
    registry.drawings.save(snapshot.id, "free-1", y, x, tier)
    found = registry.drawings.read(snapshot.id, "free-1")
    assert found is not None
    assert np.array_equal(np.array([found.x, found.y, found.tier]), np.array([x, y, tier]))
    assert registry.drawings.read(snapshot.id, "free-2") is None
    joined = "MATCH (d:Drawing)-[:OF]->(x:Content) RETURN d.rule, d.cluster, x.id"
    assert registry.database.query(joined)[1] == [("free-1", "toy", snapshot.id)]


def test_a_drawing_that_does_not_fit_is_refused_and_a_damaged_one_an_error(registry: Registry) -> None:
    fill(registry)
    snapshot = registry.fabrics.read("toy")
    zeros = np.zeros(n := len(snapshot.fabric))
    with pytest.raises(UnknownName, match="no snapshot 'toy/none'"):
        registry.drawings.save("toy/none", "free-1", zeros, zeros, zeros)
    with pytest.raises(InvalidValue, match=f"2 positions for {n} vertices"):
        registry.drawings.save(snapshot.id, "free-1", np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(InvalidValue, match="y: has 1 entries"):
        registry.drawings.save(snapshot.id, "free-1", zeros, np.zeros(1), zeros)
    with pytest.raises(InvalidValue, match="finite"):
        registry.drawings.save(snapshot.id, "free-1", np.full(n, np.nan), zeros, zeros)
    assert registry.drawings.read(snapshot.id, "free-1") is None
    registry.drawings.save(snapshot.id, "free-1", zeros, zeros, zeros)
    registry.database.write(lambda tx: tx.run("MATCH (d:Drawing) SET d.blob = $blob", blob=b"no blob"))
    with pytest.raises(DatabaseError, match="damaged"):
        registry.drawings.read(snapshot.id, "free-1")
