"""Names of links and devices, what changes would do, which pairs load a link, and how scattered jobs are."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.routing.catalog import build_routes
from mapping.selfcheck import oracles
from mapping.traffic import names as device_names
from mapping.traffic.job_loads import JobTraffic, Loader, Neighbours, rank_pairs
from mapping.traffic.names import (
    find_device,
    find_link,
    find_links,
    full_link,
    link_text,
    reverse_rows,
    short_link,
    short_name,
    short_names,
    short_port,
)
from mapping.traffic.what_if import Change, applied, same_rule, what_if
from registry.errors import AlmanacError, DisconnectedAllocation, InvalidValue, UnknownName
from registry.model import Adapters, Allocation, Fabric, Links, Placement, Profile
from tests.support import small_fabrics
from tests.support.small_fabrics import adapter_fabrics, any_fabrics, profiles, table_fabrics
from tests.support.sure import sure
from tests.support.traffic_jobs import job_between, running_jobs, shared_load, two_leaves


def adapters(**guids: int) -> Adapters:
    none = np.zeros(len(guids), np.int32)
    guid = np.array(list(guids.values()), np.uint64)
    names = tuple(name.replace("__", " ") for name in guids)
    return Adapters(names=names, guid=guid, system_guid=none.astype(np.uint64), host=none)


@given(adapter_fabrics())
def test_what_a_link_is_called_leads_back_to_it_and_its_ends_to_the_other_direction(fabric: Fabric) -> None:
    links = fabric.links
    for row in range(len(links)):
        assert find_link(fabric, link_text(fabric, row)) == row
        (back,) = reverse_rows(fabric, np.array([row])).tolist()
        assert (links.source[back], links.source_port[back]) == (links.target[row], links.target_port[row])
        assert (links.target[back], links.target_port[back]) == (links.source[row], links.source_port[row])
        assert reverse_rows(fabric, np.array([back])).tolist() == [row]


def test_names_may_hold_colons_and_switches_go_by_guid() -> None:
    fabric = replace(two_leaves(), names=("a0", "a1", "b0", "b1", "MF0;A:MQM/U1", "MF0;B:MQM/U1"))
    row = find_link(fabric, "MF0;A:MQM/U1:10")
    assert link_text(fabric, row) == "MF0;A:MQM/U1:10"
    assert find_link(fabric, "0xa0:10") == row
    assert find_links(fabric, "MF0;A:MQM/U1:MF0;B:MQM/U1").tolist() == [row, row + 1]
    assert find_device(fabric, "0xB0", kind="switch") == (5, -1)
    assert [device_names.is_switch(fabric, name) for name in ("MF0;A:MQM/U1", "a0", "")] == [
        True,
        False,
        False,
    ]


def test_hosts_go_by_an_adapters_description_or_guid() -> None:
    fabric = two_leaves()
    links = fabric.links
    adapter = np.where(links.source == 0, 0, -1)
    fabric = replace(
        fabric,
        adapters=adapters(a0__mlx5_0=0xC0FFEE),
        links=replace(links, source_adapter=adapter, target_adapter=np.where(links.target == 0, 0, -1)),
    )
    row = find_link(fabric, "a0:1")
    assert find_link(fabric, "a0 mlx5_0:1") == find_link(fabric, "0xc0ffee:1") == row
    assert find_device(fabric, "0xc0ffee", kind="host") == find_device(fabric, "a0 mlx5_0") == (0, 0)


def test_one_of_two_adapters_with_that_port_must_be_named() -> None:
    fabric, number = replace(small_fabrics.cabled("0-1 0-1", 1), names=("h", "s")), np.array([0, 1, 0, 1])
    links = fabric.links
    fabric = replace(
        fabric,
        adapters=adapters(h__one=1, h__two=2),
        links=replace(
            links,
            source_port=np.where(links.source == 0, 1, 7 + number),
            target_port=np.where(links.target == 0, 1, 7 + number),
            source_adapter=np.where(links.source == 0, number, -1),
            target_adapter=np.where(links.target == 0, number, -1),
        ),
    )
    with pytest.raises(InvalidValue, match="h one:1, h two:1"):
        find_link(fabric, "h:1")
    row = find_link(fabric, "h two:1")
    assert find_link(fabric, "0x2:1") == row
    assert link_text(fabric, row) == "h two:1"
    alike = replace(fabric, adapters=replace(fabric.adapters, names=("h", "h")))
    assert link_text(alike, row) == "h 0x0000000000000002:1"
    assert find_link(alike, "h 0x0000000000000002:1") == row


def test_links_of_a_fabric_without_ports_go_by_both_ends() -> None:
    fabric = Fabric.from_arcs(["a", "b", "c"], [0, 1, 1, 2, 0], [1, 0, 2, 1, 1], 1.0)
    assert find_link(fabric, "b:c") == 3
    assert short_link(fabric, 3) == full_link(fabric, 3) == "b → c"
    assert len(find_links(fabric, "a:b")) == 2
    with pytest.raises(InvalidValue, match="matches 2 links"):
        find_link(fabric, "a:b")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Aa:10", "closest devices: A"),
        ("A:99", "links at A: A:1, A:2, A:10, A:11"),
        ("A:b0", "links at A"),
        ("A", "DEVICE:PORT"),
        ("", "DEVICE:PORT"),
        (":", "DEVICE:PORT"),
        ("A:", "links at A"),
        ("A:10000000000000000000", "links at A"),
    ],
)
def test_a_link_that_does_not_exist_is_refused_with_what_does(text: str, remedy: str) -> None:
    with pytest.raises(UnknownName, match=remedy) as caught:
        find_link(two_leaves(), text)
    assert caught.value.kind == "link"


def test_a_switch_is_no_host_and_the_other_way_around() -> None:
    fabric = two_leaves()
    with pytest.raises(UnknownName, match="there is no switch 'a0'"):
        find_device(fabric, "a0", kind="switch")
    with pytest.raises(UnknownName, match="there is no host 'A'"):
        find_device(fabric, "A", kind="host")
    with pytest.raises(UnknownName, match="there is no host 'a7'; closest: a"):
        find_device(fabric, "a7", kind="host")
    with pytest.raises(UnknownName):
        find_device(fabric, "0xnothing")


def test_a_short_name_leaves_out_the_vendors_part_and_units_of_a_director_keep_their_names() -> None:
    shortened = {"MF0;B09-P1-IBLEAF-01-08:MQM9701/U1": "B09-P1-IBLEAF-01-08", "MF0;core:MQM8700": "core"}
    same = ("SwitchX -  Mellanox Technologies", "rack1:leaf2", "node0001", "MF0;odd", "")
    for full, short in (shortened | dict(zip(same, same, strict=True))).items():
        assert short_name(full) == short

    class Named:
        names = ("MF0;core:MCS7500/U1", "MF0;core:MCS7500/U2", "MF0;leaf:MQM9700/U1", "leaf2")

    assert short_names(Named) == (*Named.names[:2], "leaf", "leaf2")


def test_a_link_is_named_by_the_ports_at_both_ends() -> None:
    fabric = two_leaves()
    fabric = replace(fabric, names=(*fabric.names[:4], "MF0;A:MQM9700/U1", "MF0;B:MQM9700/U1"))
    row = find_link(fabric, "MF0;A:MQM9700/U1:10")
    ports = fabric.links.source_port[row], fabric.links.target_port[row]
    assert short_link(fabric, row) == "A:{} → B:{}".format(*ports)
    assert full_link(fabric, row) == "MF0;A:MQM9700/U1:{} → MF0;B:MQM9700/U1:{}".format(*ports)


@given(adapter_fabrics())
def test_short_names_differ_and_that_of_a_port_finds_its_link(fabric: Fabric) -> None:
    described = replace(fabric, names=tuple(f"MF0;{name}:MQM9700/U1" for name in fabric.names))
    names = short_names(described)
    assert len(set(names)) == len(set(fabric.names))
    for row in range(len(fabric.links)):
        assert find_link(described, short_port(described, row, "source", names)) == row


Jobs = tuple[Fabric, tuple[JobTraffic, ...]]


def down_link(data: st.DataObject, fabric: Fabric) -> Change:
    row = data.draw(st.integers(0, len(fabric.links) - 1))
    return Change(down_links=(link_text(fabric, row),))


def rebuilt(fabric: Fabric, rows: list[int]) -> Fabric:
    """The fabric with only these rows, made anew column by column."""
    columns = {name: np.asarray(getattr(fabric.links, name))[rows] for name in Links.__dataclass_fields__}
    names = ("names", "kind", "slots", "forwards", "guid", "lid", "adapters")
    return Fabric(**{name: getattr(fabric, name) for name in names}, links=Links(**columns))


Ways = Callable[[Fabric, int, int], list[tuple[int, float]] | None]


def slow_load(fabric: Fabric, job: JobTraffic, ways: Ways, drained: int = -1) -> tuple[Any, int, float]:
    """Bytes on each link, pairs that have no way, and their bytes; a drained host sends and gets nothing."""
    loads, pairs, lost = np.zeros(len(fabric.links)), 0, 0.0
    for rank, partner, size in zip(job.profile.sender, job.profile.partner, job.profile.bytes, strict=True):
        ends = int(job.placement.host_of_rank[rank]), int(job.placement.host_of_rank[partner])
        if ends[0] == ends[1] or drained in ends:
            continue
        route = ways(fabric, *ends)
        if route is None:
            pairs, lost = pairs + 1, lost + float(size)
        for row, part in route or []:
            loads[row] += size * part
    return loads, pairs, lost


def all_pairs(fabric: Fabric) -> tuple[JobTraffic, ...]:
    names = [fabric.names[host] for host in fabric.hosts.tolist()]
    return (job_between(fabric, "1", [(a, b, 3.0) for a in names for b in names if a != b]),)


@given(running_jobs(), st.data())
def test_without_a_cable_jobs_load_the_rest_as_from_scratch(case: Jobs, data: st.DataObject) -> None:
    fabric, jobs = case
    found = what_if(fabric, jobs, down_link(data, fabric))
    scratch = rebuilt(fabric, [row for row in range(len(fabric.links)) if row in found.row_before.tolist()])
    for name in ("source", "target", "capacity", "source_port", "target_port"):
        np.testing.assert_array_equal(getattr(found.after.fabric.links, name), getattr(scratch.links, name))
    for number, one in enumerate(jobs):
        loads, pairs, lost = slow_load(scratch, one, oracles.shortest_path_route)
        effect = found.jobs[number]
        assert effect.unreachable_pairs == pairs
        assert effect.unreachable_bytes == pytest.approx(lost)
        np.testing.assert_allclose(found.after.jobs[number].link_bytes, loads)
        assert effect.after_seconds == pytest.approx(found.after.together_seconds()[number])
        assert effect.before_seconds == pytest.approx(shared_load(fabric, jobs).together_seconds()[number])


@given(running_jobs(), st.data())
def test_ranks_on_drained_hosts_send_and_receive_nothing(case: Jobs, data: st.DataObject) -> None:
    fabric, jobs = case
    host = data.draw(st.sampled_from(fabric.hosts.tolist()))
    change = Change(drained=(fabric.names[host],))
    if any(bool((one.placement.host_of_rank == host).all()) for one in jobs):
        with pytest.raises(InvalidValue, match="left without hosts"):
            what_if(fabric, jobs, change)
        return
    found = what_if(fabric, jobs, change)
    for number, one in enumerate(jobs):
        gone = one.placement.host_of_rank == host
        loads, _, _ = slow_load(fabric, one, oracles.shortest_path_route, host)
        np.testing.assert_allclose(found.after.jobs[number].link_bytes, loads)
        effect = found.jobs[number]
        assert effect.lost_ranks == gone.sum()
        assert effect.lost_hosts == ((fabric.names[host],) if gone.any() else ())
        assert effect.unreachable_pairs == 0
    lost = [one.lost_ranks > 0 for one in found.jobs_by_effect()]
    assert lost == sorted(lost, reverse=True)


@settings(max_examples=40)
@given(table_fabrics(), st.data())
def test_kept_tables_lose_what_they_lead_into_a_gone_cable(fabric: Fabric, data: st.DataObject) -> None:
    jobs, change = all_pairs(fabric), down_link(data, fabric)
    found = what_if(fabric, jobs, change, rule="tables", costs=CostModel(routing="tables"))
    after = applied(fabric, found.change, keep_tables=True).fabric
    assert after.tables is fabric.tables
    loads, lost, _ = slow_load(after, jobs[0], oracles.table_route)
    assert found.jobs[0].unreachable_pairs == lost
    np.testing.assert_allclose(found.after.link_bytes, loads)


@settings(max_examples=40)
@given(table_fabrics(), st.data())
def test_repaired_tables_lead_where_a_path_is_left(fabric: Fabric, data: st.DataObject) -> None:
    jobs = all_pairs(fabric)
    found = what_if(fabric, jobs, down_link(data, fabric), costs=CostModel(routing="tables"))
    assert found.rule == "repaired-tables"
    assert found.unchanged is found.before
    after = found.after.fabric
    for a, b in itertools.permutations(fabric.hosts.tolist(), 2):
        left = oracles.shortest_path_route(after, a, b) is not None
        assert not left or oracles.table_route(after, a, b) is not None
    loads, lost, _ = slow_load(after, jobs[0], oracles.table_route)
    assert found.jobs[0].unreachable_pairs == lost
    np.testing.assert_allclose(found.after.link_bytes, loads)


def test_a_switch_takes_all_of_its_cables_with_it() -> None:
    fabric = two_leaves()
    jobs = (job_between(fabric, "1", [("a0", "a1", 4.0), ("a0", "b0", 1.0), ("b0", "b1", 2.0)]),)
    found = what_if(fabric, jobs, Change.of(fabric, down=["B"]))
    assert found.change == Change(down_switches=("B",))
    assert (found.jobs[0].unreachable_pairs, found.jobs[0].unreachable_bytes) == (2, 3.0)
    graph = nx.DiGraph(zip(found.after.fabric.links.source, found.after.fabric.links.target, strict=True))
    assert 5 not in graph
    assert found.jobs[0].after_seconds == 4.0


def test_a_new_cable_takes_its_part_by_capacity() -> None:
    """Between two switches a second cable halves what the first carries; one of 5 bytes/s takes 5 of 6."""
    fabric = two_leaves(uplinks=1)
    jobs = (job_between(fabric, "1", [("a0", "b0", 6.0)]), job_between(fabric, "2", [("a1", "b1", 6.0)]))
    found = what_if(fabric, jobs, Change.of(fabric, add=["A:B"]))
    assert [(effect.before_seconds, effect.after_seconds) for effect in found.jobs] == [(12.0, 6.0)] * 2
    new = np.flatnonzero(found.row_before < 0)
    links = found.after.fabric.links
    assert links.source_port[new].tolist() == links.target_port[new].tolist() == [11, 11]
    assert links.capacity[new].tolist() == [1.0, 1.0]
    faster = what_if(fabric, jobs[:1], Change.of(fabric, add=["A:B:0.00000004"]))
    row = int(np.flatnonzero((faster.row_before < 0) & (faster.after.fabric.links.source == 4))[0])
    assert faster.after.fabric.links.capacity[row] == pytest.approx(5.0)
    assert faster.after.link_bytes[row] == pytest.approx(5.0)


@given(running_jobs(), st.data())
def test_the_effect_of_the_rule_alone_is_reported_too(case: Jobs, data: st.DataObject) -> None:
    fabric, jobs = case
    change = down_link(data, fabric)
    found = what_if(fabric, jobs, change, costs=CostModel(routing="ecmp:seed=3"), rule="up-down")
    for side, routing in (("before", "ecmp:seed=3"), ("unchanged", "up-down")):
        loader = Loader(fabric, [one.placement for one in jobs], CostModel(routing=routing))
        for number, one in enumerate(jobs):
            load = getattr(found, side).jobs[number].link_bytes
            np.testing.assert_allclose(load, loader.deliver(one.profile, one.placement).loads.dense())
            seconds = getattr(found, side).together_seconds()[number]
            assert getattr(found.jobs[number], f"{side}_seconds") == pytest.approx(seconds)
    same = what_if(fabric, jobs, change)
    assert same.unchanged is same.before


def test_both_sides_follow_the_same_rule_and_known_loads_before_are_taken() -> None:
    assert (same_rule("tables"), same_rule("up-down:root=A")) == ("repaired-tables", "up-down:root=A")
    fabric, change = two_leaves(), Change(down_links=("A:10",))
    jobs = (job_between(fabric, "1", [("a0", "b0", 6.0)]),)
    found = what_if(fabric, jobs, change, costs=CostModel(routing="up-down"))
    assert (found.rule, found.routing_before) == ("up-down", "up-down")
    assert found.unchanged is found.before
    with pytest.raises(InvalidValue, match="no forwarding tables"):
        what_if(fabric, jobs, change, rule="repaired-tables")
    before = shared_load(fabric, jobs)
    assert what_if(fabric, jobs, change, before=before).before is before
    with pytest.raises(InvalidValue, match="other jobs"):
        what_if(fabric, jobs[:0], Change(), before=before)
    nobody = what_if(fabric, (), Change(down_switches=("A",)))
    assert nobody.jobs == ()
    assert not nobody.after.link_bytes.any()


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (Change(down_links=("A:77",)), UnknownName, "links at A"),
        (Change(down_switches=("AA",)), UnknownName, "closest: A"),
        (Change(drained=("a9",)), UnknownName, "there is no host 'a9'"),
        (Change(drained=("A",)), UnknownName, "there is no host 'A'"),
        (Change(added=("A",)), InvalidValue, "must be A:B or A:B:GBPS"),
        (Change(added=("A:Q",)), UnknownName, "there is no device 'Q'"),
        (Change(added=("A:A",)), InvalidValue, "to itself"),
        (Change(added=("A:B:0",)), InvalidValue, "must be A:B or A:B:GBPS"),
        (Change(added=("A:B:-3",)), InvalidValue, "must be A:B or A:B:GBPS"),
    ],
)
def test_a_change_that_cannot_be_is_refused(change: Change, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        what_if(two_leaves(), (), change)


def test_a_torus_that_lost_a_cable_is_no_torus_for_dimension_order() -> None:
    ring = Fabric.from_arcs(list("abcd"), [0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3], 1.0)
    jobs = (job_between(ring, "1", [("a", "c", 1.0)]),)
    assert what_if(ring, jobs, Change(down_links=("a:b",)), rule="up-down").jobs[0].unreachable_pairs == 0
    with pytest.raises(UnknownName, match="closest: up-down"):
        what_if(ring, jobs, Change(down_links=("a:b",)), rule="updown")


@given(running_jobs(), st.data())
def test_each_link_has_its_row_before_the_change(case: Jobs, data: st.DataObject) -> None:
    fabric, _ = case
    names = data.draw(st.permutations([fabric.names[v] for v in range(len(fabric)) if fabric.forwards[v]]))
    add = (f"{names[0]}:{names[1]}:8",) if len(names) > 1 else ()
    change = Change(added=add, down_links=down_link(data, fabric).down_links)
    found = applied(fabric, change)
    links, old = found.fabric.links, found.row_before >= 0
    for name in Links.__dataclass_fields__:
        before, after = getattr(fabric.links, name), getattr(links, name)
        np.testing.assert_array_equal(after[old], before[found.row_before[old]])
    assert (~old).sum() == 2 * len(add)
    np.testing.assert_array_equal(links.order(), np.arange(len(links)))


WORDS = st.text(alphabet="aAbB01:x.-_e\u0663 \n", max_size=12) | st.sampled_from(
    ["0x" + "f" * 30, "A:B:1e400", "A:B:nan", "a0:b0:1e-300", "0xa0:0xb0", "A:" + "9" * 50]
)


@settings(max_examples=100)
@given(st.lists(WORDS, max_size=2), st.lists(WORDS, max_size=2), st.lists(WORDS, max_size=2))
def test_any_words_make_a_change_or_a_known_error(down: list[str], add: list[str], drain: list[str]) -> None:
    fabric = two_leaves()
    try:
        change = Change.of(fabric, down=down, add=add, drain=drain)
    except (UnknownName, InvalidValue):
        return
    after = applied(fabric, change).fabric
    assert after.names == fabric.names
    assert len(after.links) <= len(fabric.links) + 2 * len(add)


def test_words_of_the_command_line_are_links_or_switches() -> None:
    fabric = two_leaves()
    change = Change.of(fabric, down=["A", "B:10", "0xb0"], add=["a0:B"], drain=["b1"])
    down = Change(down_links=("B:10",), down_switches=("A", "0xb0"))
    assert change == replace(down, added=("a0:B",), drained=("b1",))
    assert (bool(change), bool(Change())) == (True, False)
    for words in ({"down": ["C"]}, {"add": ["A:C"]}, {"drain": ["C"]}):
        with pytest.raises(UnknownName):
            Change.of(fabric, **words)
    bundle = two_leaves(uplinks=3)  # all parallel cables of two devices go together
    assert (applied(bundle, Change(down_links=("A:B",))).row_before >= 0).sum() == 8
    assert (applied(bundle, Change(down_links=("A:10", "B:11"))).row_before >= 0).sum() == 10


EXACT = ("shortest-paths", "up-down", "least-loaded", "least-loaded:order=heaviest", "ecmp:paths=3,seed=5")
ADAPTIVE = ("valiant", "ugal:share=0.3", "ugal:share=0.4,minimal=tables")


@st.composite
def placed(draw: st.DrawFn, fabric: Fabric) -> tuple[Profile, Placement]:
    profile = draw(profiles(max_ranks=6))
    return profile, draw(small_fabrics.placements(fabric, profile))


def check_against_enumeration(
    fabric: Fabric, profile: Profile, placement: Placement, routing: str, rails: str
) -> None:
    find = {"shortest-paths": oracles.shortest_path_route, "tables": oracles.table_route}[routing]
    wanted: dict[int, dict[tuple[int, int], float]] = {row: {} for row in range(len(fabric.links))}
    for rank, partner, size in zip(profile.sender, profile.partner, profile.bytes, strict=True):
        ends = int(placement.host_of_rank[rank]), int(placement.host_of_rank[partner])
        if ends[0] == ends[1]:
            continue
        route = find(fabric, *ends, rails)
        assume(route is not None)
        for row, part in sure(route):
            if size * part > 0:
                wanted[row][int(rank), int(partner)] = size * part
    for row, pairs in wanted.items():
        found = rank_pairs(fabric, profile, placement, row, CostModel(routing=routing, rails=rails))
        rows = zip(found.sender.tolist(), found.receiver.tolist(), strict=True)
        assert dict(zip(rows, found.bytes, strict=True)) == pytest.approx(pairs)
        assert found.pairs == len(pairs)


@pytest.mark.parametrize("routing", ["shortest-paths", "tables"])
@settings(max_examples=30)
@given(data=st.data())
def test_pairs_on_links_are_those_of_enumeration(routing: str, data: st.DataObject) -> None:
    fabric = data.draw(table_fabrics() if routing == "tables" else any_fabrics())
    rails = data.draw(st.sampled_from(["all-connected", "same-rail"]))
    check_against_enumeration(fabric, *data.draw(placed(fabric)), routing, rails)


@settings(max_examples=40)
@given(st.data())
def test_pairs_of_every_link_sum_to_its_load_on_every_routing(data: st.DataObject) -> None:
    fabric = data.draw(st.one_of(any_fabrics(), table_fabrics()))
    routing = data.draw(st.sampled_from(EXACT + ADAPTIVE))
    assume("tables" not in routing or fabric.tables is not None)
    profile, placement = data.draw(placed(fabric))
    for row in range(len(fabric.links)):
        try:
            found = rank_pairs(fabric, profile, placement, row, CostModel(routing=routing))
        except AlmanacError:
            assume(False)
        assert float(found.bytes.sum()) == pytest.approx(found.total_bytes)
        assert (found.bytes > 0).all()


@settings(max_examples=40)
@given(st.data())
def test_what_an_independent_pair_puts_on_a_link_is_its_load_alone(data: st.DataObject) -> None:
    fabric = data.draw(st.one_of(any_fabrics(), table_fabrics()))
    routing = data.draw(st.sampled_from(["shortest-paths", "up-down", "ecmp:paths=2", *ADAPTIVE]))
    assume("tables" not in routing or fabric.tables is not None)
    routes = build_routes(routing, fabric, fabric.hosts)
    assume(routes.connected)
    source, target = np.indices((len(fabric.hosts),) * 2).reshape(2, -1)
    try:
        alone = [routes.link_bytes([i], [j], [7.0]) for i, j in zip(source, target, strict=True)]
    except DisconnectedAllocation:  # by one-way links some host is not reached over another switch
        assert routing in ADAPTIVE
        return
    for row in range(len(fabric.links)):
        found = routes.on_link(source, target, np.full(len(source), 7.0), row)
        np.testing.assert_allclose(found, [load[row] for load in alone], atol=1e-12)


def test_the_largest_pairs_come_first_and_the_rest_still_counts() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0, slots=4)
    profile = Profile.from_edges([0, 1, 0], [2, 3, 3], [5.0, 9.0, 5.0], ranks=4)
    placement = small_fabrics.given_placement(Allocation.of(fabric, ["a", "b"], 4), [0, 0, 1, 1])
    found = rank_pairs(fabric, profile, placement, 0, most=2)
    assert (found.sender.tolist(), found.receiver.tolist()) == ([1, 0], [3, 2])
    assert (found.pairs, found.total_bytes) == (3, 19.0)
    for row in (-1, 2):
        with pytest.raises(InvalidValue, match="is not from 0 to 1"):
            rank_pairs(fabric, profile, placement, row)


@given(any_fabrics(), st.data())
def test_groups_touched_and_the_fewest_that_hold_as_many_hosts(fabric: Fabric, data: st.DataObject) -> None:
    hosts = data.draw(st.lists(st.sampled_from(fabric.hosts.tolist()), min_size=1, unique=True))
    links = fabric.links
    leaves = {
        host: frozenset(
            int(far)
            for near, far in zip(links.source, links.target, strict=True)
            if near == host and fabric.forwards[far] and not fabric.forwards[host]
        )
        or frozenset({-1 - host})
        for host in fabric.hosts.tolist()
    }
    groups = set(leaves.values())
    sizes = {group: sum(one == group for one in leaves.values()) for group in groups}
    fewest = next(
        count
        for count in range(1, len(groups) + 1)
        if max(sum(sizes[one] for one in some) for some in itertools.combinations(groups, count))
        >= len(hosts)
    )
    found = Neighbours.of(fabric).fragmentation(hosts)
    assert (found.groups, found.fewest) == (len({leaves[host] for host in hosts}), fewest)
    assert found.times >= 1.0


def test_no_hosts_switches_and_unknown_vertices_are_refused() -> None:
    neighbours = Neighbours.of(two_leaves())
    for hosts, fault in (
        ([], "at least one"),
        ([4], "must not contain a switch"),
        ([0, 6], "must be from 0 to"),
        ([-1], "must be from 0 to"),
    ):
        with pytest.raises(InvalidValue, match=fault):
            neighbours.fragmentation(np.array(hosts, int))
