"""topograph: labels of Kubernetes' nodes and models; and LLNL's ibtopo, which lists ways down a tree."""

from __future__ import annotations

import itertools
import json
from typing import Any

import networkx as nx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ingest.catalog import Parser
from ingest.formats.fabrics import ibtopo
from ingest.formats.fabrics import topograph_labels as by_labels
from ingest.formats.fabrics import topograph_model as model
from registry.interchange import to_networkx
from tests.support.inputs import fabric_in, fabric_of, parse, read, refusal
from tests.support.switch_trees import below, leaves_of_eight, rates


def labels(nodes: dict[str, list[str]], key: str = "fabric.topograph.run/tier-{}") -> str:
    items = [
        {"metadata": {"name": name, "labels": {key.format(tier): sw for tier, sw in enumerate(tiers)}}}
        for name, tiers in nodes.items()
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def test_labels_of_two_tiers_make_the_tree_in_json_and_yaml() -> None:
    fabric = fabric_of(by_labels, read("formats/k8s_nodes.json").decode())
    tree = leaves_of_eight()
    assert below(fabric) == {
        "core": {"leaf01", "leaf02"},
        **{leaf: tree[leaf] for leaf in ("leaf01", "leaf02")},
    }
    assert rates(fabric) == {1.0}
    content = json.loads(read("formats/k8s_nodes.json"))
    text = yaml.safe_dump(content)
    assert by_labels.recognise(text[:65536], "x")
    assert below(fabric_of(by_labels, text)) == below(fabric_of(by_labels, json.dumps(content)))


def test_labels_of_older_releases_are_read() -> None:
    key = "network.topology.nvidia.com"
    tiers = {name: {f"{key}/leaf": leaf, f"{key}/spine": "s1"} for name, leaf in (("a", "l1"), ("b", "l2"))}
    items = [{"metadata": {"name": name, "labels": found}} for name, found in tiers.items()]
    assert below(fabric_of(by_labels, json.dumps({"items": items}))) == {
        "l1": {"a"},
        "l2": {"b"},
        "s1": {"l1", "l2"},
    }


def test_nodes_without_labels_are_left_out_and_counted_and_domains_are_counted() -> None:
    content = json.loads(labels({"a": ["l"], "b": ["l"], "c": []}))
    content["items"][0]["metadata"]["labels"]["accelerator.topograph.run/domain"] = "nvl1"
    parsed = parse(by_labels, json.dumps(content))
    assert fabric_in(parsed).names == ("a", "b", "l")
    assert parsed.warnings[:2] == (
        "1 node has no label of a switch: ignored",
        "1 node names a domain of accelerators, which is ignored",
    )


@pytest.mark.parametrize(
    ("parser", "text", "reason"),
    [
        (
            by_labels,
            labels({"a": ["l", "s1"], "b": ["l", "s2"]}),
            "'l' has another parent in the labels of another node",
        ),
        (
            by_labels,
            labels({"a": ["l", "s"], "b": ["s", "t"]}),
            "'s' has another parent in the labels of another node",
        ),
        (by_labels, labels({"a": ["l", "l"]}), "two tiers"),
        (by_labels, labels({"a": ["l"], "b": ["l"]}).replace('"b"', '"a"'), "'a' is repeated"),
        (by_labels, labels({"a": ["l"], "l": ["m"]}), "is the name of a host and of a switch"),
        (by_labels, labels({"a": ["l"]}).replace("tier-0", "tier-1"), "tier between others is missing"),
        (by_labels, labels({"a": ["l"]}).replace('"l"', "7"), "is not text"),
        (by_labels, labels({"a": [""]}), "is not a valid name of a device"),
        (by_labels, labels({"a": ["x\\u0007"]}).replace("\\\\u", "\\u"), "is not a valid name of a device"),
        (by_labels, labels({}), "no cable"),
        (by_labels, '{"items": {"fabric.topograph.run/tier-0": 1}}', "is not a list"),
        (by_labels, '{"items": [3]}', "is not an object"),
        (
            model,
            "switches:\n  a:\n    switches: [b]\nblocks:\n- switch: c\n  nodes: [n]\n",
            "'c' is not described",
        ),
        (model, "switches:\n  a:\n    switches: [a]\n", "above itself"),
        (model, "switches:\n  a:\n    nodes: [n, n]\n", "named twice"),
        (
            model,
            "switches:\n  a:\n    nodes: [n]\nblocks:\n- switch: a\n  nodes: [n]\n",
            "is already below this switch",
        ),
        (model, "switches:\n  a:\n    nodes: n\n", "is not a list"),
        (model, "switches:\n- name: a\n- name: a\n", "is repeated"),
        (model, "switches:\n- nodes: [a]\n", "name: is not text"),
        (model, "switches: [a\n", "invalid or truncated YAML"),
    ],
)
def test_wrong_labels_and_models_are_refused(parser: Parser, text: str, reason: str) -> None:
    assert reason in str(refusal(parser, text))


def test_a_model_of_blocks_makes_the_tree() -> None:
    parsed = parse(model, read("formats/topograph_model.yaml"))
    assert below(fabric_in(parsed)) == {
        "core": {"spine-1", "spine-2"},
        "spine-1": {"leaf-11", "leaf-12"},
        "spine-2": {"leaf-21"},
        "leaf-11": {"node0001", "node0002", "node0003", "node0004"},
        "leaf-12": {"node0005", "node0006", "node0008"},
        "leaf-21": {"node0009", "node0010", "node0011", "node0012"},
    }
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
        assert model.recognise(text, "x")
        assert below(fabric_of(model, text)) == tree


def test_ibtopo_makes_the_tree_with_switches_called_by_the_way_to_them() -> None:
    fabric = fabric_of(ibtopo, read("formats/llnl.topo"))
    leaves = {f"sw-0-{at}": hosts for at, hosts in enumerate(list(leaves_of_eight().values())[1:])}
    assert below(fabric) == {"sw-0": set(leaves), **leaves}


@given(st.dictionaries(st.integers(0, 99), st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=20))
def test_hosts_of_ibtopo_are_as_far_apart_as_their_ways_differ(ways: dict[int, tuple[int, int, int]]) -> None:
    lines = ["3", *(f"n{host} {a} {b} {c}" for host, (a, b, c) in ways.items())]
    fabric = fabric_of(ibtopo, "\n\n".join(lines))
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
        ("1\nsw-0 0\n", "is the name of a host and of a switch", 2),
        ("1\n", "no cable", None),
    ],
)
def test_a_wrong_line_of_ibtopo_is_named(text: str, reason: str, line: int | None) -> None:
    error = refusal(ibtopo, text)
    assert reason in str(error)
    assert error.line == line
