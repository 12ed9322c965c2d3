"""Hosts keep their names by the GUIDs of their adapters, whatever these describe themselves as."""

from __future__ import annotations

import numpy as np
import pytest

from ingest.options import Options
from ingest.pipeline import ingest
from registry.fabrics.known_names import host_of_guid, keep_names
from registry.model import Fabric
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.described_adapters import owners, scan
from tests.support.fat_tree import at
from tests.support.inputs import DATA

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
    for job in ("900", "901"):
        hosts = registry.jobs.read(job, "hpc").job.hosts
        assert len(fabric.vertices(hosts)) == 2
