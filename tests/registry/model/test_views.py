"""Values as text, tables and graphs: one line each, whatever their size."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import registry
from registry.fabrics.fabrics import Snapshot
from registry.model import Allocation, Evaluation, Fabric, HostOrder, Job, Placement, Profile
from registry.model.views import WIDTH, Rows, one_line
from registry.profiles import StoredProfile
from registry.records.placements.records import PlacementRecord
from tests.support.fat_tree import fat_tree

NOW = datetime(2026, 11, 23, tzinfo=UTC)
MANY = 5_000
NAMES = tuple(f"node{number:05}" for number in range(MANY))
RING = Fabric.from_arcs(NAMES, range(MANY), np.r_[1:MANY, 0], 1.0)
PROFILE = Profile.from_edges(range(MANY), np.r_[1:MANY, 0], np.full(MANY, 8.0), name="a\n\x1b[31mred" * 40)
ALL = Allocation.of(RING, range(MANY))
PLACED = Placement(host_of_rank=ALL.hosts, allocation=ALL, strategy="given", parameters={"a" * 90: 1})
SNAPSHOT = Snapshot(cluster="toy", id="f" * 64, observed_at=NOW, routing=None, fabric=RING)


@pytest.mark.parametrize(
    "value",
    [
        RING,
        RING.links,
        RING.adapters,
        PROFILE,
        ALL,
        PLACED,
        SNAPSHOT,
        StoredProfile(id="1", profile=PROFILE, names=NAMES, recorded_at=NOW),
        Job(id="1", hosts=NAMES, slots=(1,) * MANY),
        HostOrder(hosts=NAMES),
        PlacementRecord(cluster="toy", content="1", placement=PLACED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_text_of_a_large_value_is_one_short_line(value: object) -> None:
    assert repr(value).startswith(f"{type(value).__name__}(")
    assert len(repr(value)) <= WIDTH
    assert repr(value).isprintable()


def test_the_text_names_what_is_inside() -> None:
    assert repr(fat_tree()) == "Fabric(4 hosts, 4 switches, 8 cables)"
    assert (
        repr(Allocation.of(fat_tree(), ["node00", "node01"])) == "Allocation(hosts=int32[2], slots=int32[2])"
    )
    profile = Profile.from_edges([0], [1], [8.0], name="pair")
    assert repr(profile) == "Profile('pair', 2 ranks, 1 pairs, 8 bytes)"
    assert repr(SNAPSHOT).startswith("Snapshot(cluster='toy', id='fff")
    assert "fabric=Fabric(5000 hosts, 0 switches" in repr(SNAPSHOT)


def test_defaults_are_left_out_and_arrays_are_compared_with_none() -> None:
    @dataclass
    class Thing:
        name: str = ""
        count: int = 0
        items: tuple[int, ...] = (1, 2)
        values: Any = field(default_factory=lambda: np.zeros((2, 3)))

        __repr__ = one_line

    assert repr(Thing()) == "Thing(values=float64[2, 3])"
    assert repr(Thing(count=2, items=(1, 2, 3, 4), values=None)) == (
        "Thing(count=2, items=<4 items>, values=None)"
    )


def stored_classes() -> Iterator[type]:
    """Yield the dataclasses of the registry over arrays, which compare by identity."""
    for module in pkgutil.walk_packages(registry.__path__, "registry."):
        for value in vars(importlib.import_module(module.name)).values():
            local = isinstance(value, type) and value.__module__ == module.name
            if local and not getattr(getattr(value, "__dataclass_params__", None), "eq", True):
                yield value


def test_every_type_over_arrays_has_a_short_text() -> None:
    classes = list(stored_classes())
    assert len(classes) > 30
    own = (Fabric, Profile)
    long = [one.__name__ for one in classes if vars(one)["__repr__"] is not one_line and one not in own]
    assert long == []


def test_tables_have_a_row_per_item() -> None:
    fabric = fat_tree()
    links = fabric.to_pandas()
    assert len(links) == len(fabric.links)
    assert set(links["source"]) == set(fabric.names)
    assert fabric.to_networkx().number_of_nodes() == 8
    assert Profile.from_edges([0], [1], [8.0]).to_networkx().edges[0, 1]["bytes"] == 8.0
    allocation = Allocation.of(fabric, ["node00", "node01"], 2)
    placed = Placement(host_of_rank=allocation.hosts[[0, 1, 0]], allocation=allocation, strategy="given")
    assert placed.to_pandas()["slot"].tolist() == [0, 0, 1]
    cores = np.array([0, 3, 1], np.int32)
    bound = Placement(
        host_of_rank=placed.host_of_rank,
        allocation=allocation,
        strategy="given",
        core_of_rank=cores,
        cpu_of_rank=cores,
    )
    assert list(bound.to_pandas().columns) == ["rank", "host", "slot", "core", "cpu"]


def test_a_table_of_an_evaluation_has_a_row_per_known_metric() -> None:
    names = ("congestion_seconds", "network_congestion_seconds", "hop_bytes", "total_bytes")
    numbers: dict[str, Any] = dict.fromkeys((*names, "average_dilation", "max_dilation"), 2.0)
    evaluation = Evaluation(routing="tables", rails="", link_bytes=np.zeros(3), **numbers)
    table = evaluation.to_pandas().set_index("metric")
    assert table.loc["congestion_seconds", "value"] == 2.0
    assert np.isnan(table.loc["hop_bytes", "bound"])
    assert "message_dilation" not in table.index
    assert Rows([{"a": 1}, {"a": 2}]).to_pandas()["a"].tolist() == [1, 2]
    assert len(Rows().to_pandas()) == 0


def test_the_package_lists_and_loads_its_names() -> None:
    assert dir(registry) == sorted(registry.__all__)
    assert all(getattr(registry, name).__name__ == name for name in registry.__all__)
    with pytest.raises(AttributeError, match="'Fabrik'"):
        registry.Fabrik  # noqa: B018
