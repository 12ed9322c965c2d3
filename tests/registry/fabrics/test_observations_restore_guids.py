"""A poorer tool's scan after a richer one's: the same adapters, and nothing that looks re-wired."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ingest.formats.fabrics import iblinkinfo, ibnetdiscover, slurm_topology
from registry.errors import PoorerSource
from registry.fabrics.changes import compare
from registry.fabrics.contents import canonical, content_hash
from registry.fabrics.observations import restore_known_guids
from registry.model import Fabric
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.fat_tree import at
from tests.support.ibnetdiscover_scans import raw
from tests.support.inputs import fabric_of

FOLDER = "infiniband/mixed-speeds-oversubscribed"


def scan() -> Fabric:
    return fabric_of(ibnetdiscover, raw(f"{FOLDER}/ibnetdiscover.txt"))


def links(change: str = "\0", by: str = "") -> Fabric:
    return fabric_of(iblinkinfo, raw(f"{FOLDER}/iblinkinfo-l.txt").replace(change, by))


def test_adapters_are_known_by_their_ports() -> None:
    found = restore_known_guids(links(), scan())
    assert np.array_equal(found.adapters.guid, scan().adapters.guid)
    assert np.array_equal(found.adapters.system_guid, scan().adapters.system_guid)
    assert content_hash(canonical(replace(found, ports=scan().ports))) == content_hash(canonical(scan()))


def test_what_is_not_known_stays_and_adapters_with_a_guid_are_not_changed() -> None:
    found = restore_known_guids(links("0x0002c90000f00301", "0x0002c90000fff301"), scan())
    assert (found.adapters.guid == 0).sum() == 1  # a port that was never seen
    nameless = links("cpu003 mlx5_0", "MT4129 ConnectX7   Mellanox Technologies")
    assert "cpu003" not in nameless.names
    assert "cpu003" in restore_known_guids(nameless, scan()).names  # a made-up name gives way
    other = replace(scan().adapters, guid=scan().adapters.guid + np.uint64(1))
    swapped = replace(scan(), adapters=other)
    assert np.array_equal(restore_known_guids(swapped, scan()).adapters.guid, other.guid)


@pytest.mark.parametrize("richer_first", [True, False])
def test_a_scan_by_another_tool_an_hour_later_re_wires_none(registry: Registry, richer_first: bool) -> None:
    order = [scan(), links()] if richer_first else [links(), scan()]
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
    tree = fabric_of(slurm_topology, raw("formats/topology.conf"))
    registry.save(Intake(cluster="hpc", observed_at=at(1), fabric=scan(), source="ibnetdiscover"))
    with pytest.raises(PoorerSource, match="slurm-topology has no ports") as refused:
        registry.save(Intake(cluster="hpc", observed_at=at(2), fabric=tree, source="slurm-topology"))
    assert refused.value.cluster == "hpc"
    assert len(registry.fabrics.observations("hpc")) == 1
    # before there was a scan there is nothing that it could hide, and a scan comes after it as ever
    assert registry.save(Intake(cluster="hpc", observed_at=at(0), fabric=tree)).new_observation
    assert registry.save(Intake(cluster="other", observed_at=at(2), fabric=tree)).new_observation
    assert registry.save(Intake(cluster="other", observed_at=at(3), fabric=scan())).new_observation
