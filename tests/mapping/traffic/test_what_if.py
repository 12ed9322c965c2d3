"""What changes of a fabric would do: as the changed fabric from scratch, and by hand."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.selfcheck import oracles
from mapping.traffic.device_names import link_text
from mapping.traffic.fabric_changes import Change, applied
from mapping.traffic.job_loads import JobTraffic, Loader
from mapping.traffic.what_if import same_rule, what_if
from registry.errors import InvalidValue, UnknownName
from registry.model import Fabric, Links
from tests.support.small_fabrics import table_fabrics
from tests.support.traffic_jobs import job_between, running_jobs, shared_load, two_leaves

Jobs = tuple[Fabric, tuple[JobTraffic, ...]]


def down_link(data: st.DataObject, fabric: Fabric) -> Change:
    row = data.draw(st.integers(0, len(fabric.links) - 1))
    return Change(down_links=(link_text(fabric, row),))


def rebuilt(fabric: Fabric, rows: list[int]) -> Fabric:
    """The fabric with only these rows, made anew column by column."""
    columns = {name: np.asarray(getattr(fabric.links, name))[rows] for name in Links.__dataclass_fields__}
    names = ("names", "kind", "slots", "forwards", "guid", "lid", "adapters")
    return Fabric(**{name: getattr(fabric, name) for name in names}, links=Links(**columns))


@settings(deadline=None)
@given(running_jobs(), st.data())
def test_after_a_cable_went_jobs_load_the_rest_as_if_it_had_never_been(
    case: Jobs, data: st.DataObject
) -> None:
    fabric, jobs = case
    found = what_if(fabric, jobs, down_link(data, fabric))
    kept = [row for row in range(len(fabric.links)) if row in found.row_before.tolist()]
    scratch = rebuilt(fabric, kept)
    for name in ("source", "target", "capacity", "source_port", "target_port"):
        np.testing.assert_array_equal(getattr(found.after.fabric.links, name), getattr(scratch.links, name))
    for number, one in enumerate(jobs):
        loads, pairs, lost = np.zeros(len(kept)), 0, 0.0
        for rank, partner, size in zip(
            one.profile.sender, one.profile.partner, one.profile.bytes, strict=True
        ):
            ends = int(one.placement.host_of_rank[rank]), int(one.placement.host_of_rank[partner])
            if ends[0] == ends[1]:
                continue
            route = oracles.shortest_path_route(scratch, *ends)
            if route is None:
                pairs, lost = pairs + 1, lost + float(size)
                continue
            for row, part in route:
                loads[row] += size * part
        effect = found.jobs[number]
        assert effect.unreachable_pairs == pairs
        assert effect.unreachable_bytes == pytest.approx(lost)
        np.testing.assert_allclose(found.after.jobs[number].link_bytes, loads)
        assert effect.after_seconds == pytest.approx(found.after.together_seconds()[number])
        assert effect.before_seconds == pytest.approx(shared_load(fabric, jobs).together_seconds()[number])


@settings(deadline=None)
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
        loads = np.zeros(len(fabric.links))
        for rank, partner, size in zip(
            one.profile.sender, one.profile.partner, one.profile.bytes, strict=True
        ):
            ends = int(one.placement.host_of_rank[rank]), int(one.placement.host_of_rank[partner])
            if ends[0] != ends[1] and host not in ends:
                for row, part in oracles.shortest_path_route(fabric, *ends) or []:
                    loads[row] += size * part
        np.testing.assert_allclose(found.after.jobs[number].link_bytes, loads)
        effect = found.jobs[number]
        assert effect.lost_ranks == gone.sum()
        assert effect.lost_hosts == ((fabric.names[host],) if gone.any() else ())
        assert effect.unreachable_pairs == 0


@settings(deadline=None, max_examples=40)
@given(table_fabrics(), st.data())
def test_kept_tables_lose_what_they_lead_into_a_gone_cable(fabric: Fabric, data: st.DataObject) -> None:
    names = [fabric.names[host] for host in fabric.hosts.tolist()]
    jobs = (job_between(fabric, "1", [(a, b, 3.0) for a in names for b in names if a != b]),)
    found = what_if(fabric, jobs, down_link(data, fabric), rule="tables", costs=CostModel(routing="tables"))
    after = applied(fabric, found.change, keep_tables=True).fabric
    assert after.tables is fabric.tables
    loads, lost = np.zeros(len(after.links)), 0
    for a in fabric.hosts.tolist():
        for b in fabric.hosts.tolist():
            if a == b:
                continue
            route = oracles.table_route(after, a, b)
            if route is None:
                lost += 1
                continue
            for row, part in route:
                loads[row] += 3.0 * part
    assert found.jobs[0].unreachable_pairs == lost
    np.testing.assert_allclose(found.after.link_bytes, loads)


@settings(deadline=None, max_examples=40)
@given(table_fabrics(), st.data())
def test_repaired_tables_lead_where_a_path_is_left(fabric: Fabric, data: st.DataObject) -> None:
    names = [fabric.names[host] for host in fabric.hosts.tolist()]
    jobs = (job_between(fabric, "1", [(a, b, 3.0) for a in names for b in names if a != b]),)
    found = what_if(fabric, jobs, down_link(data, fabric), costs=CostModel(routing="tables"))
    assert found.rule == "repaired-tables"
    assert found.unchanged is found.before
    loads = np.zeros(len(found.after.fabric.links))
    lost = 0
    for a, b in ((a, b) for a in fabric.hosts.tolist() for b in fabric.hosts.tolist() if a != b):
        route = oracles.table_route(found.after.fabric, a, b)
        assert (route is None) <= (oracles.shortest_path_route(found.after.fabric, a, b) is None)
        lost += route is None
        for row, part in route or []:
            loads[row] += 3.0 * part
    assert found.jobs[0].unreachable_pairs == lost
    np.testing.assert_allclose(found.after.link_bytes, loads)


def test_both_sides_follow_the_same_rule() -> None:
    assert (same_rule("tables"), same_rule("up-down:root=A")) == ("repaired-tables", "up-down:root=A")
    fabric = two_leaves()
    jobs = (job_between(fabric, "1", [("a0", "b0", 6.0)]),)
    found = what_if(fabric, jobs, Change(down_links=("A:10",)), costs=CostModel(routing="up-down"))
    assert (found.rule, found.routing_before) == ("up-down", "up-down")
    assert found.unchanged is found.before
    with pytest.raises(InvalidValue, match="no forwarding tables"):
        what_if(fabric, jobs, Change(down_links=("A:10",)), rule="repaired-tables")


def test_a_switch_takes_all_of_its_cables_with_it() -> None:
    fabric = two_leaves()
    jobs = (job_between(fabric, "1", [("a0", "a1", 4.0), ("a0", "b0", 1.0), ("b0", "b1", 2.0)]),)
    found = what_if(fabric, jobs, Change.of(fabric, down=["B"]))
    assert found.change == Change(down_switches=("B",))
    assert (found.jobs[0].unreachable_pairs, found.jobs[0].unreachable_bytes) == (2, 3.0)
    graph = nx.DiGraph(zip(found.after.fabric.links.source, found.after.fabric.links.target, strict=True))
    assert 5 not in graph
    assert found.jobs[0].after_seconds == 4.0


def test_a_second_cable_between_two_switches_halves_what_the_first_carries() -> None:
    fabric = two_leaves(uplinks=1)
    jobs = (job_between(fabric, "1", [("a0", "b0", 6.0)]), job_between(fabric, "2", [("a1", "b1", 6.0)]))
    found = what_if(fabric, jobs, Change.of(fabric, add=["A:B"]))
    assert [effect.before_seconds for effect in found.jobs] == [12.0, 12.0]
    assert [effect.after_seconds for effect in found.jobs] == [6.0, 6.0]
    new = np.flatnonzero(found.row_before < 0)
    links = found.after.fabric.links
    assert links.source_port[new].tolist() == links.target_port[new].tolist() == [11, 11]
    assert links.capacity[new].tolist() == [1.0, 1.0]


def test_a_faster_cable_takes_its_part_by_capacity() -> None:
    fabric = two_leaves(uplinks=1)
    jobs = (job_between(fabric, "1", [("a0", "b0", 6.0)]),)
    found = what_if(fabric, jobs, Change.of(fabric, add=["A:B:0.00000004"]))  # 5 bytes/s
    new = int(np.flatnonzero((found.row_before < 0) & (found.after.fabric.links.source == 4))[0])
    assert found.after.fabric.links.capacity[new] == pytest.approx(5.0)
    assert found.after.link_bytes[new] == pytest.approx(5.0)


@settings(deadline=None)
@given(running_jobs(), st.data())
def test_the_effect_of_the_rule_alone_is_reported_beside_that_of_the_change(
    case: Jobs, data: st.DataObject
) -> None:
    fabric, jobs = case
    change = down_link(data, fabric)
    found = what_if(fabric, jobs, change, costs=CostModel(routing="ecmp:seed=3"), rule="up-down")
    for side, routing in (("before", "ecmp:seed=3"), ("unchanged", "up-down")):
        loader = Loader(fabric, [one.placement for one in jobs], CostModel(routing=routing))
        for number, one in enumerate(jobs):
            load = getattr(found, side).jobs[number].link_bytes
            np.testing.assert_allclose(load, loader.deliver(one.profile, one.placement).loads.dense())
            assert getattr(found.jobs[number], f"{side}_seconds") == pytest.approx(
                getattr(found, side).together_seconds()[number]
            )
    same = what_if(fabric, jobs, change)
    assert same.unchanged is same.before


def test_known_loads_before_are_taken_and_must_be_of_the_same_jobs() -> None:
    fabric = two_leaves()
    jobs = (job_between(fabric, "1", [("a0", "b0", 6.0)]),)
    before = shared_load(fabric, jobs)
    assert what_if(fabric, jobs, Change(down_links=("A:10",)), before=before).before is before
    with pytest.raises(InvalidValue, match="other jobs"):
        what_if(fabric, jobs[:0], Change(), before=before)


def test_nothing_running_answers_too() -> None:
    fabric = two_leaves()
    found = what_if(fabric, (), Change(down_switches=("A",)))
    assert found.jobs == ()
    assert not found.after.link_bytes.any()


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
def test_a_change_that_cannot_be_made_says_what_is_wrong(
    change: Change, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        what_if(two_leaves(), (), change)


def test_a_torus_that_lost_a_cable_is_no_torus_for_dimension_order() -> None:
    ring = Fabric.from_arcs(list("abcd"), [0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3], 1.0)
    jobs = (job_between(ring, "1", [("a", "c", 1.0)]),)
    assert what_if(ring, jobs, Change(down_links=("a:b",)), rule="up-down").jobs[0].unreachable_pairs == 0
    with pytest.raises(UnknownName, match="closest: up-down"):
        what_if(ring, jobs, Change(down_links=("a:b",)), rule="updown")
