"""Networks that are trees are written as they are, with every level."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.catalog import Parser
from ingest.formats.fabrics import slurm_topology, slurm_topology_yaml
from registry.exports.catalog import write
from registry.exports.switch_tree import tiers
from registry.model import HOST, Fabric
from tests.support.inputs import fabric_of, read

FORMATS: list[tuple[str, Parser]] = [
    ("slurm-topology", slurm_topology),
    ("slurm-topology-yaml", slurm_topology_yaml),
]
TWO_FABRICS = fabric_of(slurm_topology, read("formats/topology_two_fabrics.conf"))


def without_levels(fabric: Fabric) -> Fabric:
    """The same links as a scan gives them."""
    links = fabric.links
    return Fabric.from_arcs(
        fabric.names, links.source, links.target, links.capacity, slots=fabric.slots, forwards=False
    )


def cables(fabric: Fabric) -> set[tuple[str, str]]:
    ends = zip(fabric.links.source.tolist(), fabric.links.target.tolist(), strict=True)
    return {(fabric.names[a], fabric.names[b]) for a, b in ends}


@st.composite
def trees(draw: st.DrawFn) -> str:
    """A topology.conf of one or several trees, with leaves at any level."""
    lines, above = [], [f"root{number}" for number in range(draw(st.integers(1, 2)))]
    for name in above:
        inside = [f"{name}x{child}" for child in range(draw(st.integers(0, 3)))] if len(name) < 11 else []
        lines.append(
            f"SwitchName={name} " + (f"Switches={','.join(inside)}" if inside else f"Nodes={name}n[1-2]")
        )
        above += inside
    return "\n".join(draw(st.permutations(lines)))


@pytest.mark.parametrize(("format", "reader"), FORMATS)
def test_a_leaf_beside_spines_stays_directly_below_the_root(format: str, reader: Parser) -> None:
    text = write(format, TWO_FABRICS)
    assert "# no hosts below: unknown\n" in text
    assert cables(fabric_of(reader, text)) == cables(TWO_FABRICS)


def test_the_lines_are_those_of_the_operator() -> None:
    assert write("slurm-topology", TWO_FABRICS).splitlines()[-4:] == [
        "SwitchName=fab-b Switches=b-leaf[1-2]",
        "SwitchName=a-spine1 Switches=a-leaf[1-2]",
        "SwitchName=a-spine2 Switches=a-leaf3",
        "SwitchName=fab-a Switches=a-spine[1-2],fab-a.unknown",
    ]


@pytest.mark.parametrize(("format", "reader"), FORMATS)
@given(trees())
def test_any_tree_of_slurm_is_written_with_every_level(format: str, reader: Parser, text: str) -> None:
    fabric = fabric_of(slurm_topology, text)
    found = fabric_of(reader, write(format, fabric))
    assert cables(found) == cables(fabric)
    assert found.names == fabric.names


def test_a_scanned_tree_has_its_middle_at_the_top_and_no_switch_with_a_single_one_below() -> None:
    found = tiers(without_levels(TWO_FABRICS))
    children = {tier.name: set(tier.children) for tier in found.tiers if tier.children}
    assert children == {
        "fab-a": {"a-spine1", "a-leaf3", "fab-a.unknown"},
        "a-spine1": {"a-leaf1", "a-leaf2"},
        "fab-b": {"b-leaf1", "b-leaf2"},
    }
    assert found.empty == ("unknown",)
    chain = "SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Switches=d,e\n"
    chain += "SwitchName=d Nodes=n1\nSwitchName=e Switches=f\nSwitchName=f Nodes=n2"
    (root, *leaves) = tiers(without_levels(fabric_of(slurm_topology, chain))).tiers
    assert (root.name, set(root.children), len(leaves)) == ("c", {"d", "f"}, 2)


@given(trees())
def test_a_scanned_tree_keeps_each_host_on_its_leaf(text: str) -> None:
    fabric = without_levels(fabric_of(slurm_topology, text))
    found = {(host, tier.name) for tier in tiers(fabric).tiers for host in tier.hosts}
    kinds = dict(zip(fabric.names, fabric.kind.tolist(), strict=True))
    assert found == {(a, b) for a, b in cables(fabric) if kinds[a] == HOST}


def test_hosts_and_switches_below_one_switch_are_as_in_networks_that_are_no_tree() -> None:
    both = "SwitchName=a Switches=b Nodes=n1\nSwitchName=b Nodes=n2"
    assert [tier.hosts for tier in tiers(fabric_of(slurm_topology, both)).tiers if tier.hosts] == [
        ("n2",),
        ("n1",),
    ]
