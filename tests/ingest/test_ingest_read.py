"""`ingest.read`: a file of any format as a fabric or profile, in one line and without a database."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import ingest
from ingest.options import Options
from registry import Fabric, Profile
from registry.errors import InputError, InvalidValue, UnknownFormat
from tests.support.inputs import DATA

PATTERN = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n"
VALUES = "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 8\n2 3 4\n"
METIS = "3 2\n2\n1 3\n2\n"
METIS_WEIGHTS = "3 2 1\n2 7\n1 7 3 5\n2 5\n"
RING: nx.Graph[int] = nx.cycle_graph(4)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def fabric_of(path: Path, **options: Any) -> Fabric:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ingest.read(path, **options)
    assert isinstance(found, Fabric)
    return found


def profile_of(path: Path, **options: Any) -> Profile:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ingest.read(path, **options)
    assert isinstance(found, Profile)
    return found


def edges_of(profile: Profile) -> dict[tuple[int, int], float]:
    pairs = zip(profile.sender.tolist(), profile.partner.tolist(), strict=True)
    return dict(zip(pairs, profile.bytes.tolist(), strict=True))


def cables_of(fabric: Fabric) -> dict[tuple[str, str], float]:
    links, names = fabric.links, fabric.names
    pairs = zip(links.source.tolist(), links.target.tolist(), links.capacity.tolist(), strict=True)
    return {(names[source], names[target]): rate for source, target, rate in pairs}


def both_ways(*cables: tuple[str, str, float]) -> dict[tuple[str, str], float]:
    ends = [((a, b), rate) for a, b, rate in cables] + [((b, a), rate) for a, b, rate in cables]
    return dict(ends)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("graph.mtx", PATTERN),
        ("graph.mtx", VALUES),
        ("graph.graph", METIS),
        ("graph.graph", METIS_WEIGHTS),
        ("edges.txt", "# a path\n1 2\n2 3\n"),
        ("edges.csv", "1,2,7\n2,3,5\n"),
    ],
)
def test_a_graph_is_a_fabric_with_the_given_capacity(tmp_path: Path, name: str, text: str) -> None:
    fabric = fabric_of(write(tmp_path, name, text), capacity=12.5e9)
    assert fabric.names == ("1", "2", "3")  # as the file numbers them
    assert cables_of(fabric) == both_ways(("1", "2", 12.5e9), ("2", "3", 12.5e9))
    assert fabric.hosts.tolist() == [0, 2]  # they have one neighbour


@pytest.mark.parametrize(
    ("name", "text", "sizes"),
    [
        ("graph.mtx", VALUES, (8.0, 4.0)),
        ("graph.graph", METIS_WEIGHTS, (7.0, 5.0)),
        ("edges.txt", "1 2 7\n2 3 5.0\n", (7.0, 5.0)),
        ("edges.txt", "1 2 {'cost': 1, 'weight': 7.0}\n2 3 {'weight': 5}\n", (7.0, 5.0)),
    ],
)
def test_weights_are_capacities_on_request(
    tmp_path: Path, name: str, text: str, sizes: tuple[float, float]
) -> None:
    fabric = fabric_of(write(tmp_path, name, text), capacity="weight")
    assert cables_of(fabric) == both_ways(("1", "2", sizes[0]), ("2", "3", sizes[1]))


@pytest.mark.parametrize(
    ("name", "text", "options", "bytes_"),
    [
        ("graph.mtx", VALUES, {}, {(0, 1): 8.0, (1, 2): 4.0}),
        ("graph.mtx", PATTERN, {"weight": 8.0}, {(0, 1): 8.0, (1, 0): 8.0, (1, 2): 8.0, (2, 1): 8.0}),
        ("graph.graph", METIS_WEIGHTS, {}, {(0, 1): 3.5, (1, 0): 3.5, (1, 2): 2.5, (2, 1): 2.5}),
        ("graph.graph", METIS, {"weight": 6.0}, {(0, 1): 3.0, (1, 0): 3.0, (1, 2): 3.0, (2, 1): 3.0}),
        ("edges.txt", "0 1 8\n1 2 4\n", {}, {(0, 1): 8.0, (1, 2): 4.0}),
        ("edges.txt", "0 1\n1 3\n", {"weight": 8.0}, {(0, 1): 8.0, (1, 3): 8.0}),
        ("edges.txt", "a b 8\nb c 4\n", {"weight": "weight"}, {(0, 1): 8.0, (1, 2): 4.0}),
        ("edges.txt", "0 1 {'size': 8}\n", {"weight": "size"}, {(0, 1): 8.0}),
    ],
)
def test_a_graph_is_a_profile_with_its_weights_or_the_given_ones(
    tmp_path: Path, name: str, text: str, options: dict[str, Any], bytes_: dict[tuple[int, int], float]
) -> None:
    assert edges_of(profile_of(write(tmp_path, name, text), **options)) == bytes_


def test_what_networkx_writes_is_read(tmp_path: Path) -> None:
    nx.set_edge_attributes(RING, dict.fromkeys(RING.edges, 3.0), "weight")
    nx.write_edgelist(RING, tmp_path / "ring.edges")
    nx.write_weighted_edgelist(RING, tmp_path / "ring.txt")
    nx.write_graphml(RING, tmp_path / "ring.graphml")
    for name in ("ring.edges", "ring.txt", "ring.graphml"):
        assert set(edges_of(profile_of(tmp_path / name, weight="weight")).values()) == {3.0}
        assert fabric_of(tmp_path / name, capacity="weight").cable_count == 4
        fabric = fabric_of(tmp_path / name, capacity=5.0)
        assert (set(fabric.capacity.tolist()), fabric.names) == ({5.0}, ("0", "1", "2", "3"))


def test_vertices_that_are_no_ranks_are_reported(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="there is no vertex 0: rank 0 is vertex 1"):
        found = ingest.read(write(tmp_path, "edges.txt", "1 2 8\n2 4 4\n"))
    assert isinstance(found, Profile)
    assert (found.ranks, edges_of(found)) == (4, {(0, 1): 8.0, (1, 3): 4.0})
    nx.write_graphml(nx.relabel_nodes(RING, {at: at + 1 for at in RING}), tmp_path / "one.graphml")
    with pytest.warns(
        UserWarning, match=re.escape("the ranks 0 .. 3 are the nodes '1' .. '4', in this order")
    ):
        ingest.read(tmp_path / "one.graphml", weight=8.0)


def test_a_scan_gets_the_capacity_only_where_it_has_none() -> None:
    (scan,) = DATA.glob("public/1.topo")
    assert isinstance(fabric_of(scan), Fabric)
    given = cables_of(fabric_of(scan, capacity=3.0))
    assert given == cables_of(fabric_of(scan)) or set(given.values()) > {3.0}


def test_what_is_not_asked_for_is_refused(tmp_path: Path) -> None:
    (scan,) = DATA.glob("public/1.topo")
    with pytest.raises(InputError, match="the format ibnetdiscover holds a fabric"):
        profile_of(scan, weight=8.0)
    with pytest.raises(InputError, match="holds a profile"):
        fabric_of(DATA / "edges" / "npb_cg_S_16.csv.gz", capacity=1.0)
    with pytest.raises(InputError, match="holds neither a fabric nor a profile"):
        ingest.read(next(DATA.glob("slurm/squeue*.txt")))
    with pytest.raises(InvalidValue, match="weight: not with capacity"):
        ingest.read(scan, capacity=1.0, weight=1.0)
    with pytest.raises(InputError, match="edges have no 'cost': the file has no weights"):
        ingest.read(write(tmp_path, "graph.graph", METIS), capacity="cost")
    with pytest.raises(InputError, match="an edge without bytes: in Python"):
        ingest.read(write(tmp_path, "edges.txt", "0 1\n1 2\n0 2\n"))
    with pytest.raises(UnknownFormat):
        ingest.read(write(tmp_path, "names.txt", "a b c d\ne f g h\n"))
    with pytest.raises(InputError, match="expected two vertices"):
        ingest.read(write(tmp_path, "names.txt", "a b c d\ne f g h\n"), weight=1.0)
    with pytest.raises(InvalidValue, match=r"Options\.weight"):
        Options(weight=0.0)
