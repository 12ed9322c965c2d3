"""Fabrics written for other tools read back as what they were; trees of switches; Kubernetes' schemas."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ingest.formats.fabrics.graphs import GRAPHML, LINKS_CSV, NODE_LINK
from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.fabrics.legacy import LIBTOPOMAP
from ingest.formats.fabrics.slurm_topology import SLURM_TOPOLOGY, SLURM_TOPOLOGY_YAML
from ingest.generate.direct import dragonfly, percs, torus
from ingest.generate.trees import extended_generalised_fat_tree, k_ary_n_tree, three_level
from ingest.options import Options
from ingest.parsed import Format
from registry.errors import InvalidValue, UnknownName
from registry.exports.catalog import FORMATS, write
from registry.exports.graphs import unit
from registry.exports.trees import fold, tiers
from registry.model import HOST, SWITCH, Fabric, Ports
from registry.model.links import DOWN, PORT_COLUMNS
from registry.store.derived import device_facts, link_facts
from registry.store.snapshots import canonical
from tests.support.inputs import damaged, fabric_of, file, read, survives
from tests.support.kubernetes import ValidationError, validated
from tests.support.small_fabrics import adapter_fabrics, cabled, plain_fabrics

READERS: dict[str, Format] = {
    "node-link": NODE_LINK, "graphml": GRAPHML, "csv": LINKS_CSV, "libtopomap": LIBTOPOMAP,
    "slurm-topology": SLURM_TOPOLOGY, "slurm-block": SLURM_TOPOLOGY,
    "slurm-topology-yaml": SLURM_TOPOLOGY_YAML,
}  # fmt: skip
TREES = ("slurm-topology", "slurm-topology-yaml")


def scan(name: str) -> Fabric:
    return fabric_of(IBNETDISCOVER, read(name))


def read_back(format: str, fabric: Fabric, options: Options | None = None) -> Fabric:
    text = write(format, fabric)
    assert text.endswith("\n")
    assert READERS[format].recognise(file(text).head(), "x")
    return fabric_of(READERS[format], text, options)


def facts(fabric: Fabric) -> tuple[Any, ...]:
    plain = canonical(fabric)
    return device_facts(plain), Counter(link_facts(plain))


def wiring(fabric: Fabric) -> Counter[tuple[Any, ...]]:
    """Links by names, ports and node GUIDs."""
    names, guid = fabric.names, [*fabric.adapters.guid.tolist(), 0]
    ends = ("source", "target", "source_adapter", "target_adapter", "source_port", "target_port")
    columns = (getattr(fabric.links, name).tolist() for name in (*ends, "capacity", "cables"))
    rows = zip(*columns, strict=True)
    return Counter((names[a], names[b], guid[one], guid[other], *more) for a, b, one, other, *more in rows)


def vertices(fabric: Fabric) -> set[tuple[Any, ...]]:
    columns = fabric.kind, fabric.slots, fabric.forwards, fabric.guid
    return set(zip(fabric.names, *(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("format", ["node-link", "graphml"])
@given(adapter_fabrics() | plain_fabrics())
def test_graphs_read_back_as_the_whole_fabric(format: str, fabric: Fabric) -> None:
    assert facts(read_back(format, fabric)) == facts(fabric)


@pytest.mark.parametrize("format", ["node-link", "graphml"])
def test_graphs_keep_coordinates_levels_and_ports_that_are_down(format: str) -> None:
    columns = map(np.array, ([8, 8], [-1, -1], [7, 9], [DOWN, 0], [0.0, 25e9]))
    ports = Ports(**dict(zip(PORT_COLUMNS, columns, strict=True)))
    tree = replace(extended_generalised_fat_tree((4, 2), (1, 2)), ports=ports)
    for fabric in (torus((4, 3)), tree):
        assert facts(read_back(format, fabric)) == facts(fabric)


def test_graphs_are_those_of_networkx() -> None:
    fabric = torus((3, 4))
    loaded = nx.node_link_graph(json.loads(write("node-link", fabric)), edges="links")
    plain: nx.Graph[str] = nx.Graph(nx.parse_graphml(write("graphml", fabric)))
    assert nx.is_isomorphic(plain, nx.grid_graph((3, 4), periodic=True))
    assert nx.utils.graphs_equal(plain, nx.Graph(loaded)) or set(plain.edges) == set(nx.Graph(loaded).edges)


@given(adapter_fabrics() | plain_fabrics())
def test_csv_reads_back_as_the_same_links_and_vertices(fabric: Fabric) -> None:
    found = read_back("csv", fabric)
    both = {(b, a) for a, b, *_ in wiring(fabric)} & {(a, b) for a, b, *_ in wiring(fabric)}
    if not both:  # a file whose links all run one way lists each cable once
        return
    assert wiring(found) == wiring(fabric)
    assert vertices(found) == vertices(fabric)


@given(adapter_fabrics())
def test_libtopomaps_map_reads_back_as_the_same_capacities(fabric: Fabric) -> None:
    found = read_back("libtopomap", fabric, Options(rate=unit(fabric)))
    assert capacities(found) == pytest.approx(capacities(fabric))


def capacities(fabric: Fabric) -> dict[tuple[str, str], float]:
    source = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr))
    arcs = zip(source.tolist(), fabric.neighbour.tolist(), fabric.capacity.tolist(), strict=True)
    return {(fabric.names[a], fabric.names[b]): size for a, b, size in arcs}


def test_the_unit_of_a_libtopomap_is_the_largest_that_makes_weights_whole() -> None:
    """FDR of 4 lanes is 6.8182 GB/s, HDR 25: as 3 to 11."""
    rates = (4 * 14.0625e9 * 64 / 66 / 8, 25e9)
    fabric = torus((4, 4), capacity=rates)
    assert unit(fabric) == pytest.approx(rates[1] / 11)
    assert "0 1(11) 3(11) 4(3) 12(3)" in write("libtopomap", fabric)
    assert unit(cabled("0-2 1-2", 2, [1000.0, 1001.0])) == 1.0


def below(fabric: Fabric) -> dict[str, frozenset[str]]:
    """Hosts right below each switch, by the switch's name."""
    found: dict[str, set[str]] = {}
    links = fabric.links
    for a, b in zip(links.source.tolist(), links.target.tolist(), strict=True):
        if fabric.kind[a] == SWITCH and fabric.kind[b] == HOST:
            found.setdefault(fabric.names[a], set()).add(fabric.names[b])
    return {name: frozenset(hosts) for name, hosts in found.items()}


def host_distances(fabric: Fabric) -> dict[tuple[str, str], float]:
    ones = np.ones(len(fabric.neighbour))
    graph = csr_array((ones, fabric.neighbour, fabric.indptr), shape=(len(fabric),) * 2)
    hosts = fabric.hosts.tolist()
    found = shortest_path(graph, unweighted=True, indices=hosts)[:, hosts]
    names = [fabric.names[host] for host in hosts]
    return {(a, b): found[i, j] for i, a in enumerate(names) for j, b in enumerate(names)}


@pytest.mark.parametrize("format", TREES)
@given(adapter_fabrics())
def test_slurms_tree_has_each_host_once_and_joins_what_is_connected(format: str, fabric: Fabric) -> None:
    found = read_back(format, fabric)
    hosts = [host for group in below(found).values() for host in group]
    assert sorted(hosts) == sorted(fabric.names[host] for host in fabric.hosts)
    real, seen = host_distances(fabric), host_distances(found)
    assert {pair for pair, far in seen.items() if math.isfinite(far)} == set(real)
    leaf = {host: name for name, group in below(found).items() for host in group}
    indptr, near = fabric.indptr, fabric.neighbour
    switches = {fabric.names[h]: set(near[indptr[h] : indptr[h + 1]].tolist()) for h in fabric.hosts.tolist()}
    for group in below(found).values():
        assert set().union(*(switches[host] for host in group)) in [switches[host] for host in group]
    for a, b in real:
        if switches[a] == switches[b]:
            assert leaf[a] == leaf[b]


@pytest.mark.parametrize("format", TREES)
@pytest.mark.parametrize(
    "fabric", [k_ary_n_tree(2, 4), three_level(3, 4, 2), extended_generalised_fat_tree((3, 2, 2), (1, 2, 3))]
)
def test_hosts_of_a_fat_tree_are_as_far_apart_in_slurms_tree(format: str, fabric: Fabric) -> None:
    assert host_distances(read_back(format, fabric)) == host_distances(fabric)


def test_the_observed_fabric_gives_the_topology_that_its_operator_maintained() -> None:
    """tests/data/formats/topology.conf was written by hand for the cluster of this scan."""
    maintained = fabric_of(SLURM_TOPOLOGY, read("formats/topology.conf"))
    found = read_back("slurm-topology", scan("infiniband/fattree2-64-traffic/ibnetdiscover.txt"))
    assert below(found) == below(maintained)
    assert host_distances(found) == host_distances(maintained)
    assert len(found.switches) == len(maintained.switches) == 9


def test_hosts_on_several_leaves_are_below_one_switch_for_all_their_rails() -> None:
    fabric = scan("public/ndr-dgx.ibnetdiscover")
    tree = tiers(fabric)
    (tier,) = (tier for tier in tree.tiers if "a07-p1-dgx-03-c01" in tier.hosts)
    assert tier.hosts == tuple(f"a07-p1-dgx-03-c{i:02d}" for i in range(1, 19))
    assert len(tier.represented) == 4
    assert tier.capacity == 4 * 50e9
    assert sum(len(tier.hosts) for tier in tree.tiers) == len(fabric.hosts)


def two_rails(*hosts: tuple[str, str]) -> Fabric:
    """Hosts on leaves that are named by letters, all leaves below one spine."""
    leaves = sorted({letter for _, letters in hosts for letter in letters})
    names = [*(name for name, _ in hosts), *leaves, "MF0;the spine:M/U1"]
    ends = [(name, letter) for name, letters in hosts for letter in letters]
    ends += [(letter, names[-1]) for letter in leaves]
    pairs = [(names.index(a), names.index(b)) for a, b in ends]
    pairs += [(b, a) for a, b in pairs]
    slots = [1] * len(hosts) + [0] * (len(leaves) + 1)
    source, target = zip(*pairs, strict=True)
    return Fabric.from_arcs(names, source, target, 12.5e9, slots=slots, forwards=False)


def test_a_host_that_lost_a_rail_stays_with_its_group() -> None:
    fabric = two_rails(("n1", "ab"), ("n2", "a"), ("n3", "ab"), ("n4", "cd"), ("n5", "d"), ("n6", "cd"))
    nameless = replace(fabric, names=(*fabric.names[:-1], "--"))
    assert "SwitchName=switch Switches=a,c" in write("slurm-topology", nameless)
    assert write("slurm-topology", fabric) == (
        "# Slurm topology/tree, from the wiring as it was seen\n"
        "# a: a, b\n"
        "SwitchName=a Nodes=n[1-3] LinkSpeed=100\n"
        "# c: c, d\n"
        "SwitchName=c Nodes=n[4-6] LinkSpeed=100\n"
        "# MF0_the_spine_M_U1: MF0;the spine:M/U1\n"
        "SwitchName=MF0_the_spine_M_U1 Switches=a,c LinkSpeed=200\n"
    )


def test_a_host_on_two_leaves_does_not_join_them() -> None:
    fabric = two_rails(("login", "ab"), ("n1", "a"), ("n2", "a"), ("n3", "b"), ("n4", "b"))
    groups = [tier.hosts for tier in tiers(fabric).tiers if tier.hosts]
    assert groups == [("n3", "n4"), ("n1", "n2"), ("login",)]
    either = two_rails(("n1", "ab"), ("n2", "ac"), ("n3", "a"))  # the group that comes first
    assert [tier.hosts for tier in tiers(either).tiers if tier.hosts] == [("n2",), ("n1", "n3")]
    assert len(set(host_distances(read_back("slurm-topology", fabric)).values())) == 3


def test_a_host_on_no_switch_is_named_in_a_comment() -> None:
    fabric = two_rails(("n1", "a"), ("n2", "b"))
    names, slots = ("lone1", *fabric.names), np.r_[1, fabric.slots]
    ends = fabric.links.source + 1, fabric.links.target + 1
    lonely = Fabric.from_arcs(names, *ends, fabric.links.capacity, slots=slots, forwards=False)
    for format in (*TREES, "slurm-block"):
        assert "# on no switch: lone1\n" in write(format, lonely)
        assert "lone1" not in read_back(format, lonely).names


def test_blocks_are_the_groups_of_hosts() -> None:
    fabric = extended_generalised_fat_tree((4, 3), (1, 2))
    lines = [f"BlockName=l1-{n} Nodes=node[{4 * n:02}-{4 * n + 3:02}]" for n in range(3)]
    assert write("slurm-block", fabric).splitlines()[1:] == [*lines, "BlockSizes=4"]
    found = read_back("slurm-block", fabric)
    assert set(below(found).values()) == set(below(read_back("slurm-topology", fabric)).values())
    assert write("slurm-block", two_rails(("a1", "x"), ("a2", "x"), ("b", "y"))).endswith("BlockSizes=1\n")


def test_switches_of_a_dragonfly_are_all_below_one() -> None:
    found = tiers(dragonfly(3, 1, 2))
    assert len([tier for tier in found.tiers if tier.hosts]) == 12
    assert [len(tier.children) for tier in found.tiers if tier.children] == [12]


@pytest.mark.parametrize("format", [*TREES, "slurm-block"])
@pytest.mark.parametrize("fabric", [torus((3, 3)), percs(2)])
def test_a_direct_network_has_no_tree_of_switches(format: str, fabric: Fabric) -> None:
    with pytest.raises(InvalidValue, match="no host is on a switch"):
        write(format, fabric)


@pytest.mark.parametrize(
    ("format", "name"),
    [
        *((format, "n 1") for format in (*TREES, "slurm-block", "libtopomap")),
        *((format, "a\nb") for format in ("csv", "graphml", "libtopomap")),
    ],
)
def test_names_that_would_break_a_file_are_refused(format: str, name: str) -> None:
    with pytest.raises(InvalidValue, match=r"fabric\.names"):
        write(format, two_rails((name, "a"), ("n2", "b")))


def test_switches_get_names_of_one_word_in_a_libtopomap() -> None:
    found = read_back("libtopomap", two_rails(("n1", "a"), ("n2", "b")))
    assert "MF0;the_spine:M/U1" in found.names
    with pytest.raises(UnknownName, match="slurm-topology"):
        write("slurm-topologie", found)


def test_folded_lists_have_one_bracket_a_name() -> None:
    assert fold(["n01", "n02", "n10", "login"]) == "n[01-02,10],login"
    assert fold(["r1n1", "r1n2", "r2n1", "r2n2"]) == "r1n[1-2],r2n[1-2]"
    assert fold(["a1-ib", "a2-ib"]) == "a1-ib,a2-ib"
    assert fold(["g1234567890", "g1234567891"]) == "g1234567890,g1234567891"


@pytest.mark.parametrize("format", FORMATS.names)
def test_the_same_fabric_gives_the_same_bytes_whatever_the_order_of_its_rows(format: str) -> None:
    fabric = scan("infiniband/fattree2-64-traffic/ibnetdiscover.txt")
    turned = replace(fabric, links=fabric.links.take(np.arange(len(fabric.links))[::-1]))
    assert write(format, fabric) == write(format, turned)


CSV = write("csv", two_rails(("n1", "ab"), ("n2", "a"))).encode()


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode) | damaged(CSV))
def test_any_bytes_are_read_as_csv_or_refused(body: bytes) -> None:
    survives(LINKS_CSV, [file(body)])
    survives(LINKS_CSV, [file(b"source,target,capacity\n" + body)])


TWO_FABRICS = fabric_of(SLURM_TOPOLOGY, read("formats/topology_two_fabrics.conf"))


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
        held = f"Switches={','.join(inside)}" if inside else f"Nodes={name}n[1-2]"
        lines.append(f"SwitchName={name} {held}")
        above += inside
    return "\n".join(draw(st.permutations(lines)))


@pytest.mark.parametrize("format", TREES)
def test_a_leaf_beside_spines_stays_directly_below_the_root(format: str) -> None:
    assert "# no hosts below: unknown\n" in write(format, TWO_FABRICS)
    assert cables(read_back(format, TWO_FABRICS)) == cables(TWO_FABRICS)


def test_the_lines_are_those_of_the_operator() -> None:
    assert write("slurm-topology", TWO_FABRICS).splitlines()[-4:] == [
        "SwitchName=fab-b Switches=b-leaf[1-2]",
        "SwitchName=a-spine1 Switches=a-leaf[1-2]",
        "SwitchName=a-spine2 Switches=a-leaf3",
        "SwitchName=fab-a Switches=a-spine[1-2],fab-a.unknown",
    ]


@pytest.mark.parametrize("format", TREES)
@given(trees())
def test_any_tree_of_slurm_is_written_with_every_level(format: str, text: str) -> None:
    fabric = fabric_of(SLURM_TOPOLOGY, text)
    found = read_back(format, fabric)
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
    (root, *leaves) = tiers(without_levels(fabric_of(SLURM_TOPOLOGY, chain))).tiers
    assert (root.name, set(root.children), len(leaves)) == ("c", {"d", "f"}, 2)


def test_the_speed_of_a_switch_is_the_least_of_those_below_it() -> None:
    chain = cabled("2-3 3-4 4-5 4-6 6-7 0-5 1-7", 2, [9, 9, 9, 2, 5, 1, 1])  # 6 is left out, at its least
    no_tree = cabled("0-2 1-3 2-4 2-5 3-4 3-5", 2, [1, 1, 2, 2, 3, 3])
    assert [tiers(fabric).tiers[0].capacity for fabric in (chain, no_tree)] == [2, 4]


@given(trees())
def test_a_scanned_tree_keeps_each_host_on_its_leaf(text: str) -> None:
    fabric = without_levels(fabric_of(SLURM_TOPOLOGY, text))
    found = {(host, tier.name) for tier in tiers(fabric).tiers for host in tier.hosts}
    kinds = dict(zip(fabric.names, fabric.kind.tolist(), strict=True))
    assert found == {(a, b) for a, b in cables(fabric) if kinds[a] == HOST}


def test_hosts_and_switches_below_one_switch_are_as_in_networks_that_are_no_tree() -> None:
    both = "SwitchName=a Switches=b Nodes=n1\nSwitchName=b Nodes=n2"
    found = [tier.hosts for tier in tiers(fabric_of(SLURM_TOPOLOGY, both)).tiers if tier.hosts]
    assert found == [("n2",), ("n1",)]


LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def labels_of(text: str) -> dict[str, dict[str, str]]:
    """Labels of each node, as `kubectl label` takes them."""
    found = {}
    for line in text.splitlines():
        *command, node = shlex.split(line)[:4]
        assert command == ["kubectl", "label", "node"]
        *pairs, last = shlex.split(line)[4:]
        assert last == "--overwrite"
        found[node] = dict(pair.split("=") for pair in pairs)
        assert all(LABEL_VALUE.fullmatch(value) for value in found[node].values())
    return found


def uneven() -> Fabric:
    """Hosts a and b below leaf L_1, c below L-1, both below a spine; d below a leaf without one."""
    names = ["A", "b", "c", "d", "L_1", "L-1", "Leaf 3", "spine", "core", "mid"]
    ends = [(0, 4), (1, 4), (2, 5), (3, 6), (4, 7), (5, 7), (7, 8), (6, 9), (9, 8)]
    source, target = np.array(ends).T
    return Fabric.from_arcs(names, np.r_[source, target], np.r_[target, source], 1.0, slots=[1] * 4 + [0] * 6)


def test_each_node_has_a_label_of_each_level_of_the_topology() -> None:
    (topology,) = validated(write("kueue-topology", uneven()), "kueue-topology")
    *levels, last = [level["nodeLabel"] for level in topology["spec"]["levels"]]
    assert last == "kubernetes.io/hostname"
    found = labels_of(write("kubernetes-labels", uneven()))
    ways = {node: " ".join(labels[level] for level in levels) for node, labels in found.items()}
    below = {"a": "core spine l-1", "b": "core spine l-1", "c": "core spine l-1-2"}
    assert ways == {**below, "d": "core leaf-3 leaf-3"}
    assert {len(labels) for labels in found.values()} == {len(levels)}


def test_hyper_nodes_are_the_switches_of_the_tree() -> None:
    found = validated(write("volcano-hypernodes", uneven()), "volcano-hypernode")
    tree = {}
    for one in found:
        members = [(of["type"], of["selector"]["exactMatch"]["name"]) for of in one["spec"]["members"]]
        tree[one["metadata"]["name"]] = (one["spec"]["tier"], members)
    assert tree == {
        "l-1-2": (1, [("Node", "c")]),
        "l-1": (1, [("Node", "a"), ("Node", "b")]),
        "leaf-3": (1, [("Node", "d")]),
        "spine": (2, [("HyperNode", "l-1"), ("HyperNode", "l-1-2")]),
        "core": (3, [("HyperNode", "spine"), ("HyperNode", "leaf-3")]),
    }


def test_a_fat_tree_is_divided_as_by_its_switches() -> None:
    fabric = three_level(4)
    tree = tiers(fabric).tiers
    labels = labels_of(write("kubernetes-labels", fabric))
    assert len(labels) == len(fabric.hosts)
    leaves = {tuple(tier.hosts) for tier in tree if tier.hosts}
    by_leaf: dict[str, list[str]] = {}
    for node, of in labels.items():
        by_leaf.setdefault(of["fabric-almanac/level-1"], []).append(node)
    assert {tuple(nodes) for nodes in by_leaf.values()} == leaves
    assert len(validated(write("volcano-hypernodes", fabric), "volcano-hypernode")) == len(tree)
    (topology,) = validated(write("kueue-topology", fabric), "kueue-topology")
    levels = [level["nodeLabel"] for level in topology["spec"]["levels"][:-1]]
    assert levels == list(next(iter(labels.values())))


@pytest.mark.parametrize("format", ["kubernetes-labels", "kueue-topology", "volcano-hypernodes"])
@pytest.mark.parametrize("names", [("a_b", "c"), ("A", "a"), ("a.", "b"), ("a" * 254, "b")])
def test_names_that_are_no_nodes_are_refused(format: str, names: tuple[str, str]) -> None:
    fabric = Fabric.from_arcs([*names, "s"], [0, 1, 2, 2], [2, 2, 0, 1], 1.0, slots=[1, 1, 0])
    with pytest.raises(InvalidValue, match="node"):
        write(format, fabric)


def test_long_names_of_switches_are_cut_and_stay_different() -> None:
    names = ["a", "b", "x" * 70 + "1", "x" * 70 + "2", "top"]
    a, b = np.array([(0, 2), (1, 3), (2, 4), (3, 4)]).T
    fabric = Fabric.from_arcs(names, np.r_[a, b], np.r_[b, a], 1.0, slots=[1, 1, 0, 0, 0])
    objects = validated(write("volcano-hypernodes", fabric), "volcano-hypernode")
    found = [one["metadata"]["name"] for one in objects]
    assert sorted(found) == ["top", "x" * 61 + "-2", "x" * 63]


def test_the_schemas_refuse_what_they_do_not_know() -> None:
    text = write("kueue-topology", uneven())
    for wrong in (text.replace("nodeLabel", "label"), text.replace("levels:", "tiers:")):
        with pytest.raises(ValidationError):
            validated(wrong, "kueue-topology")
