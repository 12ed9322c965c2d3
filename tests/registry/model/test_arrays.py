"""Wrong arguments of the data types, by name; values as text, tables and graphs."""

# mypy: disable-error-code="arg-type, dict-item"

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import registry
from registry.errors import InvalidValue
from registry.interchange import from_networkx
from registry.model import Allocation, Evaluation, Fabric, HostOrder, Job, Links, Placement, Profile, as_utc
from registry.model.arrays import readonly
from registry.model.views import WIDTH, Rows, content, one_line, sequence_of, whole_number
from registry.store.fabrics import Snapshot
from registry.store.placement_rows import PlacementRecord
from registry.store.profiles import StoredProfile
from registry.units import MOMENTS
from tests.support.fat_tree import fat_tree

PAIR = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)
PROFILE = Profile.from_edges([0], [1], [8.0])
BOTH = Allocation.of(PAIR, ["a", "b"])


on, arcs, edges = Allocation.of, Fabric.from_arcs, Profile.from_edges


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: on(PAIR, [0.7, 1.2]), "Allocation.hosts: must be whole numbers"),
        (lambda: on(PAIR, [[0, 1]]), "Allocation.hosts: has 2 dimensions, not 1"),
        (lambda: on(PAIR, "ab"), "Allocation.hosts: must be a sequence, not 'ab'"),
        (lambda: on(PAIR, ["a", 1]), "Allocation.hosts: must be str, not 1"),
        (lambda: on(PAIR, 1), "Allocation.hosts: must be a sequence, not 1"),
        (lambda: on(PAIR, [0, 2]), "Allocation.hosts: outside 0 .. 1"),
        (lambda: on(PAIR, [0, 1], 1.5), "Allocation.slots: must be whole numbers"),
        (lambda: on(PAIR, [0, 1], [1.5, 1]), "Allocation.slots: must be whole numbers"),
        (lambda: on(PAIR, [0, 1], np.array([1.5, 1], object)), "Allocation.slots: does not fit int32"),
        (lambda: on(PAIR, [0, 1], [1, 2, 3]), "Allocation.slots: has 3 entries, not 2"),
        (lambda: on(PAIR, [0, 1], "2"), "Allocation.slots: must be numbers"),
        (lambda: on(PAIR, [0, 1], [None, 1]), "Allocation.slots: must be numbers"),
        (lambda: on(PAIR, [0, 1], 1 << 40), "Allocation.slots: does not fit int32"),
        (lambda: on(PROFILE, [0, 1]), "fabric: must be a Fabric, not a Profile"),
        (lambda: Allocation(hosts=[0.5], slots=[1]), "Allocation.hosts: must be whole numbers"),
        (lambda: PAIR.vertices("ab"), "hosts: must be a sequence, not 'ab'"),
        (lambda: arcs("ab", [0], [1], 1.0), "Fabric.names: must be a sequence, not 'ab'"),
        (lambda: arcs(["a", "b"], [0.5], [1], 1.0), "Links.source: must be whole numbers"),
        (lambda: arcs(["a", "b"], [0, 1], [1], 1.0), "Links.target: has 1 entries, not 2"),
        (lambda: Links.of([0], [1], [1.0], cables=[0]), "Links.cables: must be at least 1"),
        (lambda: arcs(["a", "b"], [0, 1], [1, 0], [1.0] * 3), "Links.capacity: has 3 entries, not 2"),
        (lambda: arcs(["a", "b"], [0], [1], 1.0, slots=1.5), "Fabric.slots: must be whole numbers"),
        (lambda: arcs(["a", "b"], [0], [1], 1.0, slots=[1]), "Fabric.slots: has 1 entries, not 2"),
        (
            lambda: arcs(["a", "b"], [0], [1], 1.0, forwards=[True] * 3),
            "Fabric.forwards: has 3 entries, not 2",
        ),
        (lambda: Links.of([0, [1]], [1], 1.0), "Links.source: must be numbers in rows of one length"),
        (lambda: edges([0, 1], [1], [8.0]), "Profile.target: has 1 entries, not 2"),
        (lambda: edges([0], [1], [8.0, 9.0]), "Profile.bytes: has 2 entries, not 1"),
        (lambda: edges([0], [1], ["many"]), "Profile.bytes: must be numbers"),
        (lambda: edges([0], [1.5], [8.0]), "Profile.target: must be whole numbers"),
        (lambda: edges([0], [1], [8.0], messages=[1, 2]), "Profile.messages: has 2 entries, not 1"),
        (lambda: edges([0], [1], [8.0], ranks=2.5), "Profile.ranks: must be a whole number, not 2.5"),
        (
            lambda: Placement(host_of_rank=[0, 0.5], allocation=BOTH, strategy="given"),
            "Placement.host_of_rank: must be whole numbers",
        ),
        (
            lambda: Placement(host_of_rank=[0, 1], allocation=np.array([0, 1]), strategy="given"),
            "Placement.allocation: must be an Allocation, not an array",
        ),
        (lambda: on(PAIR, {"a": 2}), "Allocation.hosts: must be a sequence, not {'a': 2}"),
        (lambda: HostOrder(hosts="ab"), "HostOrder.hosts: must be a sequence, not 'ab'"),
        (lambda: HostOrder(hosts=["a"]).on(PROFILE), "fabric: must be a Fabric, not a Profile"),
        (lambda: Job(id="1", hosts="ab", slots=(1, 1)), "Job.hosts: must be a sequence, not 'ab'"),
        (lambda: Job(id="1", hosts=("a",), slots=(1.5,)), "Job.slots: must be whole numbers of at least 1"),
        (lambda: Job(id=5), "Job.id: must be a text that is not empty"),
        (lambda: from_networkx(5), "graph: must be a Graph, not an int"),
        (lambda: whole_number("3", "seed"), "seed: must be a whole number, not '3'"),
        (lambda: whole_number(True, "seed"), "seed: must be a whole number, not True"),
        (lambda: whole_number(float("nan"), "seed"), "seed: must be a whole number, not nan"),
        (lambda: whole_number(-1, "seed"), "seed: must not be below zero"),
        (lambda: whole_number(0, "workers", 1), "workers: must be at least 1"),
        (lambda: as_utc("soon", "at"), f"at: 'soon' is no time such as {MOMENTS}"),
        (lambda: as_utc(5, "at"), "at: must be a datetime or text, not 5"),
    ],
)
def test_an_error_names_the_argument(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        call()
    assert str(caught.value) == message


def test_other_forms_of_a_value_are_accepted() -> None:
    assert Allocation.of(PAIR, np.array([0.0, 1.0]), 2.0).slots.tolist() == [2, 2]
    assert (whole_number(1e6, "steps"), type(whole_number(np.int32(3), "seed"))) == (1_000_000, int)
    assert sequence_of((name for name in ("b", "a")), str, "hosts") == ("b", "a")
    assert as_utc("2026-11-23T08:00+01:00") == as_utc("2026-11-23T07:00Z") == as_utc("2026-11-23T07:00")


def test_hosts_forward_only_in_fabrics_without_switches() -> None:
    ends: dict[str, Any] = {"source": [0, 1, 1, 2], "target": [1, 0, 2, 1], "capacity": 1.0}
    assert Fabric.from_arcs(["a", "b", "c"], **ends).forwards.tolist() == [True] * 3
    star = Fabric.from_arcs(["a", "s", "c"], **ends, slots=[1, 0, 1])
    assert star.forwards.tolist() == [False, True, False]
    asked = Fabric.from_arcs(["a", "s", "c"], **ends, slots=[1, 0, 1], forwards=True)
    assert asked.forwards.tolist() == [True] * 3


def test_an_object_that_holds_the_value_is_accepted() -> None:
    holder = SimpleNamespace(fabric=PAIR, profile="text")
    assert content(holder, Fabric, "fabric") is PAIR
    with pytest.raises(InvalidValue, match="profile: must be a Profile, not a SimpleNamespace"):
        content(holder, Profile, "profile")
    assert Allocation.of(holder, ["b"]).hosts.tolist() == [1]


def test_times_are_kept_and_numbers_are_no_times() -> None:
    times = np.array(["2026-01-01T08:00:00.000001"], "datetime64[us]")
    kept = readonly(times, times.dtype, "X.at")
    assert kept[0] == times[0]
    assert not kept.flags.writeable
    with pytest.raises(InvalidValue, match=r"X\.at: must be times"):
        readonly([1.0], times.dtype, "X.at")
    with pytest.raises(InvalidValue, match=r"X\.at: must be numbers"):
        readonly(times, np.int64, "X.at")


NOW = datetime(2026, 11, 23, tzinfo=UTC)
MANY = 5_000
NAMES = tuple(f"node{number:05}" for number in range(MANY))
RING = Fabric.from_arcs(NAMES, range(MANY), np.r_[1:MANY, 0], 1.0)
LARGE = Profile.from_edges(range(MANY), np.r_[1:MANY, 0], np.full(MANY, 8.0), name="a\n\x1b[31mred" * 40)
ALL = Allocation.of(RING, range(MANY))
PLACED = Placement(host_of_rank=ALL.hosts, allocation=ALL, strategy="given", parameters={"a" * 90: 1})
SNAPSHOT = Snapshot(cluster="toy", id="f" * 64, observed_at=NOW, routing=None, fabric=RING)


@pytest.mark.parametrize(
    "value",
    [
        *(RING, RING.links, RING.adapters, LARGE, ALL, PLACED, SNAPSHOT),
        StoredProfile(id="1", profile=LARGE, names=NAMES, recorded_at=NOW),
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
    assert repr(on(fat_tree(), ["node00", "node01"])) == "Allocation(hosts=int32[2], slots=int32[2])"
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
    text = "Thing(count=2, items=<4 items>, values=None)"
    assert repr(Thing(count=2, items=(1, 2, 3, 4), values=None)) == text


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
    bound = replace(placed, core_of_rank=cores, cpu_of_rank=cores)
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
