"""Placements in the graph: append-only, with provenance, cost, and who is on which link."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from registry.errors import InvalidPlacement, UnknownName
from registry.fabrics.fabrics import Snapshot
from registry.model import Allocation, Bound, Evaluation, HostOrder, Job, Metrics, Placement, Profile
from registry.model.intake import Intake
from registry.records.placements import saving as placement_saving
from registry.records.placements.records import PlacementRecord
from registry.records.placements.saving import placement_id
from registry.registry import Registry
from tests.registry.records.test_records import same
from tests.support.fat_tree import at, fat_tree, tree_tables

PROFILE = Profile.from_edges([0, 1, 2], [1, 2, 0], [10.0, 20.0, 30.0], name="ring", application="cg")
IN_ORDER = Metrics(
    congestion_seconds=4.0, network_congestion_seconds=3.0, hop_bytes=100.0, average_dilation=2.5
)


@pytest.fixture
def known(registry: Registry) -> Registry:
    """A registry that knows a fabric with tables, a job on it and a profile."""
    job = Job(id="7", hosts=("node03", "node00"), slots=(2, 2), ranks=3)
    registry.save(
        Intake(
            cluster="toy",
            observed_at=at(0),
            fabric=fat_tree(),
            tables=tree_tables(),
            jobs=(job,),
            profiles=(PROFILE,),
        )
    )
    return registry


def record_on(known: Registry, **changed: Any) -> PlacementRecord:
    """A placement of the profile's ranks on the job's hosts, with everything filled in."""
    return replace(recorded(known.fabrics.read("toy"), known.profiles.read("ring").id), **changed)


def recorded(snapshot: Snapshot, profile: str) -> PlacementRecord:
    allocation = Allocation.of(snapshot.fabric, ["node03", "node00"], 2)
    return PlacementRecord(
        cluster="toy",
        content=snapshot.id,
        routing=snapshot.routing,
        profile=profile,
        job="7",
        placement=Placement(
            host_of_rank=allocation.hosts[[0, 0, 1]],
            allocation=allocation,
            strategy="greedy+pair-exchange",
            objective="congestion",
            routing="tables",
            parameters={"rails": "all-connected", "steps": 5, "heat": 0.5, "blocks": True},
            seed=3,
            seconds=1.5,
            steps=99,
            complete=False,
        ),
        evaluation=evaluation_on(snapshot),
        in_order=IN_ORDER,
        random=replace(IN_ORDER, hop_bytes=120.0),
        code_version="1.2",
    )


def evaluation_on(snapshot: Snapshot) -> Evaluation:
    loads = np.zeros(len(snapshot.fabric.links))
    loads[[2, 5, 7]] = [50e9, 200e9, 100e9]
    return Evaluation(
        routing="tables",
        rails="all-connected",
        congestion_seconds=4.0,
        network_congestion_seconds=2.0,
        hop_bytes=350e9,
        total_bytes=60.0,
        average_dilation=2.0,
        max_dilation=4.0,
        link_bytes=loads,
        bounds={
            "congestion_seconds": Bound(value=1.0, proof="what a rank sends leaves it", name="injection"),
            "hop_bytes": Bound(value=90.0, proof="nearest hosts"),
        },
        wall_seconds=0.25,
        code_version="1.2",
        mean_congestion_seconds=1.5,
        total_dilation=12.0,
        message_dilation=2.5,
        mapping_coefficient=70.0,
        distance="equivalent+2",
        counted="packets of 4096 bytes",
        background="added: 9 bytes of 1 other job on all links",
    )


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
    variants = [
        record,
        replace(record, cluster="other"),
        replace(record, content="toy/other"),
        replace(record, routing=None),
        replace(record, profile=None),
        replace(record, job=None),
        replace(record, code_version="2"),
        replace(record, placement=replace(placement, seed=4)),
        replace(record, placement=replace(placement, strategy="random")),
        replace(record, placement=replace(placement, objective="hop-bytes")),
        replace(record, placement=replace(placement, parameters={})),
        replace(record, placement=replace(placement, host_of_rank=placement.host_of_rank[::-1])),
        replace(record, placement=replace(placement, allocation=allocation)),
        replace(record, evaluation=replace(evaluation, background="")),
        replace(record, evaluation=replace(evaluation, background="added: 10 bytes")),
    ]
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


def test_the_hottest_links_are_stored_at_their_sending_end(
    known: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement_saving, "HOTTEST", 2)
    record = record_on(known)
    known.placements.save(record)
    fabric = known.fabrics.read("toy").fabric
    _, rows = known.database.query(
        "MATCH (:Placement)-[l:LOADS]->(d:Device) "
        "RETURN d.name, l.src_port, l.dst, l.dst_port, l.bytes, l.seconds ORDER BY l.seconds DESC"
    )
    expected = [
        (
            fabric.names[fabric.links.source[row]],
            fabric.links.source_port[row],
            fabric.names[fabric.links.target[row]],
            fabric.links.target_port[row],
            load,
            load / 50e9,
        )
        for row, load in ((5, 200e9), (7, 100e9))
    ]
    assert rows == expected


def test_a_placement_without_evaluation_job_and_profile_is_kept(known: Registry) -> None:
    plain = record_on(
        known, evaluation=None, job=None, profile=None, routing=None, in_order=None, random=None
    )
    stored = known.placements.read(known.placements.save(plain))
    assert (stored.evaluation, stored.job, stored.profile, stored.routing, stored.in_order) == (None,) * 5
    (info,) = known.placements.history()
    assert (info.congestion_seconds, info.profile, info.in_order, dict(info.bounds)) == (None, None, None, {})


def test_the_history_has_metrics_bounds_and_baselines(known: Registry) -> None:
    known.placements.save(record_on(known))
    (shown,) = known.placements.history()
    assert (shown.cluster, shown.application, shown.profile, shown.job) == ("toy", "cg", "ring", "7")
    assert (shown.strategy, shown.objective, shown.routing) == (
        "greedy+pair-exchange",
        "congestion",
        "tables",
    )
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
    elsewhere = known.placements.save(
        record_on(known, cluster="two", content=snapshot.id, routing=None, job=None)
    )

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


@pytest.mark.parametrize(
    ("intake", "reason"),
    [
        (given_order("node03", job="8"), "no job '8'"),
        (given_order("node01", cluster="toi"), "no cluster 'toi'; closest: toy"),
        (given_order("node01", "nodeX"), "nodeX"),
    ],
    ids=["job", "cluster", "host"],
)
def test_a_placement_file_that_names_what_is_unknown_is_refused(
    known: Registry, intake: Intake, reason: str
) -> None:
    with pytest.raises(UnknownName, match=reason):
        known.save(intake)


def test_what_does_not_fit_is_refused_and_nothing_is_written(known: Registry) -> None:
    record = record_on(known)
    assert record.evaluation is not None
    far = Allocation(hosts=np.asarray([99]), slots=np.asarray([3]))
    before = known.database.query("MATCH (n) RETURN count(n)")[1]
    with pytest.raises(InvalidPlacement, match="vertices"):
        known.placements.save(
            replace(
                record,
                placement=Placement(host_of_rank=np.full(3, 99, np.int32), allocation=far, strategy="x"),
            )
        )
    with pytest.raises(InvalidPlacement, match="link loads"):
        known.placements.save(replace(record, evaluation=replace(record.evaluation, link_bytes=np.zeros(1))))
    fewer = replace(record.placement, host_of_rank=record.placement.host_of_rank[:2])
    with pytest.raises(InvalidPlacement, match="2 ranks are placed, the profile has 3"):
        known.placements.save(replace(record, placement=fewer))
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
