"""Hosts keep their names by the GUIDs of their adapters, and adapters those of a richer tool's scan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ingest.formats.fabrics.iblinkinfo import IBLINKINFO
from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.fabrics.slurm_topology import SLURM_TOPOLOGY
from ingest.options import Options
from ingest.pipeline import ingest
from mapping.checks.checks import check
from mapping.checks.finding import Subject
from registry.errors import PoorerSource
from registry.model import Fabric
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.changes import compare
from registry.store.known_names import host_of_guid, keep_names
from registry.store.observations import restore_known_guids
from registry.store.snapshots import canonical, content_hash
from tests.support.described_adapters import owners, scan
from tests.support.fat_tree import at
from tests.support.ibnetdiscover_scans import raw
from tests.support.inputs import DATA, fabric_of

FOLDER = DATA / "infiniband/name-lost"


def kept(before: Fabric, now: Fabric) -> tuple[dict[int, str], tuple[str, ...]]:
    fabric, warnings = keep_names(now, host_of_guid(before))
    assert len(set(fabric.names)) == len(fabric.names)
    assert fabric.cable_count == int(np.count_nonzero(fabric.kind[fabric.links.source] == 0))
    return owners(fabric), warnings


TWO = scan("a mlx5_0", "b mlx5_0")
RAILS = scan("a mlx5_0", "a mlx5_1", "b mlx5_0")
PLAIN = scan("a", "a", "b", "b")


def test_a_lost_name_is_that_of_the_known_adapter_and_the_warning_has_the_new_description() -> None:
    names, warnings = kept(TWO, scan("a mlx5_0", "MT4129 ConnectX7   Mellanox Technologies"))
    assert names == {1: "a", 2: "b"}
    assert warnings == (
        "host b keeps its name, as its adapter 0x0000000000000002 is known: it is described as "
        "'MT4129 ConnectX7   Mellanox Technologies' now",
    )


@pytest.mark.parametrize(
    ("before", "now", "names"),
    [
        (TWO, scan("a mlx5_0", "a mlx5_0"), {1: "a", 2: "b"}),  # b took the name of a
        (TWO, scan("localhost mlx5_0", "a mlx5_0"), {1: "a", 2: "b"}),  # and a lost it
        (TWO, scan("localhost mlx5_0", "localhost mlx5_0"), {1: "a", 2: "b"}),
        (TWO, scan("b mlx5_0", "a mlx5_0"), {1: "b", 2: "a"}),  # a swap is a rename of both
        (TWO, scan("c mlx5_0", "b mlx5_0"), {1: "c", 2: "b"}),  # a new name
        (TWO, scan("c mlx5_0", "c mlx5_0"), {1: "a", 2: "b"}),  # one new name for two
        (TWO, scan("a mlx5_0", "a mlx5_1"), {1: "a", 2: "a"}),  # an adapter that was moved
        (RAILS, scan("a mlx5_0", "HCA-2", "b mlx5_0"), {1: "a", 2: "a", 3: "b"}),  # one rail of two
        (RAILS, scan("HCA-1", "HCA-2", "b mlx5_0"), {1: "a", 2: "a", 3: "b"}),
        (RAILS, scan("b mlx5_0", "b mlx5_1", "b mlx5_0"), {1: "a", 2: "a", 3: "b"}),
        (PLAIN, scan("a", "a", "a", "a"), {1: "a", 2: "a", 3: "b", 4: "b"}),
        (PLAIN, scan("c", "c", "b", "b"), {1: "c", 2: "c", 3: "b", 4: "b"}),
        (scan("a mlx5_0"), scan("localhost mlx5_0", "a mlx5_0"), {1: "guid-0x0000000000000001", 2: "a"}),
        (scan("a mlx5_0"), scan("a mlx5_0", "a mlx5_0"), {1: "a", 2: "a [0x0000000000000002]"}),
        (scan("a mlx5_0"), scan("leaf x", "leaf y"), {1: "leaf", 2: "leaf"}),
    ],
)
def test_known_adapters_stay_in_their_hosts(before: Fabric, now: Fabric, names: dict[int, str]) -> None:
    assert kept(before, now)[0] == names


def test_a_rail_back_in_its_host_leaves_one_host_with_all_cables() -> None:
    fabric, _ = keep_names(scan("a mlx5_0", "HCA-2", "b mlx5_0"), host_of_guid(RAILS))
    assert fabric.names == ("a", "b", "leaf")
    assert fabric.cable_count == 3
    assert keep_names(fabric, host_of_guid(RAILS))[1] == ()


def test_a_host_that_was_away_while_it_lost_its_name_keeps_it(registry: Registry) -> None:
    lost = ("a mlx5_0", "localhost mlx5_0")
    scans = [TWO, scan(*lost, only=[1]), scan(*lost), scan("a mlx5_0", "c mlx5_0")]
    for minute, fabric in enumerate(scans):
        registry.save(Intake(cluster="x", observed_at=at(minute), fabric=fabric, source="test"))
    hosts = [registry.fabrics.read("x", at(minute)).fabric.names for minute in range(4)]
    assert hosts == [("a", "b", "leaf"), ("a", "leaf"), ("a", "b", "leaf"), ("a", "c", "leaf")]


def test_jobs_on_hosts_that_lost_their_names_are_on_the_fabric(registry: Registry) -> None:
    warnings: list[str] = []
    for name in ("scan1.txt", "scan2.txt", "squeue.txt"):
        report = ingest(registry, [FOLDER / name], Options(cluster="hpc"))
        warnings += report.warnings
        assert report.receipt is not None
        assert not report.receipt.unknown_hosts
    fabric = registry.fabrics.read("hpc").fabric
    assert [fabric.names[host] for host in fabric.hosts] == [f"calc{number}" for number in range(1, 9)]
    assert "2 machines claim the name calc2" in warnings[0]
    assert [line.split(" keeps")[0] for line in warnings[1:]] == [f"host calc{n}" for n in (3, 5, 6, 7)]
    twice, lost = check(Subject(fabric=fabric), ["identities"])
    assert "calc2: calc2 (0xfeed0000000c0010), calc7 (0xfeed0000000c0060)" in twice.text
    assert "3 hosts are known by their GUIDs only, not by their descriptions: calc3 (0xf" in lost.text
    for job in ("900", "901"):
        hosts = registry.jobs.read(job, "hpc").job.hosts
        assert len(fabric.vertices(hosts)) == 2


MIXED = "infiniband/mixed-speeds-oversubscribed"


def richer_scan() -> Fabric:
    return fabric_of(IBNETDISCOVER, raw(f"{MIXED}/ibnetdiscover.txt"))


def links(change: str = "\0", by: str = "") -> Fabric:
    return fabric_of(IBLINKINFO, raw(f"{MIXED}/iblinkinfo-l.txt").replace(change, by))


def test_adapters_are_known_by_their_ports() -> None:
    found = restore_known_guids(links(), richer_scan())
    assert np.array_equal(found.adapters.guid, richer_scan().adapters.guid)
    assert np.array_equal(found.adapters.system_guid, richer_scan().adapters.system_guid)
    assert content_hash(canonical(replace(found, ports=richer_scan().ports))) == content_hash(
        canonical(richer_scan())
    )


def test_what_is_not_known_stays_and_adapters_with_a_guid_are_not_changed() -> None:
    found = restore_known_guids(links("0x0002c90000f00301", "0x0002c90000fff301"), richer_scan())
    assert (found.adapters.guid == 0).sum() == 1  # a port that was never seen
    nameless = links("cpu003 mlx5_0", "MT4129 ConnectX7   Mellanox Technologies")
    assert "cpu003" not in nameless.names
    assert "cpu003" in restore_known_guids(nameless, richer_scan()).names  # a made-up name gives way
    other = replace(richer_scan().adapters, guid=richer_scan().adapters.guid + np.uint64(1))
    swapped = replace(richer_scan(), adapters=other)
    assert np.array_equal(restore_known_guids(swapped, richer_scan()).adapters.guid, other.guid)


@pytest.mark.parametrize("richer_first", [True, False])
def test_a_scan_by_another_tool_an_hour_later_re_wires_none(registry: Registry, richer_first: bool) -> None:
    order = [richer_scan(), links()] if richer_first else [links(), richer_scan()]
    receipts = [
        registry.save(Intake(cluster="mixed", observed_at=at(60 * hour), fabric=fabric, source="test"))
        for hour, fabric in enumerate(order)
    ]
    found = [registry.fabrics.read("mixed", at(60 * hour)).fabric for hour in range(2)]
    changes = compare(*found)
    if richer_first:  # GUIDs seen first are restored; those seen later are not made known before
        assert (receipts[1].links_opened, receipts[1].links_closed) == (0, 0)
        assert changes.empty
    else:
        assert (changes.renamed, changes.hosts_appeared) == ((), ())
    ports = found[int(richer_first)].ports
    assert len(ports) == 269 + 388  # down, and those that say what they could be


def test_a_fabric_without_ports_does_not_take_the_place_of_one_with_them(registry: Registry) -> None:
    tree = fabric_of(SLURM_TOPOLOGY, raw("formats/topology.conf"))
    registry.save(Intake(cluster="hpc", observed_at=at(1), fabric=richer_scan(), source="ibnetdiscover"))
    with pytest.raises(PoorerSource, match="slurm-topology has no ports") as refused:
        registry.save(Intake(cluster="hpc", observed_at=at(2), fabric=tree, source="slurm-topology"))
    assert refused.value.cluster == "hpc"
    assert len(registry.fabrics.observations("hpc")) == 1
    # before there was a scan there is nothing that it could hide, and a scan comes after it as ever
    assert registry.save(Intake(cluster="hpc", observed_at=at(0), fabric=tree)).new_observation
    assert registry.save(Intake(cluster="other", observed_at=at(2), fabric=tree)).new_observation
    assert registry.save(Intake(cluster="other", observed_at=at(3), fabric=richer_scan())).new_observation
