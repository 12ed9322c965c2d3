"""netloc: devices, directed edges, and the routes that packets take, as forwarding tables."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ingest.formats.fabrics.netloc import NETLOC
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.pipeline import plan
from mapping.routing import forwarding_tables
from registry.errors import InputError
from registry.model import NO_ROUTE, Fabric, ForwardingTables
from tests.support.inputs import DATA, fabric_in, fabric_of, file, read, refusal
from tests.support.sure import sure
from tests.support.switch_trees import rows_of

NODES = "netloc/plafrim-ib-nodes.ndat.gz"
LOGICAL = "netloc/plafrim-ib-log-paths.ndat.gz"
PHYSICAL = "netloc/plafrim-ib-phy-paths.ndat.gz"
EDITED = "netloc/eth-nodes.ndat"
PATHS = "netloc/eth-phy-paths.ndat"
A, B = "00:00:00:00:00:07", "00:00:00:00:00:08"


def parsed(*names: str, options: Options | None = None) -> Parsed:
    return NETLOC.parse([file(read(name), name) for name in names], options or Options())


def parts(result: Parsed) -> tuple[Fabric, ForwardingTables]:
    return fabric_in(result), sure(result.tables)


def contents_of(*names: str) -> list[Any]:
    return [json.loads(read(NODES))[name] for name in names] + [json.loads(read(LOGICAL))["path_info"]]


def test_plafrim_is_read_with_its_ports_rates_and_lids() -> None:
    fabric = fabric_of(NETLOC, read(NODES))
    assert (len(fabric.hosts), len(fabric.switches), fabric.cable_count) == (125, 9, 201)
    assert "fourmi005" in fabric.names
    rates, counts = np.unique(fabric.links.capacity, return_counts=True)
    assert dict(zip(rates.tolist(), counts.tolist(), strict=True)) == {1e9: 12, 2e9: 64, 4e9: 326}
    assert fabric.lid[fabric.names.index("Voltaire 4036 # 4036-8528")] == 52
    own = fabric.adapters.names.index("fourmi005 HCA-1")
    assert fabric.adapters.port_lid[own] == 6
    assert int(fabric.adapters.guid[own]) == 0x0002C9030006DC31


def test_the_tables_lead_every_packet_along_the_edges_that_the_file_lists() -> None:
    """The oracle walks the file's own paths: from each switch on them the table gives the path's port."""
    fabric, tables = parts(parsed(NODES, LOGICAL))
    nodes, edges, paths = contents_of("node_info", "edge_info")
    row = {int(guid): at for at, guid in enumerate(tables.switch_guid)}
    walked: set[tuple[int, int]] = set()
    for routes in paths.values():
        for target, path in routes.items():
            lid = int(nodes[target]["log_id"])
            for number in path[1:]:
                edge = edges[str(number)]
                at = row[int(edge["src_node_id"].replace(":", ""), 16)]
                assert tables.ports[at, lid] == int(edge["src_port_id"])
                walked.add((at, lid))
    assert int((tables.ports != NO_ROUTE).sum()) == len(walked)
    assert sorted(tables.switch_guid.tolist()) == sorted(fabric.guid[fabric.switches].tolist())
    owned = tables.lid_guid[tables.lid_guid != 0]
    assert set(owned.tolist()) == set(fabric.adapters.port_guid.tolist())


def test_loads_along_the_tables_are_the_counts_of_the_files_own_paths() -> None:
    """A byte between each two hosts: on every cable as many as paths of the file lead over its edge."""
    fabric, tables = parts(parsed(NODES, LOGICAL))
    nodes, edges, paths = contents_of("node_info", "edge_info")
    vertex = {key: _vertex(fabric, int(key.replace(":", ""), 16)) for key in nodes}
    used: Counter[tuple[int, int, int]] = Counter()
    pairs = []
    for source, routes in paths.items():
        for target, path in routes.items():
            pairs.append((vertex[source], vertex[target]))
            for number in path:
                edge = edges[str(number)]
                ends = vertex[edge["src_node_id"]], vertex[edge["dest_node_id"]]
                used[(*ends, int(edge["src_port_id"]))] += 1
    routes_on = forwarding_tables.build(replace(fabric, tables=tables), fabric.hosts)
    at = {host: index for index, host in enumerate(fabric.hosts.tolist())}
    source, target = ([at[pair[end]] for pair in pairs] for end in (0, 1))
    carried = routes_on.link_bytes(source, target, np.ones(len(pairs)))
    assert carried.tolist() == [used[key] for key in rows_of(fabric.links, "source", "target", "source_port")]


def _vertex(fabric: Fabric, guid: int) -> int:
    adapter = np.flatnonzero(fabric.adapters.guid == guid)
    return int(fabric.adapters.host[adapter[0]] if len(adapter) else np.flatnonzero(fabric.guid == guid)[0])


def test_the_three_files_of_a_folder_are_one_observation_without_the_paths_that_netloc_computed() -> None:
    intake = plan([DATA / name for name in (PHYSICAL, LOGICAL, NODES)], Options(cluster="c"))
    assert (intake.fabric is None, intake.tables is None, intake.source) == (False, False, "netloc")
    result = parsed(NODES, PHYSICAL)
    assert result.tables is None
    assert result.warnings == ("1 file of physical paths, computed by netloc, is ignored",)


def test_an_ethernet_network_is_read_its_ids_are_no_guids_of_others_and_its_speeds_are_bits() -> None:
    result = parsed(EDITED, "netloc/eth-log-paths.ndat")
    fabric = fabric_in(result)
    assert (len(fabric.hosts), len(fabric.switches), fabric.cable_count) == (8, 7, 14)
    assert [fabric.names[host] for host in fabric.hosts] == [f"10.0.0.{k}" for k in range(1, 9)]
    guids = [*fabric.adapters.guid.tolist(), *fabric.guid[fabric.switches].tolist()]
    assert len(set(guids)) == 15
    assert 0x000000FFFE000007 in fabric.adapters.guid.tolist()
    assert set(fabric.links.capacity.tolist()) == {1.25e9}
    assert "the file of paths contains no routes" in result.warnings
    rated = fabric_of(NETLOC, read(EDITED), Options(rate=1e9))
    assert sorted(set(rated.links.capacity.tolist())) == [1e9, 1.25e9]


def test_hosts_without_lids_are_numbered_and_routes_that_depend_on_the_source_are_no_tables() -> None:
    """The physical paths of the Ethernet sample under a name that does not say so."""
    files = [file(read(EDITED), "n"), file(read("netloc/eth-phy-paths.ndat"), "paths")]
    fabric, tables = parts(NETLOC.parse(files, Options()))
    assert tables.ports.shape == (7, 9)
    assert tables.lid_guid.tolist() == [0, *sorted(fabric.adapters.port_guid.tolist())]
    end = "00:00:00:00:00:02"
    way = json.loads(read(PATHS))["path_info"][A][end]
    assert way == [7, 21, 41, 49, 27, 1]
    roundabout = [39, 21, 43, 9, 41, 49, 27, 1]  # the switch that 21 leads to sends to another port first
    text = json.dumps({"path_info": {A: {end: way}, B: {end: roundabout}}})
    with pytest.raises(InputError, match="by another port"):
        NETLOC.parse([file(read(EDITED), "n"), file(text, "p")], Options())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda edges, nodes: edges.pop("1"), "is not in the file: it seems truncated"),
        (lambda edges, nodes: nodes.update(seven=nodes.pop(A)), "neither a GUID nor a MAC|an end is no node"),
        (
            lambda edges, nodes: edges["1"].update(dest_node_id="00:00:00:00:00:99"),
            "an end is missing in the nodes",
        ),
        (lambda edges, nodes: nodes[A].update(node_type=3), "node_type is neither"),
        (lambda edges, nodes: edges["1"].update(src_port_id="many"), "is not a whole number from"),
        (lambda edges, nodes: edges["1"].update(speed="ZDR"), "width and speed are not those of InfiniBand"),
    ],
)
def test_a_wrong_file_of_nodes_is_refused(change: Callable[[Any, Any], object], reason: str) -> None:
    content = json.loads(read(EDITED))
    change(content["edge_info"], content["node_info"])
    assert re.search(reason, refusal(NETLOC, json.dumps(content)).reason)


@pytest.mark.parametrize(
    ("source", "target", "path", "reason"),
    [
        (A, B, [7], "does not lead to its end"),
        (A, B, [19], "is interrupted: an edge does not begin where the last one ends"),
        (A, B, ["x"], "is interrupted: an edge does not begin where the last one ends"),
        (A, B, 7, "is not a list"),
        (A, "00:00:00:00:00:00:00:03", [7], "an end is not a host in the file of nodes"),
        ("nobody", B, [7], "an end is not a host in the file of nodes"),
    ],
)
def test_wrong_routes_are_refused(source: str, target: str, path: Any, reason: str) -> None:
    text = json.dumps({"path_info": {source: {target: path}}})
    with pytest.raises(InputError, match=reason):
        NETLOC.parse([file(read(EDITED), "n"), file(text, "p")], Options())


def test_paths_alone_and_two_files_of_a_kind_are_refused() -> None:
    with pytest.raises(InputError, match="paths without the file of nodes: ingest both together"):
        parsed(LOGICAL)
    with pytest.raises(InputError, match="a second file of nodes"):
        parsed(NODES, NODES)
    with pytest.raises(InputError, match="a second file of paths"):
        parsed(NODES, LOGICAL, LOGICAL)
