"""Scans and forwarding tables of another cluster are rejected, with both counts; --replace accepts them."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ingest.merging.same_cluster import require_same_cluster, shared_devices
from ingest.options import Options
from ingest.pipeline import Report, ingest, plan
from ingest.writers.infiniband import fat_tree, ibnetdiscover_text
from registry.errors import WrongCluster
from registry.fabrics.fabrics import Snapshot
from registry.model import Fabric
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.inputs import DATA

INFINIBAND = DATA / "infiniband"
TREE = INFINIBAND / "fattree2-64-ftree/ibnetdiscover.txt"
TREE_TABLES = INFINIBAND / "fattree2-64-ftree/opensm-lfts.dump"
DEAD_SPINE = INFINIBAND / "fattree2-64-dead-spine/ibnetdiscover.txt"
TORUS = INFINIBAND / "torus-4x4x4-dor/ibnetdiscover.txt"
NDR = INFINIBAND / "ndr-dgx-minhop/ibnetdiscover.txt"
NDR_TABLES = INFINIBAND / "ndr-dgx-minhop/opensm-lfts.dump.gz"
SLURM = DATA / "formats/topology.conf"


def day(number: int, *, replace: bool = False) -> Options:
    return Options(cluster="c", observed_at=datetime(2026, 5, number, tzinfo=UTC), replace=replace)


def given(registry: Registry, path: Path, number: int, *, replace: bool = False) -> Report:
    return ingest(registry, [path], day(number, replace=replace))


def scan(folder: Path, leaves: int, hosts: int) -> Path:
    """A scan of the first leaf switches of a fat tree with two spine switches; GUIDs count from 1."""
    path = folder / f"{leaves}x{hosts}.txt"
    path.write_text(ibnetdiscover_text(fat_tree(leaves, hosts, 2)))
    return path


@pytest.fixture
def scanned(registry: Registry) -> Registry:
    """Cluster c, a tree of 64 hosts and 12 switches, scanned on day 10."""
    given(registry, TREE, 10)
    return registry


@pytest.mark.parametrize(
    ("path", "shared", "devices"),
    [(NDR, 0, 233), (TORUS, 72, 192)],  # the simulator of tree and torus counts its GUIDs from 1
    ids=["other GUIDs", "72 GUIDs in common"],
)
def test_a_scan_with_fewer_than_half_of_the_last_ones_devices_is_rejected(
    scanned: Registry, path: Path, shared: int, devices: int
) -> None:
    before = scanned.fabrics.read("c").id
    with pytest.raises(WrongCluster) as caught:
        given(scanned, path, 11)
    assert (caught.value.shared, caught.value.devices) == (shared, devices)
    assert caught.value.reason == (
        f"{shared} of the {devices} devices of this scan are in the scan of cluster 'c' of "
        "2026-05-10 00:00:00 UTC: is this another cluster? Add --replace to accept it"
    )
    assert len(scanned.fabrics.observations("c")) == 1
    assert scanned.runs.list("c")[0].outcome == "failed"
    given(scanned, path, 11, replace=True)
    assert scanned.fabrics.read("c").id != before
    given(scanned, path, 12)  # the cluster's last scan by now


def test_scans_with_faults_and_first_data_of_other_clusters_are_accepted(scanned: Registry) -> None:
    given(scanned, DEAD_SPINE, 11)
    given(scanned, INFINIBAND / "fattree2-64-broken-link/ibnetdiscover.txt", 12)
    assert len(scanned.fabrics.observations("c")) == 3
    ingest(scanned, [NDR, NDR_TABLES], Options(cluster="other"))
    assert len(scanned.fabrics.clusters()) == 2


@pytest.mark.parametrize("number", [5, 10, 11])
def test_a_late_scan_is_compared_with_the_scan_before_it_or_else_with_the_first(
    scanned: Registry, number: int
) -> None:
    given(scanned, NDR, 20, replace=True)
    with pytest.raises(WrongCluster, match=r"0 of the 233 devices .* of 2026-05-10 "):
        given(scanned, INFINIBAND.parent / "public/ndr-dgx.ibnetdiscover", number)
    given(scanned, DEAD_SPINE, number)
    with pytest.raises(WrongCluster, match=r"of the 76 devices .* of 2026-05-20 "):
        given(scanned, INFINIBAND / "fattree2-64-traffic/ibnetdiscover.txt", 21)


def test_a_scan_of_a_part_is_accepted_and_the_whole_after_it_as_well(
    registry: Registry, tmp_path: Path
) -> None:
    """The subnet fell apart for a while: 4 hosts and 3 switches instead of 80 and 22."""
    whole, part = scan(tmp_path, 20, 4), scan(tmp_path, 1, 4)
    given(registry, whole, 1)
    given(registry, part, 2)
    given(registry, whole, 3)
    assert len(registry.fabrics.read("c").fabric) == 102
    given(registry, part, 4)
    with pytest.raises(WrongCluster, match="7 of the 302 devices"):
        given(registry, scan(tmp_path, 60, 4), 5)  # three times as many as were ever seen


@pytest.mark.parametrize("scheduler_first", [True, False])
def test_a_schedulers_tree_beside_a_scan_is_compared_by_its_hosts(
    registry: Registry, scheduler_first: bool
) -> None:
    for number, path in enumerate([SLURM, TREE] if scheduler_first else [TREE, SLURM], start=1):
        given(registry, path, number)
    assert len(registry.fabrics.read("c").fabric.hosts) == 64


def test_a_scan_after_a_schedulers_tree_of_other_hosts_is_rejected(registry: Registry) -> None:
    given(registry, SLURM, 1)
    with pytest.raises(WrongCluster, match="0 of the 193 devices of this scan"):  # its hosts
        given(registry, NDR, 2)


def test_tables_of_switches_that_the_cluster_lacks_are_rejected(scanned: Registry) -> None:
    with pytest.raises(WrongCluster) as caught:
        given(scanned, NDR_TABLES, 11)
    assert caught.value.reason.startswith(
        "0 of the 40 switches of these forwarding tables are in the scan of cluster 'c' of 2026-05-10 "
    )
    assert scanned.fabrics.read("c").routing is None
    given(scanned, NDR_TABLES, 11, replace=True)
    assert scanned.fabrics.read("c").routing is not None


def test_tables_with_a_switch_that_was_down_at_the_last_scan_are_accepted(registry: Registry) -> None:
    given(registry, DEAD_SPINE, 1)
    with pytest.raises(WrongCluster, match="11 of the 12 switches"):
        given(registry, TREE_TABLES, 2)
    given(registry, TREE, 2)
    given(registry, DEAD_SPINE, 3)
    given(registry, TREE_TABLES, 4)


def planned(path: Path) -> Fabric:
    fabric = plan([path], Options(cluster="c")).fabric
    assert fabric is not None
    return fabric


def test_only_devices_of_kinds_that_both_have_are_compared() -> None:
    tree = planned(TREE)
    assert shared_devices(tree, tree).all()
    assert len(shared_devices(tree, tree)) == 76
    names = [tree.names[v] for v in tree.switches]
    only_switches = Fabric.from_arcs(names, [0, 1], [1, 0], 1e9, slots=0)
    assert shared_devices(tree, only_switches).tolist() == [True] * 12
    assert shared_devices(only_switches, tree).tolist() == [True] * 12
    assert shared_devices(tree, planned(SLURM)).tolist() == [True] * 64
    only_hosts = Fabric.from_arcs(["node0001", "x"], [0, 1], [1, 0], 1e9)
    assert shared_devices(tree, only_hosts).tolist() == [True, False]
    assert shared_devices(only_switches, only_hosts).tolist() == []


def test_equal_names_mean_nothing_if_both_have_guids_and_share_none() -> None:
    tree = planned(TREE)
    offset = np.uint64(1 << 40)
    guid = np.where(tree.guid > 0, tree.guid + offset, tree.guid)
    columns = {name: getattr(tree.adapters, name) + offset for name in ("guid", "system_guid", "port_guid")}
    adapters = dataclasses.replace(tree.adapters, **columns)
    other = dataclasses.replace(tree, guid=guid, adapters=adapters)
    assert not shared_devices(tree, other).any()
    assert len(shared_devices(tree, other)) == 76


def test_half_of_the_devices_are_enough() -> None:
    def line(*names: str) -> Fabric:
        return Fabric.from_arcs(names, range(len(names) - 1), range(1, len(names)), 1e9)

    moment = datetime(2026, 5, 1, tzinfo=UTC)
    before = Snapshot(cluster="c", id="", observed_at=moment, routing=None, fabric=line("a", "b", "c", "d"))
    scans = SimpleNamespace(nearest_seen=lambda *_: before, largest_seen=lambda _: None)
    require_same_cluster(scans, Intake(cluster="c", observed_at=moment, fabric=line("c", "d", "x", "y")))
    with pytest.raises(WrongCluster):
        require_same_cluster(scans, Intake(cluster="c", observed_at=moment, fabric=line("d", "x", "y")))
