"""Trees of switches: Slurm's topology in files and printed, topograph's labels and models, LLNL's ibtopo."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ingest import catalog
from ingest.formats.fabrics.slurm_topology import (
    SLURM_SHOW_TOPOLOGY,
    SLURM_TOPOLOGY,
    SLURM_TOPOLOGY_YAML,
    read_leaves,
)
from ingest.formats.fabrics.trees import IBTOPO, TOPOGRAPH_LABELS, TOPOGRAPH_MODEL, Branch, block_branches
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import Place
from registry.errors import InputError
from registry.interchange import to_networkx
from registry.model import HOST, SWITCH
from tests.support.inputs import fabric_in, fabric_of, file, parse, read, refusal
from tests.support.sure import sure
from tests.support.switch_trees import below, leaves_of_eight, rates, rows_of

TREE = "- topology: t\n  tree:\n    switches:\n      - switch: a\n        nodes: n[1-2]\n"
SECOND = TREE.replace("topology: t", "topology: u\n  cluster_default: true")
GBIT = 1e9 / 8
BOTH, OTHERS = "is the name of a host and of a switch", "are not supported: only tree and block are"


def conf(text: str, options: Options | None = None) -> Parsed:
    return parse(SLURM_TOPOLOGY, text, options)


def test_the_tree_of_a_real_cluster_is_read() -> None:
    parsed = conf(read("formats/topology.conf").decode())
    fabric = fabric_in(parsed)
    assert below(fabric) == leaves_of_eight()
    assert (len(fabric.hosts), len(fabric.switches), fabric.cable_count) == (64, 9, 72)
    assert rates(fabric) == {200 * GBIT}
    assert np.array_equal(fabric.forwards, fabric.kind == SWITCH)
    assert sure(parsed.assumed).all()
    assert any("LinkSpeed is taken as Gbit/s" in warning for warning in parsed.warnings)
    assert any("a scheduler's view of the network" in warning for warning in parsed.warnings)


def test_what_scontrol_prints_is_the_tree_that_the_file_describes() -> None:
    printed = fabric_in(parse(SLURM_SHOW_TOPOLOGY, read("slurm/scontrol_show_topology.txt")))
    written = fabric_in(conf(read("formats/topology.conf").decode()))
    assert (printed.names, below(printed), rates(printed)) == (written.names, below(written), rates(written))
    error = refusal(SLURM_SHOW_TOPOLOGY, read("slurm/scontrol_show_topology_node0042.txt"))
    assert "'leaf01' is not described" in error.reason
    assert error.line == 2


def test_a_link_has_the_speed_of_the_switch_above_else_of_the_one_below_else_the_callers() -> None:
    text = "SwitchName=l1 Nodes=a LinkSpeed=100\nSwitchName=l2 Nodes=b\nSwitchName=top Switches=l[1-2]\n"
    fabric = fabric_in(parsed := conf(text))
    rows = rows_of(fabric.links, "source", "target", "capacity")
    speed = {(fabric.names[a], fabric.names[b]): rate for a, b, rate in rows}
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
    first, second = {"r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib", "x7"}, {"y1", "y3", "y4"}
    assert below(fabric_in(conf(text))) == {"s1": first, "s2": second, "top": {"s1", "s2"}}


def test_included_files_are_those_given_in_the_same_call() -> None:
    main = file("Include /etc/slurm/leaves.conf\nSwitchName=top Switches=s1\n", "conf/topology.conf")
    leaves = file("SwitchName=s1 Nodes=a,b\n", "conf/leaves.conf")
    parsed = SLURM_TOPOLOGY.parse([main, leaves], Options())
    assert below(fabric_in(parsed)) == {"s1": {"a", "b"}, "top": {"s1"}}
    with pytest.raises(InputError, match=r"is missing: add it to the ingest") as caught:
        SLURM_TOPOLOGY.parse([main], Options())
    assert caught.value.line == 1
    assert SLURM_TOPOLOGY.recognise(main.head(), main.path)


@pytest.mark.parametrize(
    ("parser", "text", "reason", "line"),
    [
        (SLURM_TOPOLOGY, "SwitchName=a Nodes=x\nSwitchName=a Nodes=y\n", "is already in line 1", 2),
        (SLURM_TOPOLOGY, "SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "above itself", 1),
        (SLURM_TOPOLOGY, "SwitchName=a Switches=a\n", "above itself", 1),
        (SLURM_TOPOLOGY, "SwitchName=a Switches=b,c\nSwitchName=b Nodes=x\n", "'c' is not described", 1),
        (SLURM_TOPOLOGY, "SwitchName=a Nodes=x[1-\n", "unpaired bracket|not a host list|bad range", 1),
        (SLURM_TOPOLOGY, "SwitchName=a Nodes=x,x\n", "host x is repeated", 1),
        (SLURM_TOPOLOGY, "SwitchName=a Nodes=b\nSwitchName=b Nodes=c\n", BOTH, 2),
        (SLURM_TOPOLOGY, "SwitchName=a Nodes=x Colour=red\n", "unknown key", 1),
        (SLURM_TOPOLOGY, "SwitchName=a Nodes=x nodes=y\n", "expected Key=Value words, each key once", 1),
        (SLURM_TOPOLOGY, "SwitchName=a Nodes=x what\n", "expected Key=Value words, each key once", 1),
        (SLURM_TOPOLOGY, "SwitchName=a Nodes=x LinkSpeed=fast\n", "LinkSpeed", 1),
        (SLURM_TOPOLOGY, "Nodes=x\n", "expected a switch or a block", 1),
        (SLURM_TOPOLOGY, "SwitchName=a Nodes=x \\\n", "continued", 1),
        (SLURM_TOPOLOGY, "SwitchName=a Nodes=x\nBlockName=b Nodes=y\n", "both switches and blocks", None),
        (SLURM_TOPOLOGY, "SwitchName=a\n", "no cable", None),
        (SLURM_TOPOLOGY, "BlockName=a Nodes=x\nBlockSizes=1\nBlockSizes=2\n", "BlockSizes twice", 3),
        (SLURM_TOPOLOGY, "BlockName=a Nodes=x\nBlockSizes=4,6\n", "powers of two", 2),
        (SLURM_TOPOLOGY, "BlockName=a Nodes=x\nBlockSizes=4,2\n", "powers of two", 2),
        (SLURM_TOPOLOGY, "BlockName=a Nodes=x\nBlockSizes=0\n", "whole numbers", 2),
        (SLURM_TOPOLOGY, "SwitchName=a Nodes=x[1-999999]\n", "more than", 1),
        (SLURM_TOPOLOGY_YAML, TREE + "      - switch: a\n        nodes: m\n", "'a' is repeated", None),
        (
            SLURM_TOPOLOGY_YAML,
            TREE + "      - switch: b\n        children: c\n",
            "'c' is not described",
            None,
        ),
        (SLURM_TOPOLOGY_YAML, TREE + "      - switch: b\n        colour: c\n", "unknown key", None),
        (SLURM_TOPOLOGY_YAML, TREE + "      - nodes: m\n", r"switches\[1\].switch: is not text", None),
        (SLURM_TOPOLOGY_YAML, TREE.replace("n[1-2]", "[n1, n2]"), "nodes: is not text", None),
        (SLURM_TOPOLOGY_YAML, TREE.replace("n[1-2]", "n[1-2"), "unpaired bracket", None),
        (SLURM_TOPOLOGY_YAML, TREE + SECOND * 2, "second topology", None),
        (SLURM_TOPOLOGY_YAML, "- topology: t\n  torus3d:\n    toruses: []\n", f"torus3d {OTHERS}", None),
        (
            SLURM_TOPOLOGY_YAML,
            "- topology: t\n  block:\n    block_sizes: [x]\n    blocks: []\n",
            "is not a whole number",
            None,
        ),
        (SLURM_TOPOLOGY_YAML, "- tree: {}\n", "topology: is not text|is not text", None),
        (SLURM_TOPOLOGY_YAML, "[]\n", "no topology", None),
        (SLURM_TOPOLOGY_YAML, "topology: t\n", "is not a list", None),
    ],
)
def test_a_wrong_file_is_refused_with_the_line_of_a_conf(
    parser: Format, text: str, reason: str, line: int | None
) -> None:
    error = refusal(parser, text)
    assert re.search(reason, error.reason)
    if parser is SLURM_TOPOLOGY:
        assert error.line == line


def test_blocks_are_grouped_by_their_sizes() -> None:
    fabric = fabric_in(parsed := conf(read("formats/topology_block.conf").decode()))
    tree = below(fabric)
    blocks = leaves_of_eight("b{:02d}", "b01..b08") | {"b01..b08": {"b01..b04", "b05..b08"}}
    blocks |= {"b01..b02": {"b01", "b02"}, "b01..b04": {"b01..b02", "b03..b04"}}
    assert {name: tree[name] for name in blocks} == blocks
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
    children: dict[str, Iterable[str]] = {name: branch.switches for name, branch in branches.items()}
    graph: nx.DiGraph[str] = nx.DiGraph(children)
    made = {frozenset(nx.descendants(graph, name) & set(names)) for name in branches if name not in blocks}
    assert made == grouped(names, factors)
    assert nx.is_arborescence(graph)


def test_the_default_topology_of_a_yaml_is_read_and_the_others_are_named() -> None:
    parsed = parse(SLURM_TOPOLOGY_YAML, read("formats/topology.yaml"))
    assert below(fabric_in(parsed)) == leaves_of_eight()
    assert parsed.warnings[0] == "topology 'fabric' is read, others are ignored: nvl, pod"
    assert rates(fabric_in(parsed)) == {1.0}


def test_a_default_of_blocks_makes_what_the_conf_of_the_same_blocks_makes() -> None:
    text = read("formats/topology.yaml").decode().replace("cluster_default: true", "cluster_default: false")
    text = text.replace("nvl\n  cluster_default: false", "nvl\n  cluster_default: true")
    text = text.replace("      - 16\n", "      - 16\n      - 32\n")
    written = fabric_in(conf(read("formats/topology_block.conf").decode()))
    assert below(fabric_in(parse(SLURM_TOPOLOGY_YAML, text))) == below(written)


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


BLOCKS = read("slurm/scontrol_show_topology_blocks.txt")
GROUPS = """BlockName=b0 BlockIndex=0 Nodes=n[0-1] BlockSize=2
BlockName=b1 BlockIndex=1 Nodes=n[2-3] BlockSize=2
BlockName=b2 BlockIndex=2 Nodes=(null) BlockSize=2
BlockName=b3 BlockIndex=3 Nodes=n5 BlockSize=2
AggregatedBlock=b[0-1] BlockIndex=4 Nodes=n[0-3] BlockSize=4
AggregatedBlock=b[2-3] BlockIndex=5 Nodes=n5 BlockSize=4
AggregatedBlock=b[0-3] BlockIndex=6 Nodes=n[0-3],n5 BlockSize=8
"""


def test_printed_blocks_are_recognised_and_read() -> None:
    assert catalog.recognise(file(BLOCKS).as_group()).name == "slurm-show-topology"
    found = fabric_in(parse(SLURM_SHOW_TOPOLOGY, BLOCKS))
    assert sum(found.kind == HOST) == 72
    leaves = (
        source for source, target in rows_of(found.links, "source", "target") if found.kind[target] == HOST
    )
    assert Counter(found.names[leaf] for leaf in leaves) == {f"block0{k}": 18 for k in range(1, 5)}


def test_printed_groups_of_blocks_are_those_of_the_file() -> None:
    text = "BlockName=b0 Nodes=n[0-1]\nBlockName=b1 Nodes=n[2-3]\nBlockName=b2\nBlockName=b3 Nodes=n5\n"
    of_file = parse(SLURM_TOPOLOGY, text + "BlockSizes=2,4,8\n")
    assert fabric_in(parse(SLURM_SHOW_TOPOLOGY, GROUPS)).names == fabric_in(of_file).names
    assert {"b0..b1", "b2..b3", "b0..b3"} <= set(fabric_in(of_file).names)
    assert catalog.recognise(file(GROUPS).as_group()).name == "slurm-show-topology"


def test_printed_blocks_with_a_wrong_size_or_key_are_refused() -> None:
    assert refusal(SLURM_SHOW_TOPOLOGY, GROUPS.replace("BlockSize=4", "BlockSize=x", 1)).line == 5
    odd = GROUPS.replace("BlockSize=8", "BlockSize=6")
    assert "powers of two" in refusal(SLURM_SHOW_TOPOLOGY, odd).reason
    assert refusal(SLURM_SHOW_TOPOLOGY, GROUPS.replace("BlockIndex=4", "Colour=4")).line == 5
    assert refusal(SLURM_SHOW_TOPOLOGY, GROUPS[GROUPS.index("Aggr") :]).reason == "no switch or block found"


PARENT = "has another parent in the labels of another node"
BLOCKS_OF = "blocks:\n- switch: {}\n  nodes: [n]\n"


def labels(nodes: dict[str, list[str]]) -> str:
    items = []
    for name, tiers in nodes.items():
        found = {f"fabric.topograph.run/tier-{tier}": switch for tier, switch in enumerate(tiers)}
        items.append({"metadata": {"name": name, "labels": found}})
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def test_labels_of_two_tiers_make_the_tree_in_json_and_yaml() -> None:
    leaves = ("leaf01", "leaf02")
    expected = {"core": set(leaves), **{leaf: leaves_of_eight()[leaf] for leaf in leaves}}
    content = read("formats/k8s_nodes.json").decode()
    text = yaml.safe_dump(json.loads(content))
    assert TOPOGRAPH_LABELS.recognise(text[:65536], "x")
    for fabric in (fabric_of(TOPOGRAPH_LABELS, content), fabric_of(TOPOGRAPH_LABELS, text)):
        assert (below(fabric), rates(fabric)) == (expected, {1.0})


def test_labels_of_older_releases_are_read() -> None:
    key = "network.topology.nvidia.com"
    tiers = {name: {f"{key}/leaf": leaf, f"{key}/spine": "s1"} for name, leaf in (("a", "l1"), ("b", "l2"))}
    items = [{"metadata": {"name": name, "labels": found}} for name, found in tiers.items()]
    found = below(fabric_of(TOPOGRAPH_LABELS, json.dumps({"items": items})))
    assert found == {"l1": {"a"}, "l2": {"b"}, "s1": {"l1", "l2"}}


def test_nodes_without_labels_are_left_out_and_counted_and_domains_are_counted() -> None:
    content = json.loads(labels({"a": ["l"], "b": ["l"], "c": []}))
    content["items"][0]["metadata"]["labels"]["accelerator.topograph.run/domain"] = "nvl1"
    parsed = parse(TOPOGRAPH_LABELS, json.dumps(content))
    assert fabric_in(parsed).names == ("a", "b", "l")
    assert parsed.warnings[:2] == (
        "1 node has no label of a switch: ignored",
        "1 node names a domain of accelerators, which is ignored",
    )


@pytest.mark.parametrize(
    ("parser", "text", "reason"),
    [
        (TOPOGRAPH_LABELS, labels({"a": ["l", "s1"], "b": ["l", "s2"]}), f"'l' {PARENT}"),
        (TOPOGRAPH_LABELS, labels({"a": ["l", "s"], "b": ["s", "t"]}), f"'s' {PARENT}"),
        (TOPOGRAPH_LABELS, labels({"a": ["l", "l"]}), "two tiers"),
        (TOPOGRAPH_LABELS, labels({"a": ["l"], "b": ["l"]}).replace('"b"', '"a"'), "'a' is repeated"),
        (TOPOGRAPH_LABELS, labels({"a": ["l"], "l": ["m"]}), BOTH),
        (
            TOPOGRAPH_LABELS,
            labels({"a": ["l"]}).replace("tier-0", "tier-1"),
            "tier between others is missing",
        ),
        (TOPOGRAPH_LABELS, labels({"a": ["l"]}).replace('"l"', "7"), "is not text"),
        (TOPOGRAPH_LABELS, labels({"a": [""]}), "is not a valid name of a device"),
        (
            TOPOGRAPH_LABELS,
            labels({"a": ["x\\u0007"]}).replace("\\\\u", "\\u"),
            "is not a valid name of a device",
        ),
        (TOPOGRAPH_LABELS, labels({}), "no cable"),
        (TOPOGRAPH_LABELS, '{"items": {"fabric.topograph.run/tier-0": 1}}', "is not a list"),
        (TOPOGRAPH_LABELS, '{"items": [3]}', "is not an object"),
        (
            TOPOGRAPH_MODEL,
            f"switches:\n  a:\n    switches: [b]\n{BLOCKS_OF.format('c')}",
            "'c' is not described",
        ),
        (TOPOGRAPH_MODEL, "switches:\n  a:\n    switches: [a]\n", "above itself"),
        (TOPOGRAPH_MODEL, "switches:\n  a:\n    nodes: [n, n]\n", "named twice"),
        (
            TOPOGRAPH_MODEL,
            f"switches:\n  a:\n    nodes: [n]\n{BLOCKS_OF.format('a')}",
            "is already below this switch",
        ),
        (TOPOGRAPH_MODEL, "switches:\n  a:\n    nodes: n\n", "is not a list"),
        (TOPOGRAPH_MODEL, "switches:\n- name: a\n- name: a\n", "is repeated"),
        (TOPOGRAPH_MODEL, "switches:\n- nodes: [a]\n", "name: is not text"),
        (TOPOGRAPH_MODEL, "switches: [a\n", "invalid or truncated YAML"),
    ],
)
def test_wrong_labels_and_models_are_refused(parser: Format, text: str, reason: str) -> None:
    assert reason in str(refusal(parser, text))


def test_a_model_of_blocks_makes_the_tree() -> None:
    parsed = parse(TOPOGRAPH_MODEL, read("formats/topograph_model.yaml"))
    numbers = {"leaf-11": (1, 2, 3, 4), "leaf-12": (5, 6, 8), "leaf-21": (9, 10, 11, 12)}
    assert below(fabric_in(parsed)) == {
        "core": {"spine-1", "spine-2"}, "spine-1": {"leaf-11", "leaf-12"}, "spine-2": {"leaf-21"},
        **{leaf: {f"node{number:04d}" for number in found} for leaf, found in numbers.items()},
    }  # fmt: skip
    assert parsed.warnings[0] == "2 hosts are below no switch and ignored"


def test_models_of_older_releases_are_read() -> None:
    tree = {"S1": {"S2", "S3"}, "S2": {"I1", "I2"}, "S3": {"I3"}}
    mapping = (
        "switches:\n  S1:\n    switches: [S2, S3]\n  S2:\n    nodes: ['I[1-2]']\n  S3:\n    nodes: [I3]\n"
        "nodes:\n  I1:\n    capacity_block: C2\ncapacity_blocks:\n  C2:\n    nodes: ['I[1-2]']\n"
    )
    listed = (
        "switches:\n- name: S1\n  switches: [S2,S3]\n- name: S2\n  capacity_blocks: [C2]\n- name: S3\n"
        "  capacity_blocks: [C3]\ncapacity_blocks:\n- name: C2\n  nvlink: n1\n  nodes: [I1,I2]\n- name: C3\n"
        "  nodes: [I3]\n"
    )
    for text in (mapping, listed):
        assert TOPOGRAPH_MODEL.recognise(text, "x")
        assert below(fabric_of(TOPOGRAPH_MODEL, text)) == tree


def test_ibtopo_makes_the_tree_with_switches_called_by_the_way_to_them() -> None:
    fabric = fabric_of(IBTOPO, read("formats/llnl.topo"))
    leaves = {f"sw-0-{at}": hosts for at, hosts in enumerate(list(leaves_of_eight().values())[1:])}
    assert below(fabric) == {"sw-0": set(leaves), **leaves}


@given(st.dictionaries(st.integers(0, 99), st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=20))
def test_hosts_of_ibtopo_are_as_far_apart_as_their_ways_differ(ways: dict[int, tuple[int, int, int]]) -> None:
    lines = ["3", *(f"n{host} {a} {b} {c}" for host, (a, b, c) in ways.items())]
    fabric = fabric_of(IBTOPO, "\n\n".join(lines))
    graph: nx.Graph[Any] = nx.Graph(to_networkx(fabric).to_undirected())
    assert nx.is_tree(graph)
    hosts = sorted(ways)
    for one, two in itertools.pairwise(hosts):
        same = next((at for at in range(3) if ways[one][at] != ways[two][at]), 3)
        assert nx.shortest_path_length(graph, f"n{one}", f"n{two}") == 2 * (4 - same)


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("2\na 0 1\nb 0\n", "2 position", 3),
        ("2\na 0 1\na 0 2\n", "is repeated", 3),
        ("9\na 0\n", "number of levels", 1),
        ("x\n", "number of levels", 1),
        ("2\na 0 -1\n", "2 position", 2),
        ("1\nsw-0 0\n", BOTH, 2),
        ("1\n", "no cable", None),
    ],
)
def test_a_wrong_line_of_ibtopo_is_named(text: str, reason: str, line: int | None) -> None:
    error = refusal(IBTOPO, text)
    assert reason in str(error)
    assert error.line == line
