"""Wrong arguments of the data types: each error names the argument and what it must be."""

# mypy: disable-error-code="arg-type, dict-item"

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from registry.errors import InvalidValue
from registry.interchange import from_networkx
from registry.model import Allocation, Fabric, HostOrder, Job, Links, Placement, Profile, as_utc
from registry.model.arguments import content, sequence_of, whole_number
from registry.model.arrays import readonly

PAIR = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)
PROFILE = Profile.from_edges([0], [1], [8.0])
BOTH = Allocation.of(PAIR, ["a", "b"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Allocation.of(PAIR, [0.7, 1.2]), "Allocation.hosts: must be whole numbers"),
        (lambda: Allocation.of(PAIR, [[0, 1]]), "Allocation.hosts: has 2 dimensions, not 1"),
        (lambda: Allocation.of(PAIR, "ab"), "Allocation.hosts: must be a sequence, not 'ab'"),
        (lambda: Allocation.of(PAIR, ["a", 1]), "Allocation.hosts: must be str, not 1"),
        (lambda: Allocation.of(PAIR, 1), "Allocation.hosts: must be a sequence, not 1"),
        (lambda: Allocation.of(PAIR, [0, 2]), "Allocation.hosts: outside 0 .. 1"),
        (lambda: Allocation.of(PAIR, [0, 1], 1.5), "Allocation.slots: must be whole numbers"),
        (lambda: Allocation.of(PAIR, [0, 1], [1.5, 1]), "Allocation.slots: must be whole numbers"),
        (
            lambda: Allocation.of(PAIR, [0, 1], np.array([1.5, 1], object)),
            "Allocation.slots: does not fit int32",
        ),
        (lambda: Allocation.of(PAIR, [0, 1], [1, 2, 3]), "Allocation.slots: has 3 entries, not 2"),
        (lambda: Allocation.of(PAIR, [0, 1], "2"), "Allocation.slots: must be numbers"),
        (lambda: Allocation.of(PAIR, [0, 1], [None, 1]), "Allocation.slots: must be numbers"),
        (lambda: Allocation.of(PAIR, [0, 1], 1 << 40), "Allocation.slots: does not fit int32"),
        (lambda: Allocation.of(PROFILE, [0, 1]), "fabric: must be a Fabric, not a Profile"),
        (lambda: Allocation(hosts=[0.5], slots=[1]), "Allocation.hosts: must be whole numbers"),
        (lambda: PAIR.vertices("ab"), "hosts: must be a sequence, not 'ab'"),
        (
            lambda: Fabric.from_arcs("ab", [0], [1], 1.0),
            "Fabric.names: must be a sequence, not 'ab'",
        ),
        (lambda: Fabric.from_arcs(["a", "b"], [0.5], [1], 1.0), "Links.source: must be whole numbers"),
        (lambda: Fabric.from_arcs(["a", "b"], [0, 1], [1], 1.0), "Links.target: has 1 entries, not 2"),
        (
            lambda: Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], [1.0] * 3),
            "Links.capacity: has 3 entries, not 2",
        ),
        (
            lambda: Fabric.from_arcs(["a", "b"], [0], [1], 1.0, slots=1.5),
            "Fabric.slots: must be whole numbers",
        ),
        (
            lambda: Fabric.from_arcs(["a", "b"], [0], [1], 1.0, slots=[1]),
            "Fabric.slots: has 1 entries, not 2",
        ),
        (
            lambda: Fabric.from_arcs(["a", "b"], [0], [1], 1.0, forwards=[True] * 3),
            "Fabric.forwards: has 3 entries, not 2",
        ),
        (lambda: Links.of([0, [1]], [1], 1.0), "Links.source: must be numbers in rows of one length"),
        (lambda: Profile.from_edges([0, 1], [1], [8.0]), "Profile.target: has 1 entries, not 2"),
        (lambda: Profile.from_edges([0], [1], [8.0, 9.0]), "Profile.bytes: has 2 entries, not 1"),
        (lambda: Profile.from_edges([0], [1], ["many"]), "Profile.bytes: must be numbers"),
        (lambda: Profile.from_edges([0], [1.5], [8.0]), "Profile.target: must be whole numbers"),
        (
            lambda: Profile.from_edges([0], [1], [8.0], messages=[1, 2]),
            "Profile.messages: has 2 entries, not 1",
        ),
        (
            lambda: Profile.from_edges([0], [1], [8.0], ranks=2.5),
            "Profile.ranks: must be a whole number, not 2.5",
        ),
        (
            lambda: Placement(host_of_rank=[0, 0.5], allocation=BOTH, strategy="given"),
            "Placement.host_of_rank: must be whole numbers",
        ),
        (
            lambda: Placement(host_of_rank=[0, 1], allocation=np.array([0, 1]), strategy="given"),
            "Placement.allocation: must be an Allocation, not an array",
        ),
        (lambda: Allocation.of(PAIR, {"a": 2}), "Allocation.hosts: must be a sequence, not {'a': 2}"),
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
        (lambda: as_utc("yesterday", "at"), "at: 'yesterday' is no time such as 2026-11-23T08:00+01:00"),
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
