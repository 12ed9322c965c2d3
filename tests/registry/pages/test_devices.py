"""History of a device, compared with the states in which it was saved."""

from __future__ import annotations

import pytest

from registry.pages.devices import (
    APPEARED,
    CHANGED_SPEED,
    REMOVED,
    RENAMED,
    DeviceEvent,
    DeviceHistory,
    read_device_history,
)
from registry.registry import Registry
from tests.registry.pages.conftest import WHOLE, see
from tests.support.fat_tree import at, fat_tree


def of(registry: Registry, name: str) -> DeviceHistory:
    return read_device_history(registry.database, "toy", WHOLE, WHOLE.names.index(name))


def test_lost_returned_and_slower_cables_are_events_of_both_ends(several: Registry) -> None:
    # cable 0: leaf0:3 to spine0:1, lost at 20, back at 30; cable 1: leaf0:4 to spine1:1, half the speed at 50
    assert of(several, "leaf0") == DeviceHistory(
        at(10),
        (
            DeviceEvent(at(50), CHANGED_SPEED, 4, "spine1", 1),
            DeviceEvent(at(30), APPEARED, 3, "spine0", 1),
            DeviceEvent(at(20), REMOVED, 3, "spine0", 1),
        ),
    )
    assert of(several, "spine0").events == (
        DeviceEvent(at(30), APPEARED, 1, "leaf0", 3),
        DeviceEvent(at(20), REMOVED, 1, "leaf0", 3),
    )


def test_a_device_whose_cables_never_changed_has_no_events(several: Registry) -> None:
    assert of(several, "node00") == DeviceHistory(at(10), ())


def test_a_new_name_of_a_switch_is_an_event(registry: Registry) -> None:
    see(registry, "toy", 10, fabric=WHOLE)
    see(registry, "toy", 20, fabric=fat_tree(renamed={"leaf1": "leaf-b"}))
    assert of(registry, "leaf1").events == (DeviceEvent(at(20), RENAMED, -1, "leaf-b", -1),)


def test_a_device_that_was_never_observed_has_no_history(several: Registry) -> None:
    other = fat_tree(leaves=9)
    found = read_device_history(several.database, "toy", other, other.names.index("leaf8"))
    assert found == DeviceHistory(None, ())


@pytest.mark.parametrize("name", ["leaf1", "node03"])
def test_the_cables_of_a_device_seen_later_than_the_cluster_are_not_new(
    registry: Registry, name: str
) -> None:
    see(registry, "toy", 10, fabric=fat_tree(leaves=1))
    see(registry, "toy", 20, fabric=WHOLE)
    assert of(registry, name) == DeviceHistory(at(20), ())
