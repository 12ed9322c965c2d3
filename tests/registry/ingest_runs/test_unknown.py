"""Data of hosts and devices that the fabric lacks: what is known is saved, the rest is counted and named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from registry.errors import UnknownName
from registry.ingest_runs.unknown import first_names
from registry.model import CounterSweep, HostOrder
from registry.model.intake import IngestedData, Intake, Receipt
from registry.registry import Registry
from tests.registry.fabrics.test_layouts import named
from tests.support.fat_tree import LEAF_GUID, SPINE_GUID, at, fat_tree

STRANGE_GUID = 0xBAD


@pytest.fixture
def toy(registry: Registry) -> Registry:
    """A registry with a fabric seen at the first minute."""
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    return registry


def order(*hosts: str) -> HostOrder:
    return HostOrder(hosts=hosts, source="rankfile", name=f"{'-'.join(hosts)}.txt")


def sweep(minute: float, *devices: tuple[int, int]) -> CounterSweep:
    """Port 1 of devices, each named by its GUID or its LID."""
    return CounterSweep.of(at(minute), {(*device, 1): {"xmit_bytes": (7, False)} for device in devices})


def intake(**data: object) -> Intake:
    return Intake(cluster="toy", observed_at=at(1), source="test", files=("f",), key="k", **data)  # type: ignore[arg-type]


PARTLY_KNOWN: dict[str, tuple[IngestedData, IngestedData, str]] = {
    "placements": (
        IngestedData(placements=(order("node01", "node00"), order("node01", "node77"))),
        IngestedData(placements=(order("node01", "node77"),)),
        "1 of 2 placements have ranks on hosts that the fabric lacks and are not saved: node01-node77.txt; "
        "hosts: node77 (--strict rejects the files)",
    ),
    "layouts": (
        IngestedData(layouts=(named("node77"), named("node00"))),
        IngestedData(layouts=(named("node77"),)),
        "1 of 2 layouts are of hosts that the fabric lacks and are not saved: node77 "
        "(--strict rejects the files)",
    ),
    "counters": (
        IngestedData(counters=(sweep(1, (LEAF_GUID, 0), (STRANGE_GUID, 0), (0, 4000)),)),
        IngestedData(counters=(sweep(1, (STRANGE_GUID, 0), (0, 4000)),)),
        "the fabric lacks 2 of 3 devices with counters: LID 4000, GUID 0x0000000000000bad; those with a LID "
        "only are left out (--strict rejects the files)",
    ),
}
"""Kind: data of which a part is known, the unknown part alone, the warning about the first."""


def save(registry: Registry, data: IngestedData, *, strict: bool = False) -> Receipt:
    return registry.save(replace(intake(**data.kinds()), strict=strict))


@pytest.mark.parametrize("kind", PARTLY_KNOWN)
def test_what_is_known_is_saved_and_the_rest_is_named(toy: Registry, kind: str) -> None:
    data, _, warning = PARTLY_KNOWN[kind]
    receipt = save(toy, data)
    assert receipt.new(kind) == 1
    assert receipt.warnings == (warning,)
    assert bool(receipt.unknown_hosts) != bool(receipt.unknown_devices)
    assert toy.same("k") is None  # the same files again are read again, and warned about
    again = save(toy, data)
    assert (again.new(kind), again.warnings) == (0, (warning,))


@pytest.mark.parametrize("kind", PARTLY_KNOWN)
def test_it_is_rejected_if_that_is_wanted_or_if_nothing_is_known(toy: Registry, kind: str) -> None:
    partly, not_at_all, _ = PARTLY_KNOWN[kind]
    before = toy.database.query("MATCH (n) WHERE NOT n:IngestRun RETURN count(n)")[1]
    for data, strict in ((partly, True), (not_at_all, False)):
        with pytest.raises(UnknownName, match=r"node77|LID '4000'"):
            save(toy, data, strict=strict)
        assert toy.runs.list("toy")[0].outcome == "failed"
    assert toy.database.query("MATCH (n) WHERE NOT n:IngestRun RETURN count(n)")[1] == before


def test_unknown_hosts_and_devices_are_in_the_receipt(toy: Registry) -> None:
    parts = [data for data, _, _ in PARTLY_KNOWN.values()]
    merged = {name: value for data in parts for name, value in data.kinds().items()}
    receipt = save(toy, IngestedData(**merged))
    assert receipt.unknown_hosts == ("node77",)
    assert receipt.unknown_devices == ("LID 4000", "GUID 0x0000000000000bad")
    stored = toy.placements.read(receipt.ids("placements")[0])
    assert stored.hosts == ("node01", "node00")
    assert [one.host for one in toy.layouts.list("toy")] == ["node00"]
    # GUIDs stay: ports count as soon as the fabric has them; LIDs are given to others
    assert toy.counters.read("toy").guid.tolist() == sorted([LEAF_GUID, STRANGE_GUID])


def test_a_sweep_without_any_known_device_does_not_cost_the_others(toy: Registry) -> None:
    receipt = save(toy, IngestedData(counters=(sweep(1, (STRANGE_GUID, 0)), sweep(2, (SPINE_GUID, 0)))))
    assert (receipt.new("counters"), toy.counters.read("toy").guid.tolist()) == (1, [SPINE_GUID])
    assert "as are 1 of 2 sweeps without any known device" in receipt.warnings[0]


def test_a_host_that_was_retired_and_a_switch_take_no_placement(toy: Registry) -> None:
    """A placement needs the hosts of the fabric of its time; jobs need only hosts that were there once."""
    with pytest.raises(UnknownName, match="no host 'leaf0'"):
        save(toy, IngestedData(placements=(order("leaf0"),)))
    toy.save(Intake(cluster="toy", observed_at=at(5), fabric=fat_tree(leaves=1)))
    data = IngestedData(placements=(order("node03"), order("node00")))
    for minute, unknown in ((1, ()), (6, ("node03",))):
        found = toy.save(replace(intake(**data.kinds()), observed_at=at(minute)))
        assert found.unknown_hosts == unknown


def test_the_first_names_and_the_number_of_the_others() -> None:
    assert first_names(list("abcde")) == "a, b, c, d, e"
    assert first_names(list("abcdefg")) == "a, b, c, d, e and 2 more"
