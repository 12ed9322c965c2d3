"""Files merged with each other and with what is stored; scans and tables of another cluster are rejected."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.merging.cables import Cables, Row, merge_cables
from ingest.merging.fabrics import SourceFabric, merge_fabrics
from ingest.merging.identities import MOST, Disagreements
from ingest.merging.merge import require_same_cluster, shared_devices
from ingest.options import Options
from ingest.pipeline import Report, ingest, plan
from ingest.writers import fat_tree, ibnetdiscover_text
from registry.errors import InputError, PoorerSource, WrongCluster
from registry.model import HOST, NO_PORT, Adapters, Fabric, Links, Ports
from registry.model.intake import Intake
from registry.model.links import DOWN
from registry.registry import Registry
from registry.store.fabrics import Snapshot
from registry.store.snapshots import canonical, content_hash
from tests.support.ibnetdiscover_scans import TREE, fabric_of, raw, swap
from tests.support.inputs import DATA
from tests.support.paths import written
from tests.support.small_fabrics import adapter_fabrics
from tests.support.sure import sure

HERE = Options(cluster="c")
TREE_FOLDER = DATA / "infiniband/fattree2-64-ftree"
MIXED = DATA / "infiniband/mixed-speeds-oversubscribed"
SCANS = ("ibnetdiscover.txt", "iblinkinfo.txt", "opensm-subnet.lst")
TOOLS = (*SCANS, "ibnetdiscover-p.txt", "iblinkinfo-l.txt")


def both(one: Fabric, other: Fabric) -> tuple[Fabric, Sequence[str]]:
    """Two fabrics, from sources a and b, as one, and the warnings."""
    return merge_fabrics([SourceFabric(path="a", fabric=one), SourceFabric(path="b", fabric=other)])


def merged(*paths: Path) -> Intake:
    return plan(paths, HERE)


def fabric(intake: Intake) -> Fabric:
    return sure(intake.fabric)


def known(found: Fabric) -> str:
    return content_hash(canonical(found))


@pytest.mark.parametrize("folder", [TREE_FOLDER, MIXED], ids=lambda folder: folder.name)
@pytest.mark.parametrize(
    "names",
    [pair for pair in permutations(TOOLS, 2) if not all("iblink" in name for name in pair)],
    ids="+".join,
)
def test_two_tools_together_give_what_each_gives(folder: Path, names: tuple[str, str]) -> None:
    one, two = (fabric(merged(folder / name)) for name in names)
    both = merged(folder / names[0], folder / names[1])
    found = fabric(both)
    assert both.warnings == ()
    assert found.names == one.names
    assert np.array_equal(found.links.capacity, one.links.capacity)
    assert np.array_equal(found.links.source_port, one.links.source_port)
    assert len(found.adapters) == len(one.adapters)
    for column in ("guid", "system_guid", "port_guid", "port_lid", "port_lmc"):
        known = [getattr(each.adapters, column).any() for each in (one, two)]
        assert getattr(found.adapters, column).any() == any(known)
    columns = [(each.ports.vertex, each.ports.adapter, each.ports.number) for each in (found, one, two)]
    listed, *parts = [set(zip(*(column.tolist() for column in three), strict=True)) for three in columns]
    assert listed == set.union(*parts)
    down = max((one.ports, two.ports), key=lambda ports: int(ports.down.sum()))
    assert np.array_equal(found.ports.number[found.ports.down], down.number[down.down])


def test_the_order_of_sources_that_agree_does_not_matter() -> None:
    found = {known(fabric(merged(*(MIXED / name for name in order)))) for order in permutations(SCANS)}
    assert len(found) == 1


def test_lists_ufm_and_a_database_get_what_they_lack_from_another() -> None:
    lists = (TREE_FOLDER / "ibhosts.txt", TREE_FOLDER / "ibswitches.txt")
    both = merged(*lists, TREE_FOLDER / "iblinkinfo.txt")
    assert both.warnings == ()
    scan = fabric_of(raw("infiniband/fattree2-64-ftree/ibnetdiscover.txt"))
    assert np.array_equal(fabric(both).adapters.guid, scan.adapters.guid)
    assert np.array_equal(fabric(both).adapters.port_guid, scan.adapters.port_guid)
    assert fabric(both).cable_count == 96
    for name in ("ufm_links.json", "ibdiagnet2.db_csv"):
        both = merged(DATA / "formats" / name, TREE_FOLDER / "ibnetdiscover.txt")
        assert both.warnings[1].endswith("96 capacities missing in one are taken from the other")
        assert np.array_equal(fabric(both).adapters.port_lid, scan.adapters.port_lid)


@pytest.mark.parametrize("names", [["ibnetdiscover-l.txt"], ["ibhosts.txt", "ibswitches.txt"]])
def test_lists_of_nodes_are_no_fabric_alone(names: list[str]) -> None:
    reason = r"ingest it together with a source of the cables \(ibnetdiscover, "
    with pytest.raises(InputError, match=reason) as caught:
        merged(*(TREE_FOLDER / name for name in names))
    assert caught.value.path == str(TREE_FOLDER / names[0])


def test_a_speed_that_is_assumed_gives_way_in_either_order(tmp_path: Path) -> None:
    text = raw("infiniband/fattree2-64-ftree/ibnetdiscover.txt").replace("4xHDR", "4xEDR")
    paths = DATA / "formats/ufm_links.json", written(tmp_path, "scan", text)
    for order in permutations(paths):
        found = merged(*order)
        assert set(fabric(found).links.capacity.tolist()) == {12.5e9}
        assert not [warning for warning in found.warnings if "disagree" in warning]


# disagreements


def lines(intake: Intake, *paths: Path) -> list[str]:
    """Disagreements of a call, each of which must name both files."""
    found = [warning for warning in intake.warnings if "disagree: " in warning]
    assert all(str(path) in warning for warning in found for path in paths)
    return [warning.split("disagree: ")[1] for warning in found]


def test_a_cable_of_one_source_alone_is_reported_and_the_first_wins(tmp_path: Path) -> None:
    cut = DATA / "infiniband/fattree2-64-broken-link/ibnetdiscover.txt"
    whole = TREE_FOLDER / "iblinkinfo.txt"
    missing = "cable leaf03:10 - spine02:3"
    for first, second, kept, cables in ((cut, whole, "left out", 95), (whole, cut, "kept", 96)):
        found = merged(first, second)
        found_lines = lines(found, cut, whole)
        assert f"{missing} is only in {whole}: it is {kept}" in found_lines
        assert [line for line in found_lines if not line.startswith("cable")] == [
            f"host node0042 is only in {whole}: it is {'kept' if first == whole else 'added'}"
        ]
        assert fabric(found).cable_count == cables


def test_another_lid_of_a_switch_is_reported_and_the_first_is_taken() -> None:
    other = swap(TREE, r'("leaf01" (?:enhanced port 0 )?lid )3', r"\g<1>30")
    found, notes = both(fabric_of(TREE), fabric_of(other))
    assert found.lid[found.names.index("leaf01")] == 3
    assert [note.split(": ", 1)[1] for note in notes] == [
        "switch leaf01 has LID 3 in the first and 30 in the second: the first is taken"
    ]


def test_a_cable_that_moved_is_reported_at_both_places(tmp_path: Path) -> None:
    moved = re.sub(r'^Switch(.*0300"[^\n]*\n(?:\[[^\n]*\n)*?)\[4\]', r"Switch\1[9]", TREE, flags=re.M)
    moved = re.sub(r'("S-0002c90000100300")\[4\]', r"\1[9]", moved)
    _, notes = both(fabric_of(TREE), fabric_of(moved))
    assert [note.split(": ", 1)[1] for note in notes] == [
        "cable leaf01:4 - spine01:1 is only in a: it is kept",
        "cable leaf01:9 - spine01:1 is only in b: it is left out",
    ]


def test_another_speed_name_and_lid_are_reported_and_the_first_is_taken(tmp_path: Path) -> None:
    text = (TREE_FOLDER / "iblinkinfo.txt").read_text()
    text = text.replace("leaf02", "renamed")
    text = re.sub(r"(0x0002c90000f04001 +76.*\( 4X +)53.125", r"\g<1>25.78125", text)
    text = re.sub(r"( 9    8\[  \] ==\( 4X +)53.125", r"\g<1>25.78125", text)
    text = re.sub(r"( )75( +1\[)", r"\g<1>99\2", text)
    scan, other = TREE_FOLDER / "ibnetdiscover.txt", written(tmp_path, "links", text)
    found = merged(scan, other)
    assert lines(found, scan, other) == [
        "switch 0x0002c90000100200 is leaf02 in the first and renamed in the second: the first is taken",
        "port 1 of adapter node0063 mlx5_0 has LID 75 in the first and 99 in the second: the first is taken",
        "cable leaf08:8 - node0064:1 has 2.5e+10 bytes/s in the first and 1.25e+10 in the second:"
        " the first is taken",
    ]
    assert known(fabric(found).__class__(**_columns(fabric(found)))) == known(fabric(found))
    back = merged(other, scan)
    assert "renamed" in fabric(back).names
    assert len(lines(back, scan, other)) == 3


def _columns(found: Fabric) -> dict[str, Any]:
    names = ("names", "kind", "slots", "forwards", "guid", "lid", "links", "adapters", "ports")
    return {name: getattr(found, name) for name in names}


def test_many_disagreements_of_a_kind_are_counted(tmp_path: Path) -> None:
    text = (TREE_FOLDER / "iblinkinfo.txt").read_text().replace("53.125", "25.78125")
    scan, other = TREE_FOLDER / "ibnetdiscover.txt", written(tmp_path, "links", text)
    found_lines = lines(merged(scan, other), scan, other)
    assert len(found_lines) == MOST + 1
    assert found_lines[-1] == f"{96 - MOST} more of speeds"


def test_a_port_that_is_down_in_one_and_linked_in_the_other(tmp_path: Path) -> None:
    scan = fabric_of(TREE)
    leaf = scan.names.index("leaf01")
    columns = {"vertex": leaf, "adapter": NO_PORT, "state": DOWN, "could_be": 0.0}
    ports = Ports(
        number=np.array([1, 30]), **{name: np.array([value] * 2) for name, value in columns.items()}
    )
    other = Fabric(**_columns(scan) | {"ports": ports})
    found, _ = both(scan, other)
    assert found.ports.number.tolist() == [30]


def test_a_made_up_name_gives_way_to_a_real_one() -> None:
    nameless = fabric_of(TREE.replace("node0001 mlx5_0", "Mellanox Technologies"))
    assert any(name.startswith("guid-0x") for name in nameless.names)
    for order in permutations([nameless, fabric_of(TREE)]):
        found, warnings = both(*order)
        assert found.names == fabric_of(TREE).names
        assert warnings == ()


def test_adapters_without_a_name_are_of_the_machine_that_another_tool_knows() -> None:
    # two adapters of one machine: without its name and system image GUID each is a host of its own
    known = TREE.replace("node0002 mlx5_0", "node0001 mlx5_1")
    nameless = re.sub(r"node000[12] mlx5_0", "Mellanox Technologies", TREE)
    one, two = fabric_of(nameless), fabric_of(known)
    assert (len(one.hosts), len(two.hosts)) == (6, 5)
    for order in permutations([one, two]):
        found, warnings = both(*order)
        assert found.names == two.names
        assert warnings == ()
        assert len(found.adapters) == 6


# more than one network


def test_two_planes_of_the_same_hosts_are_one_fabric() -> None:
    plane = TREE.replace("2c9000010", "2c9000090").replace("2c90000f0", "2c90000fa")
    plane = plane.replace("leaf", "other-leaf").replace("spine", "other-spine").replace("mlx5_0", "mlx5_1")
    one, two = fabric_of(TREE), fabric_of(plane)
    found, warnings = both(one, two)
    sizes = [(len(one.switches), one.cable_count, len(one.adapters)) for one in (one, found)]
    assert sizes[1] == tuple(2 * size for size in sizes[0])
    assert len(found.hosts) == len(one.hosts)
    said = {warning.split(" is ", 1)[1] for warning in warnings}
    assert said == {"only in a: it is kept", "only in b: it is added"}


def test_switches_of_two_planes_may_have_the_same_names() -> None:
    plane = TREE.replace("2c9000010", "2c9000090").replace("2c90000f0", "2c90000fa")
    plane = re.sub(r"lid (\d+)", lambda match: f"lid {int(match[1]) + 100}", plane)
    found, _ = both(fabric_of(TREE), fabric_of(plane))
    assert "leaf01 [switch 0x0002c90000900300]" in found.names
    assert len(found.switches) == 8


# a scheduler's tree beside a scan


def tree_of_a_scheduler(core: str = "core", leaf: str = "leaf0") -> Fabric:
    """The leaves of TREE under names of their own, and one switch above them; no ports, no GUIDs."""
    names = [core, f"{leaf}1", f"{leaf}2", *(f"node000{n}" for n in range(1, 7))]
    ends = [(0, 1), (0, 2), *((1 + n // 3, 3 + n) for n in range(6))]
    source, target = np.array([*ends, *((b, a) for a, b in ends)]).T
    forwards = [True] * 3 + [False] * 6
    return Fabric.from_arcs(names, source, target, 1.0, slots=[0, 0, 0, *[1] * 6], forwards=forwards)


@pytest.mark.parametrize("leaf", ["leaf0", "rack"])
def test_a_schedulers_switches_are_those_that_its_hosts_hang_on(leaf: str) -> None:
    tree, scan = tree_of_a_scheduler(leaf=leaf), fabric_of(TREE)
    by_tree = SourceFabric(path="tree", fabric=tree, assumed=np.ones(len(tree.links), np.bool_))
    sources = [by_tree, SourceFabric(path="scan", fabric=scan)]
    for order in (sources, sources[::-1]):
        found, warnings = merge_fabrics(order)
        assert len(found) == len(scan)
        for column in ("capacity", "source_port", "target_port", "cables"):
            one, other = (sorted(getattr(each.links, column).tolist()) for each in (found, scan))
            assert one == other
        found_lines = [warning.split("disagree: ")[1] for warning in warnings if "disagree" in warning]
        assert found_lines[0] == "switch core of tree represents several of the other: it is left out"
        assert len(found_lines) == (1 if leaf == "leaf0" else 3)
        assert (f"{leaf}1" if order is sources else "leaf01") in found.names


@pytest.mark.parametrize("name", ["topology.conf", "topology_block.conf", "topology.yaml"])
@pytest.mark.parametrize("first", [True, False])
def test_a_schedulers_file_beside_the_scan_of_its_machine_adds_nothing(name: str, first: bool) -> None:
    # groups of blocks hang on each other, and none of them is a switch of the scan
    paths = [TREE_FOLDER / "ibnetdiscover.txt", DATA / "formats" / name]
    found = fabric(merged(*(paths if first else reversed(paths))))
    scan = fabric(merged(paths[0]))
    assert [found.names[v] for v in found.hosts] == [scan.names[v] for v in scan.hosts]
    assert (len(found), found.cable_count) == (len(scan), scan.cable_count)
    assert sorted(found.links.source_port.tolist()) == sorted(scan.links.source_port.tolist())


def test_capacities_of_a_source_without_ports_are_of_each_cable() -> None:
    found, warnings = both(tree_of_a_scheduler(), fabric_of(TREE))
    hosts = found.kind[found.links.source] == HOST
    assert set(found.links.capacity[hosts].tolist()) == {1.0}
    assert sum("has 1 bytes/s in the first and 2.5e+10" in warning for warning in warnings) == 6


def test_another_adapter_of_the_same_name_is_not_the_one_before() -> None:
    scan = fabric_of(TREE)
    for count in (1, len(scan.adapters)):
        first = np.arange(len(scan.adapters)) < count
        other = replace(scan.adapters, guid=scan.adapters.guid + first.astype(np.uint64) * 2**32)
        ports = other.port_guid + first[other.port_adapter].astype(np.uint64) * 2**32
        found, _ = both(scan, replace(scan, adapters=replace(other, port_guid=ports)))
        assert len(found.adapters) == len(scan.adapters) + count


def test_a_bundle_with_another_number_of_cables_is_reported() -> None:
    scan = fabric_of(TREE)
    arcs = [(a, b) for a in range(len(scan)) for b in scan.neighbour[scan.indptr[a] : scan.indptr[a + 1]]]
    source, target = np.array(arcs).T
    cables = np.where(scan.kind[source] + scan.kind[target] == 2, 3, 1)
    links = Links.of(source, target, cables * 25e9, cables=cables)
    plain = Fabric(**_columns(scan) | {"links": links, "adapters": Adapters(), "guid": np.zeros(len(scan))})
    for first, second, here, there in ((scan, plain, 2, 3), (plain, scan, 3, 2)):
        found, notes = both(first, second)
        assert len(notes) == 4
        assert notes[0].endswith(
            f"leaf01 - spine01 has {here} cables in the first and {there} in the second: the first is taken"
        )
        assert found.cable_count == first.cable_count


def cables(*rows: tuple[float, int, int, int, bool]) -> Cables:
    """Cables from vertex 0 to 1: bytes/s, ports at both ends, number, and whether the bytes/s are assumed."""
    found = [Row(0, 1, *one[:3], NO_PORT, NO_PORT, *one[3:]) for one in rows]
    return Cables(rows=found, linked=np.ones(2, np.bool_), ports=rows[0][1] != NO_PORT)


NO, WRONG_WIDTH, WRONG_SPEED = NO_PORT, "cables in the first and", "bytes/s in the first and"
LEFT_OUT = "is only in b: it is left out"


@pytest.mark.parametrize(
    ("one", "two", "kept", "notes"),
    [
        ([(9, NO, NO, 1, False)], [(27, NO, NO, 3, False)], [(9, NO, NO, 1, False)], []),
        ([(9, NO, NO, 1, True)], [(6, NO, NO, 3, False)], [(2, NO, NO, 1, False)], []),
        ([(9, NO, NO, 2, True)], [(6, NO, NO, 2, False)], [(6, NO, NO, 2, False)], []),
        ([(9, NO, NO, 2, False)], [(6, NO, NO, 2, False)], [(9, NO, NO, 2, False)], [WRONG_SPEED]),
        ([(9, NO, NO, 2, False)], [(9, 1, 1, 1, True)], [(9, NO, NO, 2, False)], [WRONG_WIDTH]),
        ([(9, NO, NO, 1, False)], [(3, 1, 2, 1, True), (3, 3, 4, 1, True)],
         [(9, 1, 2, 1, False), (9, 3, 4, 1, False)], []),
        ([(9, 1, NO, 1, False)], [(9, 1, 2, 1, False), (9, 3, 4, 1, False)], [(9, 1, 2, 1, False)],
         [LEFT_OUT]),
        ([(1, 1, 2, 1, True)], [(2, 1, 2, 1, True)], [(1, 1, 2, 1, True)], []),
        ([(1, 1, 2, 1, True)], [(2, 1, 2, 1, False)], [(2, 1, 2, 1, False)], []),
        ([(1, 1, 2, 1, False)], [(2, 1, 2, 1, True)], [(1, 1, 2, 1, False)], []),
        ([(1, 1, 2, 1, False)], [(2, 1, 2, 1, False)], [(1, 1, 2, 1, False)], [WRONG_SPEED]),
        ([(1e6, 1, 2, 1, False)], [(1e6 + 1.0000005, 1, 2, 1, False)], [(1e6, 1, 2, 1, False)], []),
    ],
)  # fmt: skip
def test_cables_between_two_vertices_of_two_sources(
    one: list[Any], two: list[Any], kept: list[Any], notes: list[str]
) -> None:
    said = Disagreements("a", "b")
    assert merge_cables(cables(*one), cables(*two), ["x", "y"], said) == list(cables(*kept).rows)
    lines = list(said.lines())
    assert len(lines) == len(notes)
    assert all(note in line for note, line in zip(notes, lines, strict=True))


# properties


@settings(deadline=None)
@given(adapter_fabrics())
def test_a_fabric_beside_itself_is_itself(found: Fabric) -> None:
    again, warnings = both(found, found)
    assert warnings == ()
    assert known(again) == known(found)


@settings(deadline=None)
@given(
    adapter_fabrics(), st.sets(st.sampled_from(["guid", "lid", "system", "ports", "rates"])), st.booleans()
)
def test_what_a_poorer_source_lacks_comes_from_the_richer_one(
    found: Fabric, lacks: set[str], first: bool
) -> None:
    adapters, links = found.adapters, found.links
    parts = {"guid": "guid", "system_guid": "system", "port_guid": "ports", "port_lid": "lid"}
    gone = {
        column: np.zeros_like(getattr(adapters, column)) for column, part in parts.items() if part in lacks
    }
    changes: dict[str, Any] = {"adapters": replace(adapters, **gone), "lid": found.lid * ("lid" not in lacks)}
    if "rates" in lacks:
        changes["links"] = replace(links, capacity=np.ones(len(links)))
    poorer = Fabric(**_columns(found) | changes)
    poor = SourceFabric(path="poor", fabric=poorer, assumed=np.full(len(links), "rates" in lacks))
    rich = SourceFabric(path="rich", fabric=found)
    again, warnings = merge_fabrics([poor, rich] if first else [rich, poor])
    assert known(again) == known(found)
    assert not [warning for warning in warnings if "disagree" in warning]


STORED_TREE = (DATA / "formats/topology.conf").read_text()


def day(number: int) -> Options:
    return Options(cluster="ft", observed_at=datetime(2026, 5, number, tzinfo=UTC))


def tree_given(registry: Registry, folder: Path, text: str, when: int = 2) -> Report:
    return ingest(registry, [written(folder, "topology.conf", text)], day(when))


@pytest.fixture
def scanned(registry: Registry) -> Registry:
    """Cluster ft as it was scanned on the first day."""
    ingest(registry, [TREE_FOLDER / "ibnetdiscover.txt"], day(1))
    return registry


def test_a_tree_that_fits_the_scan_has_no_disagreements(scanned: Registry, tmp_path: Path) -> None:
    before = scanned.fabrics.read("ft")
    report = tree_given(scanned, tmp_path, STORED_TREE)
    compared = sure(report.compared)
    assert (compared.time, compared.disagreements) == (datetime(2026, 5, 1, tzinfo=UTC), ())
    assert not sure(report.receipt).new_observation
    assert scanned.fabrics.read("ft").id == before.id
    assert len(scanned.fabrics.observations("ft")) == 1


def test_disagreements_of_an_operators_file_are_reported_and_replace_nothing(
    scanned: Registry, tmp_path: Path
) -> None:
    wrong = STORED_TREE.replace("node[0001-0008]", "node[0001-0007]")
    report = tree_given(scanned, tmp_path, wrong.replace("node[0009-0016]", "node[0008-0016,0099]"))
    disagreements = sure(report.compared).disagreements
    path = tmp_path / "topology.conf"
    between = f"ft as seen at 2026-05-01 00:00:00 UTC and {path} disagree"
    assert disagreements == (
        f"{between}: host node0099 is only in {path}",
        f"{between}: cable leaf01:8 - node0008:1 is only in ft as seen at 2026-05-01 00:00:00 UTC",
        f"{between}: cable leaf02 - node0008 is only in {path}",
    )
    assert set(disagreements) <= set(report.warnings)
    assert "node0099" not in scanned.fabrics.read("ft").fabric.names
    (run, *_) = scanned.runs.list()
    assert (run.outcome, run.formats) == ("unchanged", ("slurm-topology",))


def test_the_same_file_again_is_compared_again_with_what_is_stored_by_then(
    scanned: Registry, tmp_path: Path
) -> None:
    first = tree_given(scanned, tmp_path, STORED_TREE, when=9)
    ingest(scanned, [DATA / "infiniband/fattree2-64-dead-spine/ibnetdiscover.txt"], day(3))
    again = tree_given(scanned, tmp_path, STORED_TREE, when=9)
    assert again.same_as is None
    assert [sure(report.compared).time.day for report in (first, again)] == [1, 3]


def test_what_has_nothing_in_common_is_refused_but_before_the_first_scan_or_of_another_cluster(
    scanned: Registry, tmp_path: Path
) -> None:
    with pytest.raises(PoorerSource, match="slurm-topology has no ports"):
        tree_given(scanned, tmp_path, "SwitchName=a Nodes=x[1-4]\n")
    assert len(scanned.fabrics.observations("ft")) == 1
    assert scanned.runs.list()[0].outcome == "failed"
    path, early = written(tmp_path, "topology.conf", STORED_TREE), datetime(2026, 4, 1, tzinfo=UTC)
    for options in (Options(cluster="ft", observed_at=early), Options(cluster="other")):
        report = ingest(scanned, [path], options)
        assert (report.compared, sure(report.receipt).new_observation) == (None, True)


FULL_NAMES = DATA / "infiniband/full-names/scan.txt"
LEAVES = (
    "SwitchName=a Nodes=node[2527,2529]\nSwitchName=b Nodes=node[2528,2530]\nSwitchName=top Switches=a,b\n"
)


def test_hosts_are_the_same_in_short_and_in_full(tmp_path: Path) -> None:
    intake = merged(FULL_NAMES, written(tmp_path, "topology.conf", LEAVES))
    assert fabric(intake).size == "4 hosts, 3 switches, 8 cables"
    assert "node2527.cluster.example" in fabric(intake).names
    assert not [line for line in intake.warnings if "node25" in line]
    intake = merged(FULL_NAMES, written(tmp_path, "topology.conf", LEAVES.replace("]", "].x.org")))
    doubtful = [line for line in intake.warnings if "x.org is taken as node25" in line]
    assert (fabric(intake).size, len(doubtful)) == ("4 hosts, 3 switches, 8 cables", 4)


INFINIBAND = DATA / "infiniband"
TREE_SCAN = INFINIBAND / "fattree2-64-ftree/ibnetdiscover.txt"
TREE_TABLES = INFINIBAND / "fattree2-64-ftree/opensm-lfts.dump"
DEAD_SPINE = INFINIBAND / "fattree2-64-dead-spine/ibnetdiscover.txt"
TORUS = INFINIBAND / "torus-4x4x4-dor/ibnetdiscover.txt"
NDR = INFINIBAND / "ndr-dgx-minhop/ibnetdiscover.txt"
NDR_TABLES = INFINIBAND / "ndr-dgx-minhop/opensm-lfts.dump.gz"
SLURM = DATA / "formats/topology.conf"


def scan_given(registry: Registry, path: Path, number: int, *, replace: bool = False) -> Report:
    when = datetime(2026, 5, number, tzinfo=UTC)
    return ingest(registry, [path], Options(cluster="c", observed_at=when, replace=replace))


def tree_scan(folder: Path, leaves: int, hosts: int) -> Path:
    """A scan of the first leaf switches of a fat tree with two spine switches; GUIDs count from 1."""
    return written(folder, f"{leaves}x{hosts}.txt", ibnetdiscover_text(fat_tree(leaves, hosts, 2)))


@pytest.fixture
def tree_scanned(registry: Registry) -> Registry:
    """Cluster c, a tree of 64 hosts and 12 switches, scanned on day 10."""
    scan_given(registry, TREE_SCAN, 10)
    return registry


@pytest.mark.parametrize(
    ("path", "shared", "devices"),
    [(NDR, 0, 233), (TORUS, 72, 192)],  # the simulator of tree and torus counts its GUIDs from 1
    ids=["other GUIDs", "72 GUIDs in common"],
)
def test_a_scan_with_fewer_than_half_of_the_last_ones_devices_is_rejected(
    tree_scanned: Registry, path: Path, shared: int, devices: int
) -> None:
    before = tree_scanned.fabrics.read("c").id
    with pytest.raises(WrongCluster) as caught:
        scan_given(tree_scanned, path, 11)
    assert (caught.value.shared, caught.value.devices) == (shared, devices)
    assert caught.value.reason == (
        f"{shared} of the {devices} devices of this scan are in the scan of cluster 'c' of "
        "2026-05-10 00:00:00 UTC: is this another cluster? Add --replace to accept it"
    )
    assert len(tree_scanned.fabrics.observations("c")) == 1
    assert tree_scanned.runs.list("c")[0].outcome == "failed"
    scan_given(tree_scanned, path, 11, replace=True)
    assert tree_scanned.fabrics.read("c").id != before
    scan_given(tree_scanned, path, 12)  # the cluster's last scan by now


def test_scans_with_faults_and_first_data_of_other_clusters_are_accepted(tree_scanned: Registry) -> None:
    scan_given(tree_scanned, DEAD_SPINE, 11)
    scan_given(tree_scanned, INFINIBAND / "fattree2-64-broken-link/ibnetdiscover.txt", 12)
    assert len(tree_scanned.fabrics.observations("c")) == 3
    ingest(tree_scanned, [NDR, NDR_TABLES], Options(cluster="other"))
    assert len(tree_scanned.fabrics.clusters()) == 2


@pytest.mark.parametrize("number", [5, 10, 11])
def test_a_late_scan_is_compared_with_the_scan_before_it_or_else_with_the_first(
    tree_scanned: Registry, number: int
) -> None:
    scan_given(tree_scanned, NDR, 20, replace=True)
    with pytest.raises(WrongCluster, match=r"0 of the 233 devices .* of 2026-05-10 "):
        scan_given(tree_scanned, INFINIBAND.parent / "public/ndr-dgx.ibnetdiscover", number)
    scan_given(tree_scanned, DEAD_SPINE, number)
    with pytest.raises(WrongCluster, match=r"of the 76 devices .* of 2026-05-20 "):
        scan_given(tree_scanned, INFINIBAND / "fattree2-64-traffic/ibnetdiscover.txt", 21)


def test_a_scan_of_a_part_is_accepted_and_the_whole_after_it_as_well(
    registry: Registry, tmp_path: Path
) -> None:
    """The subnet fell apart for a while: 4 hosts and 3 switches instead of 80 and 22."""
    whole, part = tree_scan(tmp_path, 20, 4), tree_scan(tmp_path, 1, 4)
    scan_given(registry, whole, 1)
    scan_given(registry, part, 2)
    scan_given(registry, whole, 3)
    assert len(registry.fabrics.read("c").fabric) == 102
    scan_given(registry, part, 4)
    with pytest.raises(WrongCluster, match="7 of the 302 devices"):
        scan_given(registry, tree_scan(tmp_path, 60, 4), 5)  # three times as many as were ever seen


@pytest.mark.parametrize("scheduler_first", [True, False])
def test_a_schedulers_tree_beside_a_scan_is_compared_by_its_hosts(
    registry: Registry, scheduler_first: bool
) -> None:
    for number, path in enumerate([SLURM, TREE_SCAN] if scheduler_first else [TREE_SCAN, SLURM], start=1):
        scan_given(registry, path, number)
    assert len(registry.fabrics.read("c").fabric.hosts) == 64


def test_a_scan_after_a_schedulers_tree_of_other_hosts_is_rejected(registry: Registry) -> None:
    scan_given(registry, SLURM, 1)
    with pytest.raises(WrongCluster, match="0 of the 193 devices of this scan"):  # its hosts
        scan_given(registry, NDR, 2)


def test_tables_of_switches_that_the_cluster_lacks_are_rejected(tree_scanned: Registry) -> None:
    with pytest.raises(WrongCluster) as caught:
        scan_given(tree_scanned, NDR_TABLES, 11)
    assert caught.value.reason.startswith(
        "0 of the 40 switches of these forwarding tables are in the scan of cluster 'c' of 2026-05-10 "
    )
    assert tree_scanned.fabrics.read("c").routing is None
    scan_given(tree_scanned, NDR_TABLES, 11, replace=True)
    assert tree_scanned.fabrics.read("c").routing is not None


def test_tables_with_a_switch_that_was_down_at_the_last_scan_are_accepted(registry: Registry) -> None:
    scan_given(registry, DEAD_SPINE, 1)
    with pytest.raises(WrongCluster, match="11 of the 12 switches"):
        scan_given(registry, TREE_TABLES, 2)
    scan_given(registry, TREE_SCAN, 2)
    scan_given(registry, DEAD_SPINE, 3)
    scan_given(registry, TREE_TABLES, 4)


def test_only_devices_of_kinds_that_both_have_are_compared() -> None:
    tree = fabric(merged(TREE_SCAN))
    assert shared_devices(tree, tree).tolist() == [True] * 76
    names = [tree.names[v] for v in tree.switches]
    only_switches = Fabric.from_arcs(names, [0, 1], [1, 0], 1e9, slots=0)
    assert shared_devices(tree, only_switches).tolist() == [True] * 12
    assert shared_devices(only_switches, tree).tolist() == [True] * 12
    assert shared_devices(tree, fabric(merged(SLURM))).tolist() == [True] * 64
    only_hosts = Fabric.from_arcs(["node0001", "x"], [0, 1], [1, 0], 1e9)
    assert shared_devices(tree, only_hosts).tolist() == [True, False]
    assert shared_devices(only_switches, only_hosts).tolist() == []


def test_equal_names_mean_nothing_if_both_have_guids_and_share_none() -> None:
    tree = fabric(merged(TREE_SCAN))
    offset = np.uint64(1 << 40)
    guid = np.where(tree.guid > 0, tree.guid + offset, tree.guid)
    columns = {name: getattr(tree.adapters, name) + offset for name in ("guid", "system_guid", "port_guid")}
    adapters = dataclasses.replace(tree.adapters, **columns)
    other = dataclasses.replace(tree, guid=guid, adapters=adapters)
    assert shared_devices(tree, other).tolist() == [False] * 76


def test_half_of_the_devices_are_enough() -> None:
    def line(*names: str) -> Fabric:
        return Fabric.from_arcs(names, range(len(names) - 1), range(1, len(names)), 1e9)

    moment = datetime(2026, 5, 1, tzinfo=UTC)
    before = Snapshot(cluster="c", id="", observed_at=moment, routing=None, fabric=line("a", "b", "c", "d"))
    scans = SimpleNamespace(nearest_seen=lambda *_: before, largest_seen=lambda _: None)
    require_same_cluster(scans, Intake(cluster="c", observed_at=moment, fabric=line("c", "d", "x", "y")))
    with pytest.raises(WrongCluster):
        require_same_cluster(scans, Intake(cluster="c", observed_at=moment, fabric=line("d", "x", "y")))
