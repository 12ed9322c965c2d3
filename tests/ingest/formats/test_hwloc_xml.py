"""hwloc's XML: cores, NUMA nodes, latencies and adapters, in three versions of the format."""

from __future__ import annotations

import numpy as np
import pytest

from ingest.formats.hwloc_xml import read_layout
from registry.errors import InputError, InvalidValue
from registry.model.hosts import HostLayout
from tests.support.inputs import file, read

TWO_RAILS = [read(f"hwloc/two_rails_v{version}.xml") for version in (1, 2, 3)]
FOUR_CORES = read("hwloc/four_cores.xml")


@pytest.mark.parametrize("content", TWO_RAILS, ids=["v1", "v2", "v3"])
def test_the_same_host_in_three_versions(content: bytes) -> None:
    layout = read_layout(file(content))
    assert (layout.name, layout.source) == ("n0001", "hwloc 2.9.0")
    assert layout.core_domain.tolist() == np.repeat(range(4), 3).tolist()
    assert layout.core_cpu.tolist() == list(range(0, 24, 2))
    assert layout.domain_node.tolist() == [0, 1, 2, 3]
    near, far = np.array([[10.0, 12.0], [12.0, 10.0]]), np.full((2, 2), 21.0)
    assert layout.distance.tolist() == np.block([[near, far], [far, near]]).tolist()
    assert layout.nic_name == ("ib0", "mlx5_0", "ib1", "mlx5_1", "eth0")
    assert layout.nic_fabric.tolist() == [False, True, False, True, False]
    assert layout.nic_guid.tolist() == [0, 0x0C42A10300123400, 0, 0x0C42A10300123500, 0]
    assert layout.nic_near.astype(int).tolist() == [[0, 1, 0, 0]] * 2 + [[0, 0, 1, 0]] * 2 + [[1] * 4]


def test_a_host_without_numa_latencies_or_devices() -> None:
    layout = read_layout(file(FOUR_CORES))
    assert (layout.cores, layout.domains, layout.name, layout.nic_name) == (4, 1, "", ())
    assert layout.distance.tolist() == [[10.0]]
    assert layout.nic_near.shape == (0, 1)


def xml(objects: str, *, version: str = ' version="2.0"', root: str = "", after: str = "") -> str:
    machine = f'<object type="Machine" os_index="0" cpuset="0x0000000f" gp_index="1"{root}>{objects}</object>'
    return f"<topology{version}>{machine}{after}</topology>"


def core(cpus: int) -> str:
    return f'<object type="Core" cpuset="0x{cpus:08x}"/>'


def node(number: int, cpus: int, gp: int = 0) -> str:
    return f'<object type="NUMANode" os_index="{number}" gp_index="{gp}" cpuset="0x{cpus:08x}"/>'


def layout_of(text: str) -> HostLayout:
    return read_layout(file(text))


HALVES = node(0, 3) + core(1) + core(2) + node(1, 12) + core(4) + core(8)


def test_latencies_follow_the_numbers_of_nodes_not_their_order() -> None:
    objects = node(5, 3, 70) + core(1) + core(2) + node(2, 12, 71) + core(4) + core(8)
    values = "<u64values>10 33</u64values><u64values>44 11</u64values>"
    for indexing, indexes in (("os", "2 5"), ("gp", "71 70")):
        about = f'type="NUMANode" nbobjs="2" kind="5" indexing="{indexing}"'
        after = f"<distances2 {about}><indexes>{indexes}</indexes>{values}</distances2>"
        layout = layout_of(xml(objects, after=after))
        assert layout.domain_node.tolist() == [5, 2]
        assert layout.distance.tolist() == [[11.0, 44.0], [33.0, 10.0]]


def test_bandwidths_and_distances_of_other_objects_are_left_alone() -> None:
    other = "<indexes>0 1</indexes><u64values>1 2 3 4</u64values></distances2>"
    after = f'<distances2 type="NUMANode" nbobjs="2" kind="10" indexing="os">{other}'
    after += f'<distances2 type="Core" nbobjs="2" kind="5" indexing="os">{other}'
    assert layout_of(xml(HALVES, after=after)).distance.tolist() == [[10.0, 20.0], [20.0, 10.0]]


def test_a_core_belongs_to_the_smallest_node_around_it_of_equals_the_first() -> None:
    # High-bandwidth memory beside ordinary memory, and one node that spans the host.
    objects = node(9, 15) + node(0, 3) + node(1, 3) + core(1) + core(2) + node(2, 12) + core(4) + core(8)
    layout = layout_of(xml(objects))
    assert layout.domain_node.tolist() == [0, 2]
    assert layout.core_domain.tolist() == [0, 0, 1, 1]
    assert layout_of(xml(node(0, 15) + core(3) + core(12) + node(1, 0))).domain_node.tolist() == [0]


def test_cores_are_those_allowed_or_else_threads_whose_sets_may_be_long() -> None:
    layout = layout_of(xml(core(3) + core(12), root=' allowed_cpuset="0x00000008"'))
    assert (layout.cores, layout.core_cpu.tolist()) == (1, [3])
    threads = "".join(f'<object type="PU" os_index="{i}" cpuset="0x{1 << i:08x}"/>' for i in range(4))
    assert layout_of(xml(threads)).core_cpu.tolist() == [0, 1, 2, 3]
    text = '<topology version="2.0"><object type="Machine" cpuset="0xf...f,0xffffffff"><object type="Core" '
    text += 'cpuset="0x00000001,,0x0"/></object></topology>'
    assert layout_of(text).core_cpu.tolist() == [64]


def test_which_devices_are_adapters() -> None:
    alone = '<object type="PCIDev" pci_busid="0000:81:00.0" pci_type="0208 [8086:24f0] [0:0] 11"/>'
    ethernet = alone.replace("0208", "0200").replace("81", "82")
    assert layout_of(xml(core(1) + alone + ethernet)).nic_name == ("0000:81:00.0",)
    device = alone.replace("/>", '><object type="OSDev" name="hfi1_0" osdev_type="3"/></object>')
    layout = layout_of(xml(core(1) + device))
    assert (layout.nic_name, layout.nic_fabric.tolist()) == (("hfi1_0",), [True])
    for version, kinds in (("2.0", (0, 1, 4, 5, 6)), ("3.0", (1, 2, 4, 8, 64))):
        objects = "".join(f'<object type="OSDev" name="d{k}" osdev_type="{k}"/>' for k in kinds)
        assert layout_of(xml(core(1) + objects, version=f' version="{version}"')).nic_name == ()


BOMB = '<!DOCTYPE topology [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><topology version="2.0">&b;</topology>'
OUTSIDE = '<!DOCTYPE topology [<!ENTITY a SYSTEM "file:///etc/passwd">]><topology>&a;</topology>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "entity"), (OUTSIDE, "entity"), ("<topology", "unclosed"), ("not xml", "syntax"),
        ("<html/>", "hwloc"), ("<topology/>", "no object"), ('<topology version="4.0"/>', "version"),
        (xml(""), "no core"), (xml('<object type="Core" cpuset="0xzz"/>'), "cpuset"),
        (xml('<object type="Core" cpuset="-1"/>'), "cpuset"),
        (xml(f'<object type="Core" cpuset="0x1{",0x0" * 4097}"/>'), "not a set of hardware threads"),
        (xml('<object type="Core" cpuset="0x1ffffffff"/>'), "cpuset"), (xml(node(0, 1) + core(2)), "NUMA"),
        (xml(core(1) + core(1)), "twice"),
        (xml(core(1) + '<object type="OSDev" osdev_type="x"/>'), "osdev_type"),
        (xml(core(1) + '<object type="NUMANode" cpuset="0x1"/>'), "os_index"),
        (xml("<a>" * 500 + "</a>" * 500), "deep"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        layout_of(text)
    assert error.value.path == "input"


@pytest.mark.parametrize(
    ("indexes", "values"),
    [("0 x", "1 2 2 1"), ("0 1", "1 2 2"), ("0 1", "1 2 -2 1"), ("0 1", "0 2 2 1"), ("0 7", "1 2 2 1")],
)
def test_latencies_that_do_not_fit_are_refused(indexes: str, values: str) -> None:
    inside = f"<indexes>{indexes}</indexes><u64values>{values}</u64values>"
    after = f'<distances2 type="NUMANode" nbobjs="2" kind="5" indexing="os">{inside}</distances2>'
    with pytest.raises(InputError):
        layout_of(xml(HALVES, after=after))


def made(**changes: object) -> HostLayout:
    fields: dict[str, object] = {
        "core_domain": [0, 0, 1, 1], "core_cpu": [0, 1, 2, 3], "domain_node": [0, 1],
        "distance": [[10.0, 20.0], [20.0, 10.0]],
        "nic_name": ("a",), "nic_fabric": [True], "nic_guid": [0], "nic_near": [[True, False]],
    }  # fmt: skip
    return HostLayout(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("core_domain", [0, 0, 0, 0]), ("core_domain", [0, 0, 1, 2]), ("core_cpu", [0, 1, 1, 3]),
        ("core_cpu", [0, 1, 2]), ("distance", [[10.0, 20.0]]), ("distance", [[10.0, 0.0], [20.0, 10.0]]),
        ("distance", [[10.0, float("nan")], [20.0, 10.0]]), ("nic_near", [[True]]), ("nic_guid", [1, 2]),
    ],
)  # fmt: skip
def test_a_layout_that_does_not_fit_itself_is_refused(field: str, value: object) -> None:
    assert made().cores == 4
    with pytest.raises(InvalidValue):
        made(**{field: value})
