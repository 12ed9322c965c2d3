"""Names of ports: that of the device and its number, with the adapter where several have that number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from registry.model import NO_PORT, Adapters, Fabric
from registry.model.port_names import ENDS, end_name, end_parts, port_name, port_names
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import adapter_fabrics


def rails(*described: str, guids: tuple[int, ...] = (1, 2)) -> Fabric:
    """A host h with two adapters, port 1 of each connected to ports 7 and 8 of a switch s."""
    fabric = Fabric.from_arcs(
        ["h", "s"], [0, 0, 1, 1], [1, 1, 0, 0], 1.0, slots=[1, 0], forwards=[False, True]
    )
    links, number = fabric.links, np.array([0, 1, 0, 1])
    adapters = Adapters(
        names=described,
        guid=np.array(guids, np.uint64),
        system_guid=np.zeros(2, np.uint64),
        host=np.zeros(2, np.int32),
    )
    ends = {
        f"{end}_{what}": np.where(getattr(links, end) == 0, host, switch)
        for end in ("source", "target")
        for what, host, switch in (("port", 1, 7 + number), ("adapter", number, NO_PORT))
    }
    return replace(fabric, adapters=adapters, links=replace(links, **ends))


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (("h mlx5_0", "h mlx5_1"), ["h mlx5_0:1", "h mlx5_1:1", "s:7", "s:8"]),
        (("x HCA-1", "y HCA-1"), ["h 0x0000000000000001:1", "h 0x0000000000000002:1", "s:7", "s:8"]),
        (("", "h two"), ["h 0x0000000000000001:1", "h two:1", "s:7", "s:8"]),
    ],
)
def test_an_adapter_is_named_where_several_have_that_port(
    described: tuple[str, str], expected: list[str]
) -> None:
    fabric = rails(*described)
    assert [end_name(fabric, row) for row in range(4)] == expected
    assert [end_name(fabric, row, "target") for row in range(4)] == [*expected[2:], *expected[:2]]


@settings(max_examples=40)
@given(adapter_fabrics())
def test_names_of_all_ports_are_unique_and_those_of_each(fabric: Fabric) -> None:
    texts, *places = port_names(fabric)
    assert texts[0] == ""
    assert len(set(texts)) == len(texts)
    for end, place in zip(ENDS, places, strict=True):
        parts = [end_parts(fabric, row, end) for row in range(len(fabric.links))]
        assert [texts[one] for one in place.tolist()] == [port for _, port in parts]
        assert len({"".join(one) for one in parts}) == len(parts)
        assert {name for name, _ in parts} <= set(fabric.names)


def test_a_port_that_is_known_by_its_number_needs_no_name_of_the_adapter() -> None:
    assert (port_name("leaf", 3), port_name("leaf", NO_PORT)) == ("leaf:3", "leaf")
    fabric = infiniband("torus-4x4x4-dor")
    links = fabric.links
    for row, (vertex, port) in enumerate(zip(links.source, links.source_port, strict=True)):
        assert end_parts(fabric, row) == (fabric.names[vertex], f":{port}")
