"""Exports for Kubernetes fit the projects' published schemas, and say where each host is."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest

from ingest.generate.fat_trees import three_level
from registry.errors import InvalidValue
from registry.exports.catalog import write
from registry.exports.switch_tree import tiers
from registry.model import Fabric
from tests.support.kubernetes import ValidationError, validated

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
