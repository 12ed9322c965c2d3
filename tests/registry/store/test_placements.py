"""Placements in the graph: append-only, with provenance, cost, and who is on which link."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from registry.errors import InvalidPlacement, UnknownName
from registry.model import Allocation, Bound, Evaluation, HostOrder, Job, Metrics, Placement, Profile
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store import placements as placement_saving
from registry.store.fabrics import Snapshot
from registry.store.placement_rows import PlacementRecord
from registry.store.placements import placement_id
from tests.support.fat_tree import at, fat_tree, tree_tables
from tests.support.full_cluster import same

PROFILE = Profile.from_edges([0, 1, 2], [1, 2, 0], [10.0, 20.0, 30.0], name="ring", application="cg")
NUMBERS = {"congestion_seconds": 4.0, "network_congestion_seconds": 3.0, "hop_bytes": 100.0}
IN_ORDER = Metrics(**NUMBERS, average_dilation=2.5)


@pytest.fixture
def known(registry: Registry) -> Registry:
    """A registry that knows a fabric with tables, a job on it and a profile."""
    job = Job(id="7", hosts=("node03", "node00"), slots=(2, 2), ranks=3)
    seen = Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), tables=tree_tables(), jobs=(job,))
    registry.save(replace(seen, profiles=(PROFILE,)))
    return registry


def record_on(known: Registry, **changed: Any) -> PlacementRecord:
    """A placement of the profile's ranks on the job's hosts, with everything filled in."""
    return replace(recorded(known.fabrics.read("toy"), known.profiles.read("ring").id), **changed)


def recorded(snapshot: Snapshot, profile: str) -> PlacementRecord:
    allocation = Allocation.of(snapshot.fabric, ["node03", "node00"], 2)
    used = {"strategy": "greedy+pair-exchange", "objective": "congestion", "routing": "tables", "seed": 3}
    used |= {"parameters": {"rails": "all-connected", "steps": 5, "heat": 0.5, "blocks": True}}
    used |= {"seconds": 1.5, "steps": 99, "complete": False, "allocation": allocation}
    placement = Placement(host_of_rank=allocation.hosts[[0, 0, 1]], **used)  # type: ignore[arg-type]
    names = {"cluster": "toy", "content": snapshot.id, "profile": profile, "job": "7", "code_version": "1.2"}
    costs = {"evaluation": evaluation_on(snapshot), "in_order": IN_ORDER}
    costs["random"] = replace(IN_ORDER, hop_bytes=120.0)
    return PlacementRecord(**names, **costs, routing=snapshot.routing, placement=placement)  # type: ignore[arg-type]


def evaluation_on(snapshot: Snapshot) -> Evaluation:
    loads = np.zeros(len(snapshot.fabric.links))
    loads[[2, 5, 7]] = [50e9, 200e9, 100e9]
    injection = Bound(value=1.0, proof="what a rank sends leaves it", name="injection")
    found: dict[str, Any] = {
        "bounds": {"congestion_seconds": injection, "hop_bytes": Bound(value=90.0, proof="nearest hosts")}
    }
    found |= {"routing": "tables", "rails": "all-connected", "wall_seconds": 0.25, "code_version": "1.2"}
    found |= {"congestion_seconds": 4.0, "network_congestion_seconds": 2.0, "mean_congestion_seconds": 1.5}
    found |= {"hop_bytes": 350e9, "total_bytes": 60.0, "average_dilation": 2.0, "max_dilation": 4.0}
    found |= {"total_dilation": 12.0, "message_dilation": 2.5, "mapping_coefficient": 70.0}
    found |= {"distance": "equivalent+2", "counted": "packets of 4096 bytes"}
    found["background"] = "added: 9 bytes of 1 other job on all links"
    return Evaluation(link_bytes=loads, **found)


def test_a_saved_placement_is_read_back(known: Registry) -> None:
    record = record_on(known)
    cores, cpus = np.array([3, 0, 1], np.int32), np.array([6, 0, -1], np.int32)
    with_cores = replace(record, placement=replace(record.placement, core_of_rank=cores, cpu_of_rank=cpus))
    ids = [known.placements.save(one) for one in (record, with_cores)]
    assert ids[0] != ids[1]
    for identity, saved in zip(ids, (record, with_cores), strict=True):
        stored = known.placements.read(identity)
        for name in ("cluster", "content", "routing", "profile", "job", "in_order", "random", "code_version"):
            assert getattr(stored, name) == getattr(saved, name)
        assert stored.hosts == ("node03", "node03", "node00")
        assert same(stored.placement, saved.placement)
        assert saved.evaluation is not None
        assert stored.evaluation is not None
        assert same(stored.evaluation, saved.evaluation)


def test_another_provenance_or_result_is_another_placement() -> None:
    fabric = fat_tree()
    snapshot = Snapshot(cluster="toy", id="toy/x", observed_at=at(0), routing="toy/t", fabric=fabric)
    record = recorded(snapshot, "profile")
    placement, evaluation = record.placement, record.evaluation
    assert evaluation is not None
    allocation = Allocation(hosts=placement.allocation.hosts, slots=np.asarray([3, 3]))
    changes: list[dict[str, Any]] = [{"cluster": "other"}, {"content": "toy/other"}, {"code_version": "2"}]
    changes += [{"routing": None}, {"profile": None}, {"job": None}]
    others: list[dict[str, Any]] = [{"seed": 4}, {"strategy": "random"}, {"objective": "hop-bytes"}]
    others += [{"parameters": {}}, {"host_of_rank": placement.host_of_rank[::-1]}, {"allocation": allocation}]
    changes += [{"placement": replace(placement, **changed)} for changed in others]
    changes += [{"evaluation": replace(evaluation, background=text)} for text in ("", "added: 10 bytes")]
    variants = [record, *(replace(record, **changed) for changed in changes)]
    assert len({placement_id(variant) for variant in variants}) == len(variants)


def test_a_placement_is_joined_to_all_that_it_is_about(known: Registry) -> None:
    identity = known.placements.save(record_on(known))
    _, rows = known.database.query(
        "MATCH (j:Job)-[:HAS_PLACEMENT]->(p:Placement {id: $id})-[:OF]->(f:Profile)-[:OF]->(a:Application), "
        "(p)-[:IN]->(x:Content), (p)-[:ON]->(n:Allocation)<-[:RAN_ON]-(j), (p)-[:HAS_LOADS]->(:LinkLoads) "
        "RETURN j.job, f.name, a.id, x.id, n.hosts, p.hosts, p.parameters",
        id=identity,
    )
    assert len(rows) == 1
    assert rows[0][:3] == ("7", "ring", "cg")
    assert rows[0][4:6] == (["node03", "node00"], ["node03", "node03", "node00"])
    assert json.loads(rows[0][6])["heat"] == 0.5


def test_the_hottest_links_are_at_their_sending_end(known: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_saving, "HOTTEST", 2)
    known.placements.save(record_on(known))
    fabric = known.fabrics.read("toy").fabric
    _, rows = known.database.query(
        "MATCH (:Placement)-[l:LOADS]->(d:Device) "
        "RETURN d.name, l.src_port, l.dst, l.dst_port, l.bytes, l.seconds ORDER BY l.seconds DESC"
    )
    names, links = fabric.names, fabric.links
    for (source, near, target, far, *rest), k, load in zip(rows, (5, 7), (200e9, 100e9), strict=True):
        assert (source, target) == (names[links.source[k]], names[links.target[k]])
        assert (near, far) == (links.source_port[k], links.target_port[k])
        assert rest == [load, load / 50e9]


def test_a_placement_without_evaluation_job_and_profile_is_kept(known: Registry) -> None:
    names = ("evaluation", "job", "profile", "routing", "in_order", "random")
    plain = record_on(known, **dict.fromkeys(names))
    stored = known.placements.read(known.placements.save(plain))
    assert (stored.evaluation, stored.job, stored.profile, stored.routing, stored.in_order) == (None,) * 5
    (info,) = known.placements.history()
    assert (info.congestion_seconds, info.profile, info.in_order, dict(info.bounds)) == (None, None, None, {})


def test_the_history_has_metrics_bounds_and_baselines(known: Registry) -> None:
    known.placements.save(record_on(known))
    (shown,) = known.placements.history()
    assert (shown.cluster, shown.application, shown.profile, shown.job) == ("toy", "cg", "ring", "7")
    used = (shown.strategy, shown.objective, shown.routing)
    assert used == ("greedy+pair-exchange", "congestion", "tables")
    assert (shown.congestion_seconds, shown.network_congestion_seconds) == (4.0, 2.0)
    assert (shown.hop_bytes, shown.average_dilation, shown.complete, shown.seed) == (350e9, 2.0, False, 3)
    assert dict(shown.bounds) == {"congestion_seconds": 1.0, "hop_bytes": 90.0}
    assert shown.in_order == IN_ORDER
    assert shown.role == "proposed"
    assert asdict(shown)["random"]["hop_bytes"] == 120.0


def test_the_history_is_filtered(known: Registry) -> None:
    known.save(Intake(cluster="two", observed_at=at(0), fabric=fat_tree()))
    on_job = known.placements.save(record_on(known))
    alone = known.placements.save(record_on(known, job=None, profile=None))
    snapshot = known.fabrics.read("two")
    other = record_on(known, cluster="two", content=snapshot.id, routing=None, job=None)
    elsewhere = known.placements.save(other)

    def found(**asked: Any) -> set[str]:
        return {info.id for info in known.placements.history(**asked)}

    assert found() == {on_job, alone, elsewhere}
    assert found(cluster="toy") == {on_job, alone}
    assert found(application="cg") == {on_job, elsewhere}
    assert found(job="7") == {on_job}
    assert found(cluster="two", job="7") == set()


def given_order(*hosts: str, job: str = "", cluster: str = "toy", when: float | None = None) -> Intake:
    order = HostOrder(hosts=hosts, source="rankfile", job=job)
    return Intake(cluster=cluster, observed_at=None if when is None else at(when), placements=(order,))


def test_a_placement_file_is_saved_as_given(known: Registry) -> None:
    intake = given_order("node01", "node00", "node01")
    receipt = known.save(intake)
    stored = known.placements.read(receipt.ids("placements")[0])
    assert (stored.placement.strategy, stored.hosts) == ("given", ("node01", "node00", "node01"))
    assert stored.placement.parameters == {"source": "rankfile"}
    assert stored.role == "present"
    assert known.save(intake).ids("placements") == receipt.ids("placements")
    assert len(known.placements.history()) == 1
    early = known.save(given_order("node01", when=-5))  # older than the first scan: it is on that one
    assert known.placements.read(early.ids("placements")[0]).content == known.fabrics.read("toy").id
    of_job = known.save(given_order("node03", "node00", "node03", job="7"))
    (info,) = known.placements.history(job="7")
    assert (info.id, info.role) == (of_job.ids("placements")[0], "present")


def test_a_placement_file_that_names_what_is_unknown_is_refused(known: Registry) -> None:
    for intake, reason in (
        (given_order("node03", job="8"), "no job '8'"),
        (given_order("node01", cluster="toi"), "no cluster 'toi'; closest: toy"),
        (given_order("node01", "nodeX"), "nodeX"),
    ):
        with pytest.raises(UnknownName, match=reason):
            known.save(intake)


def test_what_does_not_fit_is_refused_and_nothing_is_written(known: Registry) -> None:
    record = record_on(known)
    assert record.evaluation is not None
    far = Allocation(hosts=np.asarray([99]), slots=np.asarray([3]))
    before = known.database.query("MATCH (n) RETURN count(n)")[1]
    outside = Placement(host_of_rank=np.full(3, 99, np.int32), allocation=far, strategy="x")
    fewer = replace(record.placement, host_of_rank=record.placement.host_of_rank[:2])
    for wrong, reason in (
        (replace(record, placement=outside), "vertices"),
        (replace(record, evaluation=replace(record.evaluation, link_bytes=np.zeros(1))), "link loads"),
        (replace(record, placement=fewer), "2 ranks are placed, the profile has 3"),
    ):
        with pytest.raises(InvalidPlacement, match=reason):
            known.placements.save(wrong)
    assert known.database.query("MATCH (n) RETURN count(n)")[1] == before


def test_an_evaluation_saved_before_it_held_more_is_read(known: Registry) -> None:
    identity = known.placements.save(record_on(known))
    later = ("mean_congestion_seconds", "total_dilation", "message_dilation", "mapping_coefficient")
    names = (*later, "distance", "counted", "background", "argument_congestion_seconds")
    removed = ", ".join(f"p.{name}" for name in names)
    known.database.write(lambda tx: tx.run(f"MATCH (p:Placement) REMOVE {removed}"))
    evaluation = known.placements.read(identity).evaluation
    assert evaluation is not None
    assert [getattr(evaluation, name) for name in later] == [None] * 4
    assert (evaluation.distance, evaluation.counted, evaluation.background) == ("links", "bytes", "")
    assert evaluation.bounds["congestion_seconds"].name == ""
    assert evaluation.congestion_seconds == 4.0


def test_a_proposed_placement_that_runs_by_now_is_present(known: Registry) -> None:
    record = record_on(known)
    identity = known.placements.save(record)
    for role, expected in (("proposed", "proposed"), ("present", "present"), ("proposed", "present")):
        assert known.placements.save(replace(record, role=role)) == identity
        assert known.placements.read(identity).role == expected
    assert len(known.placements.history()) == 1
