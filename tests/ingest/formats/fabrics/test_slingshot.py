"""Slingshot: the fabric manager's template and STT's table, alone and together."""

from __future__ import annotations

import json
from typing import Any

import networkx as nx
import pytest

from ingest.formats.fabrics import slingshot
from ingest.options import Options
from ingest.parsed import Parsed
from registry.errors import InputError
from registry.interchange import to_networkx
from registry.model import NO_PORT, Fabric
from tests.support.inputs import fabric_in, file, read

TEMPLATE = read("formats/slingshot_fabric_template.json.gz").decode()
TABLE = read("formats/slingshot_stt_show_fabric.txt.gz").decode()
HEAD, *ROWS = TABLE.splitlines()
NO_JACK = "xname is not a port, or dst is not a jack"


def parsed(*contents: str, options: Options | None = None) -> Parsed:
    return slingshot.parse([file(text, f"f{at}") for at, text in enumerate(contents)], options or Options())


def between_switches(fabric: Fabric) -> list[tuple[str, str]]:
    links = fabric.links
    network = fabric.network_link
    return sorted(
        (fabric.names[a], fabric.names[b])
        for a, b in zip(links.source[network], links.target[network], strict=True)
    )


def test_the_template_is_a_dragonfly_of_nine_groups_with_a_host_on_each_edge_port() -> None:
    result = parsed(TEMPLATE)
    fabric = fabric_in(result)
    assert (len(fabric.switches), len(fabric.hosts), fabric.cable_count) == (36, 72, 90 + 72)
    graph: nx.Graph[Any] = nx.Graph(to_networkx(fabric).to_undirected())
    switches = graph.subgraph(fabric.names[switch] for switch in fabric.switches)
    groups = nx.quotient_graph(switches, lambda a, b: a.split("c")[0] == b.split("c")[0])
    assert groups.number_of_nodes() == 9
    assert groups.number_of_edges() == 9 * 8 // 2  # each two groups are joined
    for group in groups:
        assert switches.subgraph(group).number_of_edges() == 4 * 3 // 2  # all to all within
    assert set(fabric.links.capacity.tolist()) == {25e9}
    assert "72 edge ports are taken as hosts because the template contains no nodes" in result.warnings
    hosts = [host for host in fabric.names if "j100" in host]
    assert all(list(graph[host]) == [host.split("j")[0]] for host in hosts)


def test_the_numbers_of_ports_are_those_of_the_links_on_the_chip() -> None:
    fabric = fabric_in(parsed(TEMPLATE))
    at = fabric.names.index("x1000c0r1")
    ports = fabric.links.source_port[fabric.links.source == at]
    assert sorted(ports.tolist()) == [1, 2, 3, 4, 5, 6, 7]
    without = TEMPLATE.replace('"x1000c0r1a0l1"', '"none"')
    fabric = fabric_in(parsed(without))
    ports = fabric.links.source_port[fabric.links.source == fabric.names.index("x1000c0r1")]
    assert sorted(ports.tolist()) == [NO_PORT, 2, 3, 4, 5, 6, 7]


def test_the_table_has_the_links_between_switches_with_their_speeds() -> None:
    table, template = parsed(TABLE), parsed(TEMPLATE)
    assert between_switches(fabric_in(table)) == between_switches(fabric_in(template))
    assert "the table contains no hosts: ingest it together with the template" in table.warnings
    assert table.assumed is not None
    assert not table.assumed.any()


def test_the_table_adds_rates_the_lower_of_two_ends_and_links_that_are_down() -> None:
    rows = [ROWS[0].replace("True", "False"), *(row.replace("BS_200G", "BS_100G") for row in ROWS[1:])]
    result = parsed(TEMPLATE, "\n".join([HEAD, *rows]))
    fabric = fabric_in(result)
    assert fabric.cable_count == 90 + 72 - 1
    assert set(fabric.links.capacity[fabric.network_link].tolist()) == {12.5e9}
    assert "1 link is not up and ignored" in result.warnings
    assert ROWS[0].split(" | ")[1] == "fabric"
    fabric = fabric_in(parsed("\n".join([HEAD, ROWS[0].replace("BS_200G", "BS_100G"), *ROWS[1:]])))
    assert sorted(fabric.links.capacity.tolist())[:3] == [12.5e9, 12.5e9, 25e9]


def test_links_that_only_one_file_knows_are_left_out_and_counted() -> None:
    content: dict[str, Any] = json.loads(TEMPLATE)
    gone = content["links"].pop(0)
    result = parsed(json.dumps(content), TABLE)
    assert fabric_in(result).cable_count == 89 + 72
    assert "2 ports of the table have no such link in the template" in result.warnings
    ends = {gone["conn_a"], gone["conn_b"]}
    rows = [row for row in ROWS if row.split(" | ")[0].strip("| ") not in ends]
    result = parsed("\n".join([HEAD, *rows]), TEMPLATE)
    assert fabric_in(result).cable_count == 89 + 72
    assert "1 link of the template is not in the table and ignored" in result.warnings


def test_links_that_lead_elsewhere_are_left_out_and_two_files_of_a_kind_refused() -> None:
    content: dict[str, Any] = json.loads(TEMPLATE)
    a, b = content["links"][0], content["links"][1]
    a["conn_b"], b["conn_b"] = b["conn_b"], a["conn_b"]
    result = parsed(json.dumps(content), TABLE)
    assert "2 links lead elsewhere in the table: ignored" in result.warnings
    for text in (TEMPLATE, TABLE):
        with pytest.raises(InputError, match="a second file of its kind") as caught:
            parsed(text, text)
        assert caught.value.path == "f1"


def test_several_cables_between_two_jacks_are_joined_in_the_order_of_their_ports() -> None:
    names = [f"x0c0r{r}j1p{p}" for r in (1, 2) for p in (0, 1)]
    rows = [
        f"| {name} | fabric | x0c0r{3 - int(name[5])}j1 | {at} | True | BS_200G |"
        for at, name in enumerate(names)
    ]
    text = "\n".join(["| xname | type | dst | port_num | status | speed |", *rows])
    fabric = fabric_in(parsed(text))
    pairs = set(zip(fabric.links.source_port.tolist(), fabric.links.target_port.tolist(), strict=True))
    assert pairs == {(0, 2), (1, 3), (2, 0), (3, 1)}


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("\n".join([HEAD, *ROWS[1:]]), "do not lead back", None),
        ("\n".join([HEAD, *ROWS, ROWS[0]]), "the port is repeated", 182),
        ("\n".join([HEAD, ROWS[0][:40]]), "columns: the file seems truncated", 2),
        ("\n".join([HEAD, ROWS[0].replace("fabric", "edge", 1)]), "another type than fabric", 2),
        ("\n".join([HEAD, ROWS[0].replace("| 3 |", "| x |")]), "port_num", 2),
        ("\n".join([HEAD, ROWS[0].replace("x1008c1r7j101p0", "eth0")]), NO_JACK, 2),
        ("| xname | dst |\n| a | b |\n", "columns", 1),
        (HEAD, "no rows", None),
    ],
)
def test_a_wrong_table_is_refused(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        parsed(text)
    assert line is None or caught.value.line == line


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"id": "x1000c0r3"', '"id": "x1000c0r1"', "or is repeated"),
        ('"id": "x1000c0r1",', '"id": "switch",', "is not the xname of a switch, or is repeated"),
        ('"x1000c0r1j100p1"', '"x1000c0r1j100p0"', "or is repeated"),
        ('"conn_port": "x1000c0r1j100p0"', '"conn_port": "x1000c0r2j100p0"', "is not a port of x1000c0r1"),
        ('"conn_a": "x1008c1r7j101p0"', '"conn_a": "x1j0p0"', "no switch has"),
        ('"conn_a": "x1008c1r7j101p0"', '"conn_a": "x1008c1r7j101p1"', "two links"),
        ('"conn_a"', '"end_a"', "is not text"),
        ('"switches": [', '"switches": 3, "x": [', "is not a list"),
    ],
)
def test_a_wrong_template_is_refused(old: str, new: str, reason: str) -> None:
    assert old in TEMPLATE
    with pytest.raises(InputError, match=reason):
        parsed(TEMPLATE.replace(old, new, 1))
