"""Cores of ranks: chosen by layouts, counted, carried to launchers' files."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanac.output.json.placements import placement_to_json
from ingest.catalog import Parser
from ingest.formats.placements import hostfile, placement_csv
from ingest.formats.placements import openmpi_rankfile as rankfile
from ingest.options import Options
from mapping.evaluation.report import report_placement
from mapping.launchers.catalog import FORMATS, write
from mapping.placement.case import PlacementCase
from mapping.placement.partition.cores import ALL, bind_cores, layouts_on
from mapping.placement.search.options import SearchOptions
from registry.errors import InvalidPlacement, InvalidValue, UnknownName
from registry.model import Allocation, Fabric, Placement, Profile
from registry.model.host_layout import HostLayout
from tests.support.inputs import file

READERS: dict[str, Parser] = {
    "csv": placement_csv,
    "openmpi-rankfile": rankfile,
    "mpich-machinefile": hostfile,
}
FABRIC = Fabric.from_arcs(
    ["a", "b", "c", "s"], [0, 1, 2, 3, 3, 3], [3, 3, 3, 0, 1, 2], 1.0, slots=[4, 4, 4, 0]
)
EACH = Allocation.of(FABRIC, ["a", "b", "c"], 4)
PAIRS = Profile.from_edges([0, 1, 2, 3, 4], [2, 3, 0, 1, 5], [5.0, 5.0, 5.0, 5.0, 1.0])
"""Ranks 0 and 2, 1 and 3 talk; 4 and 5 do."""


def layout(domains: list[int], cpus: list[int]) -> HostLayout:
    """Cores in these domains, with these numbers; no adapter."""
    d = max(domains) + 1
    return HostLayout(
        core_domain=np.array(domains),
        core_cpu=np.array(cpus),
        domain_node=np.arange(d, dtype=np.int32),
        distance=np.where(np.eye(d, dtype=bool), 10.0, 20.0),
        nic_fabric=np.zeros(0, np.bool_),
        nic_guid=np.zeros(0, np.uint64),
        nic_near=np.zeros((0, d), np.bool_),
    )


SPLIT = layout([0, 0, 1, 1], [0, 2, 1, 3])
"""Two domains of two cores, whose CPUs alternate."""


def placed(hosts: list[int]) -> Placement:
    return Placement(host_of_rank=np.array(hosts), allocation=EACH, strategy="given")


def test_cores_and_their_cpus_are_carried_and_what_crosses_is_counted() -> None:
    found, cores = bind_cores(PAIRS, placed([0, 0, 0, 0, 1, 1]), {0: SPLIT})
    assert found.core_of_rank is not None
    assert found.cpu_of_rank is not None
    domain = SPLIT.core_domain[found.core_of_rank[:4]]
    assert domain[0] == domain[2] != domain[1] == domain[3]
    np.testing.assert_array_equal(found.cpu_of_rank[:4], SPLIT.core_cpu[found.core_of_rank[:4]])
    assert found.core_of_rank[4:].tolist() == [0, 1]
    assert found.cpu_of_rank[4:].tolist() == [-1, -1]
    assert (cores.hosts, cores.without_layout) == (2, 1)
    assert (cores.crossing_bytes_in_order, cores.crossing_bytes) == (20.0, 0.0)
    assert (cores.weighted_bytes_in_order, cores.weighted_bytes) == (40.0, 20.0)


@given(st.lists(st.integers(0, 2), min_size=6, max_size=6).filter(lambda h: max(map(h.count, h)) <= 4))
def test_cores_never_cost_more_than_ranks_in_order(hosts: list[int]) -> None:
    found, cores = bind_cores(PAIRS, placed(hosts), {0: SPLIT, 1: SPLIT})
    assert cores.weighted_bytes <= cores.weighted_bytes_in_order
    assert found.core_of_rank is not None
    assignment = set(zip(hosts, found.core_of_rank.tolist(), strict=True))
    assert len(assignment) == 6


def test_layouts_go_by_host_name_with_one_for_all_others() -> None:
    other = layout([0], [0])
    allocation = Allocation.of(FABRIC, ["a", "b"], 4)
    assert layouts_on(FABRIC, allocation, {ALL: SPLIT, "b.cluster.example": other}) == {0: SPLIT, 1: other}
    assert layouts_on(FABRIC, allocation, {"a": SPLIT, "c": other}) == {0: SPLIT}
    with pytest.raises(UnknownName, match="HOST=FILE"):
        layouts_on(FABRIC, allocation, {"d": SPLIT})


def test_a_report_has_cores_if_layouts_are_known() -> None:
    options = SearchOptions(objective="hop-bytes", strategies=("in-order",), steps=1)
    case = PlacementCase(profile=PAIRS, fabric=FABRIC, allocation=EACH, options=options, layouts={ALL: SPLIT})
    found = report_placement(case)
    assert found.cores is not None
    assert found.cores.crossing_bytes == 0.0
    fields = asdict(found.cores)
    assert placement_to_json(found)["cores"] == {"host_count": fields.pop("hosts"), **fields}
    assert found.placement.core_of_rank is not None
    without = report_placement(replace(case, layouts={}))
    assert without.cores is None
    assert without.placement.core_of_rank is None
    assert "cores" not in placement_to_json(without)


def test_an_unknown_host_of_a_layout_is_reported_before_the_search() -> None:
    options = SearchOptions(seconds=1e9)
    case = PlacementCase(profile=PAIRS, fabric=FABRIC, allocation=EACH, options=options, layouts={"d": SPLIT})
    with pytest.raises(UnknownName, match="'d'"):
        report_placement(case)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("csv", "rank,host,slot,core,cpu\n0,b,0,2,1\n1,a,0,,\n2,b,1,0,0\n3,b,2,1,2\n4,a,1,,\n"),
        (
            "openmpi-rankfile",
            "rank 0=b slot=2\nrank 1=a slot=0\nrank 2=b slot=0\nrank 3=b slot=1\nrank 4=a slot=1\n",
        ),
        ("mpich-machinefile", "b:1 binding=user:1\na:1\nb:2 binding=user:0,2\na:1\n"),
        ("slurm-hostfile", "b\na\nb\nb\na\n"),
    ],
)
def test_files_of_a_placement_bind_cores(format: str, text: str) -> None:
    cores, cpus = np.array([2, 0, 0, 1, 1], np.int32), np.array([1, -1, 0, 2, -1], np.int32)
    found = replace(placed([1, 0, 1, 1, 0]), core_of_rank=cores, cpu_of_rank=cpus)
    assert write(format, found, FABRIC) == text
    if FORMATS.find(format).cores:
        read = READERS[format].parse([file(text)], Options()).placements[0]
        assert read is not None
        assert read.hosts == ("b", "a", "b", "b", "a")


def test_cores_that_do_not_fit_are_refused() -> None:
    two = np.zeros(2, np.int32)
    with pytest.raises(InvalidPlacement, match="one core"):
        replace(placed([0, 0]), core_of_rank=two, cpu_of_rank=two)
    assert replace(placed([0, 1]), core_of_rank=two, cpu_of_rank=two).ranks == 2
    with pytest.raises(InvalidValue, match="must be given together with"):
        replace(placed([0, 1]), core_of_rank=two)
    with pytest.raises(InvalidValue, match=r"Placement\.core_of_rank"):
        replace(placed([0, 1]), core_of_rank=two - 1, cpu_of_rank=two)
