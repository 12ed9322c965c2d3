"""Slurm's topology: topology.conf of both plugins, topology.yaml, and what scontrol prints of it."""

from __future__ import annotations

import re
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.catalog import Parser
from ingest.formats.fabrics import slurm_topology
from ingest.formats.fabrics import slurm_topology_yaml as slurm_yaml
from ingest.formats.fabrics.slurm_leaves import read_leaves
from ingest.formats.fabrics.trees import Branch, block_branches
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import Place
from registry.errors import InputError
from registry.interchange import to_networkx
from tests.support.inputs import fabric_in, file, parse, read, refusal
from tests.support.switch_trees import below, leaves_of_eight, rates

TREE = "- topology: t\n  tree:\n    switches:\n      - switch: a\n        nodes: n[1-2]\n"
GBIT = 1e9 / 8


def conf(text: str, options: Options | None = None) -> Parsed:
    return parse(slurm_topology, text, options)


def test_the_tree_of_a_real_cluster_is_read() -> None:
    parsed = conf(read("formats/topology.conf").decode())
    fabric = fabric_in(parsed)
    assert below(fabric) == leaves_of_eight()
    assert (len(fabric.hosts), len(fabric.switches), fabric.cable_count) == (64, 9, 72)
    assert rates(fabric) == {200 * GBIT}
    assert not fabric.forwards[fabric.hosts].any()
    assert fabric.forwards[fabric.switches].all()
    assert parsed.assumed is not None
    assert parsed.assumed.all()
    assert any("LinkSpeed is taken as Gbit/s" in warning for warning in parsed.warnings)
    assert any("a scheduler's view of the network" in warning for warning in parsed.warnings)


def test_what_scontrol_prints_is_the_tree_that_the_file_describes() -> None:
    printed = fabric_in(parse(slurm_topology.PRINTED, read("slurm/scontrol_show_topology.txt")))
    written = fabric_in(conf(read("formats/topology.conf").decode()))
    assert printed.names == written.names
    assert below(printed) == below(written)
    assert rates(printed) == rates(written)
    error = refusal(slurm_topology.PRINTED, read("slurm/scontrol_show_topology_node0042.txt"))
    assert "'leaf01' is not described" in error.reason
    assert error.line == 2


def test_a_link_has_the_speed_of_the_switch_above_else_of_the_one_below_else_the_callers() -> None:
    text = "SwitchName=l1 Nodes=a LinkSpeed=100\nSwitchName=l2 Nodes=b\nSwitchName=top Switches=l[1-2]\n"
    fabric = fabric_in(parsed := conf(text))
    speed = {
        (fabric.names[a], fabric.names[b]): rate
        for a, b, rate in zip(fabric.links.source, fabric.links.target, fabric.links.capacity, strict=True)
    }
    assert speed["l1", "a"] == speed["l1", "top"] == 100 * GBIT
    assert speed["l2", "b"] == speed["top", "l2"] == 1.0
    assert any(warning.startswith("2 cables have no rate") for warning in parsed.warnings)
    assert rates(fabric_in(conf(text, Options(rate=5e9)))) == {5e9}


def test_comments_case_continuation_ranges_and_blanks_are_those_of_slurm() -> None:
    text = (
        "# site\n\nswitchname=s1 NODES=r[1-2]n[01-02]-ib,x7  # two racks\n"
        "SwitchName=s2 \\\n   Nodes=y[1,3-4] \\\n  LinkSpeed=10\n"
        "  SwitchName=top   Switches=s1,s2\n"
    )
    assert below(fabric_in(conf(text))) == {
        "s1": {"r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib", "x7"},
        "s2": {"y1", "y3", "y4"},
        "top": {"s1", "s2"},
    }


def test_included_files_are_those_given_in_the_same_call() -> None:
    main = file("Include /etc/slurm/leaves.conf\nSwitchName=top Switches=s1\n", "conf/topology.conf")
    leaves = file("SwitchName=s1 Nodes=a,b\n", "conf/leaves.conf")
    parsed = slurm_topology.parse([main, leaves], Options())
    assert below(fabric_in(parsed)) == {"s1": {"a", "b"}, "top": {"s1"}}
    with pytest.raises(InputError, match=r"is missing: add it to the ingest") as caught:
        slurm_topology.parse([main], Options())
    assert caught.value.line == 1
    assert slurm_topology.recognise(main.head(), main.path)


@pytest.mark.parametrize(
    ("parser", "text", "reason", "line"),
    [
        (slurm_topology, "SwitchName=a Nodes=x\nSwitchName=a Nodes=y\n", "is already in line 1", 2),
        (slurm_topology, "SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "above itself", 1),
        (slurm_topology, "SwitchName=a Switches=a\n", "above itself", 1),
        (slurm_topology, "SwitchName=a Switches=b,c\nSwitchName=b Nodes=x\n", "'c' is not described", 1),
        (slurm_topology, "SwitchName=a Nodes=x[1-\n", "unpaired bracket|not a host list|bad range", 1),
        (slurm_topology, "SwitchName=a Nodes=x,x\n", "host x is repeated", 1),
        (
            slurm_topology,
            "SwitchName=a Nodes=b\nSwitchName=b Nodes=c\n",
            "is the name of a host and of a switch",
            2,
        ),
        (slurm_topology, "SwitchName=a Nodes=x Colour=red\n", "unknown key", 1),
        (slurm_topology, "SwitchName=a Nodes=x nodes=y\n", "expected Key=Value words, each key once", 1),
        (slurm_topology, "SwitchName=a Nodes=x what\n", "expected Key=Value words, each key once", 1),
        (slurm_topology, "SwitchName=a Nodes=x LinkSpeed=fast\n", "LinkSpeed", 1),
        (slurm_topology, "Nodes=x\n", "expected a switch or a block", 1),
        (slurm_topology, "SwitchName=a Nodes=x \\\n", "continued", 1),
        (slurm_topology, "SwitchName=a Nodes=x\nBlockName=b Nodes=y\n", "both switches and blocks", None),
        (slurm_topology, "SwitchName=a\n", "no cable", None),
        (slurm_topology, "BlockName=a Nodes=x\nBlockSizes=1\nBlockSizes=2\n", "BlockSizes twice", 3),
        (slurm_topology, "BlockName=a Nodes=x\nBlockSizes=4,6\n", "powers of two", 2),
        (slurm_topology, "BlockName=a Nodes=x\nBlockSizes=4,2\n", "powers of two", 2),
        (slurm_topology, "BlockName=a Nodes=x\nBlockSizes=0\n", "whole numbers", 2),
        (slurm_topology, "SwitchName=a Nodes=x[1-999999]\n", "more than", 1),
        (slurm_yaml, TREE + "      - switch: a\n        nodes: m\n", "'a' is repeated", None),
        (slurm_yaml, TREE + "      - switch: b\n        children: c\n", "'c' is not described", None),
        (slurm_yaml, TREE + "      - switch: b\n        colour: c\n", "unknown key", None),
        (slurm_yaml, TREE + "      - nodes: m\n", r"switches\[1\].switch: is not text", None),
        (slurm_yaml, TREE.replace("n[1-2]", "[n1, n2]"), "nodes: is not text", None),
        (slurm_yaml, TREE.replace("n[1-2]", "n[1-2"), "unpaired bracket", None),
        (
            slurm_yaml,
            TREE + TREE.replace("topology: t", "topology: u\n  cluster_default: true") * 2,
            "second topology",
            None,
        ),
        (slurm_yaml, "- topology: t\n  flat: true\n", "are not supported: only tree and block are", None),
        (
            slurm_yaml,
            "- topology: t\n  torus3d:\n    toruses: []\n",
            "torus3d are not supported: only tree and block are",
            None,
        ),
        (
            slurm_yaml,
            "- topology: t\n  block:\n    block_sizes: [x]\n    blocks: []\n",
            "is not a whole number from",
            None,
        ),
        (slurm_yaml, "- tree: {}\n", "topology: is not text|is not text", None),
        (slurm_yaml, "[]\n", "no topology", None),
        (slurm_yaml, "topology: t\n", "is not a list", None),
    ],
)
def test_a_wrong_file_is_refused_with_the_line_of_a_conf(
    parser: Parser, text: str, reason: str, line: int | None
) -> None:
    error = refusal(parser, text)
    assert re.search(reason, error.reason)
    if parser is slurm_topology:
        assert error.line == line


def test_blocks_are_grouped_by_their_sizes() -> None:
    fabric = fabric_in(parsed := conf(read("formats/topology_block.conf").decode()))
    tree = below(fabric)
    blocks = leaves_of_eight("b{:02d}")
    assert {name: tree[name] for name in blocks if name != "core"} == {
        name: hosts for name, hosts in blocks.items() if name != "core"
    }
    assert tree["b01..b02"] == {"b01", "b02"}
    assert tree["b01..b04"] == {"b01..b02", "b03..b04"}
    assert tree["b01..b08"] == {"b01..b04", "b05..b08"}
    assert nx.is_tree(nx.Graph(to_networkx(fabric).to_undirected().edges()))
    assert any("7 are added according to BlockSizes" in warning for warning in parsed.warnings)


def grouped(names: list[str], factors: list[int]) -> set[frozenset[str]]:
    """Sets of blocks that share a group, by Slurm's rule; one set of all above."""
    sets = {frozenset(names[at : at + factor]) for factor in factors for at in range(0, len(names), factor)}
    return {one for one in sets | {frozenset(names)} if len(one) > 1}


@given(st.integers(1, 20), st.lists(st.integers(1, 4), max_size=3, unique=True).map(sorted))
def test_groups_are_consecutive_blocks_of_each_size(count: int, powers: list[int]) -> None:
    names = [f"b{number:02d}" for number in range(count)]
    factors = [2**power for power in powers]
    blocks = {name: Branch(place=Place("f"), hosts=(f"n-{name}",)) for name in names}
    branches, _ = block_branches(blocks, [4, *(4 * factor for factor in factors)], Place("f"))
    graph: nx.DiGraph[str] = nx.DiGraph(
        [(name, child) for name, branch in branches.items() for child in branch.switches]
    )
    graph.add_nodes_from(branches)
    made = {frozenset(nx.descendants(graph, name) & set(names)) for name in branches if name not in blocks}
    assert made == grouped(names, factors)
    assert nx.is_arborescence(graph)


def test_the_default_topology_of_a_yaml_is_read_and_the_others_are_named() -> None:
    parsed = parse(slurm_yaml, read("formats/topology.yaml"))
    assert below(fabric_in(parsed)) == leaves_of_eight()
    assert parsed.warnings[0] == "topology 'fabric' is read, others are ignored: nvl, pod"
    assert rates(fabric_in(parsed)) == {1.0}


def test_a_default_of_blocks_makes_what_the_conf_of_the_same_blocks_makes() -> None:
    text = read("formats/topology.yaml").decode().replace("cluster_default: true", "cluster_default: false")
    text = text.replace("nvl\n  cluster_default: false", "nvl\n  cluster_default: true")
    text = text.replace("      - 16\n", "      - 16\n      - 32\n")
    written = fabric_in(conf(read("formats/topology_block.conf").decode()))
    assert below(fabric_in(parse(slurm_yaml, text))) == below(written)


def test_leaves_keep_the_order_of_the_file_and_other_files_are_refused(tmp_path: Path) -> None:
    text = "SwitchName=top Switches=m,c,w\nSwitchName=w Nodes=n[5,2]\nSwitchName=c Nodes=n[8,1,3]\n"
    blocks = "- topology: default\n  cluster_default: true\n  block:\n    block_sizes: [2]\n    blocks:\n"
    blocks += "      - block: w\n        nodes: n[5,2]\n      - block: c\n        nodes: n[1,3]\n"
    path, other = tmp_path / "topology.conf", tmp_path / "topology.yaml"
    path.write_text(f"{text}SwitchName=m Nodes=n4\n")
    other.write_text(blocks)
    assert read_leaves(path) == (("n5", "n2"), ("n8", "n1", "n3"), ("n4",))
    assert read_leaves(other) == (("n5", "n2"), ("n1", "n3"))
    path.write_text("source,target\na,b\n")
    with pytest.raises(InputError, match="with switches or blocks"):
        read_leaves(path)
