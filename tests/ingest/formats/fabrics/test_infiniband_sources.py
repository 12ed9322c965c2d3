"""One InfiniBand fabric as every tool prints it: the same one, also mixed with standard error (2>&1)."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from ingest import catalog
from ingest.formats import DIAGNOSED, DIAGNOSTIC
from ingest.formats.counters.ibqueryerrors import IBQUERYERRORS
from ingest.formats.counters.perfquery import PERFQUERY
from ingest.formats.fabrics.iblinkinfo import IBLINKINFO
from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.routes import dialects
from ingest.options import Options
from ingest.parsed import Format, Parsed
from registry.errors import InputError
from registry.model import Fabric
from registry.model.links import PORT_STATES
from tests.support.ibnetdiscover_scans import fabric_of, raw, same
from tests.support.inputs import DATA, fabric_in, file, parse, read, refusal
from tests.support.sure import sure

FABRICS = {
    "fattree2-64-ftree": (64, 12, 96), "mixed-speeds-oversubscribed": (137, 12, 194),
    "irregular-16sw-updown": (64, 16, 95), "torus-4x4x4-dor": (128, 64, 320),
}  # fmt: skip
"""Hosts, switches and cables, counted in the simulator's own input (.net files) of each."""
SOURCES = {
    "ibnetdiscover-p.txt": "ibnetdiscover-ports", "iblinkinfo.txt": "iblinkinfo",
    "iblinkinfo-l.txt": "iblinkinfo", "iblinkinfo-l.txt.gz": "iblinkinfo",
    "opensm-subnet.lst": "opensm-subnet", "opensm-subnet.lst.gz": "opensm-subnet",
}  # fmt: skip
CASES = [
    (folder, name) for folder in FABRICS for name in SOURCES if (DATA / "infiniband" / folder / name).exists()
]
DIAGNOSTICS = {
    "formats/ibdiagnet2.db_csv": "ibdiagnet-db",
    "formats/ibdiagnet2.net_dump": "ibdiagnet-net",
    "formats/ufm_links.json": "ufm-links",
}
ALL = [(f"infiniband/{folder}/{name}", SOURCES[name]) for folder, name in CASES] + list(DIAGNOSTICS.items())


def parsed(name: str, format: str, options: Options | None = None) -> Parsed:
    return parse(catalog.FORMATS.find(format), read(name), options, path=name)


def printed(folder: str, name: str) -> Fabric:
    return fabric_in(parsed(f"infiniband/{folder}/{name}", SOURCES[name]))


def test_every_tool_is_here_for_a_fabric_with_all_of_them() -> None:
    tools = Counter(folder for folder, _ in CASES)
    assert (tools["mixed-speeds-oversubscribed"], set(tools)) == (4, set(FABRICS))


@pytest.mark.parametrize(("folder", "name"), CASES)
def test_the_fabric_is_that_of_ibnetdiscover_but_for_guids_that_the_tool_does_not_print(
    folder: str, name: str
) -> None:
    scan, fabric = fabric_of(raw(f"infiniband/{folder}/ibnetdiscover.txt")), printed(folder, name)
    assert same(fabric, scan)
    assert all(np.array_equal(getattr(fabric, one), getattr(scan, one)) for one in ("guid", "lid", "kind"))
    assert fabric.adapters.names == scan.adapters.names
    assert (len(fabric.hosts), len(fabric.switches), fabric.cable_count) == FABRICS[folder]
    for column in ("guid", "system_guid"):
        known = getattr(scan.adapters, column) * np.uint64("subnet" in name)
        assert np.array_equal(getattr(fabric.adapters, column), known)


@pytest.mark.parametrize(("name", "format"), ALL)
def test_a_whole_file_has_no_warnings_except_for_missing_speeds(name: str, format: str) -> None:
    found = parsed(name, format)
    assumed = sure(found.assumed)
    assert assumed.all() == assumed.any() == bool(found.warnings)
    said = [warning.split(":")[0] for warning in found.warnings]
    assert said == (["96 cables have no width and speed"] if assumed.any() else [])
    assert not found.incomplete


@pytest.mark.parametrize("name", ["iblinkinfo.txt", "iblinkinfo-l.txt", "ibnetdiscover-p.txt"])
@pytest.mark.parametrize("folder", ["fattree2-64-ftree", "mixed-speeds-oversubscribed"])
def test_ports_without_a_link_are_those_of_the_raw_text(folder: str, name: str) -> None:
    text, fabric = raw(f"infiniband/{folder}/{name}"), printed(folder, name)
    ports = fabric.ports
    if name == "ibnetdiscover-p.txt":
        wanted = Counter(re.findall(r"^SW +(\d+) +(\d+) 0x\S+ 4x SDR +'", text, re.M))
    else:
        wanted = Counter(re.findall(r" (\d+) +(\d+)\[  \] ==\( +Down/ Polling\)", text))
    assert len(wanted) == {"fattree2-64-ftree": 64, "mixed-speeds-oversubscribed": 269}[folder]
    found = Counter(
        (str(fabric.lid[ports.vertex[row]]), str(ports.number[row])) for row in ports.down.tolist()
    )
    assert found == wanted
    assert {PORT_STATES[state] for state in ports.state[ports.down]} == {"down"}


def test_what_both_ends_could_do_is_kept_of_every_port_that_says_so() -> None:
    name = "mixed-speeds-oversubscribed"
    fabric = printed(name, "iblinkinfo-l.txt")
    lines = raw(f"infiniband/{name}/iblinkinfo-l.txt").splitlines()
    text = "\n".join(line for line in lines if "Aggregation Node" not in line)
    wanted: Counter[float] = Counter()
    for speed, wider, faster in re.findall(
        r"X +([\d.]+) Gbps.*Could be (\d+)X (?:Could be ([\d.]+) )?", text
    ):
        # data bytes/s of a lane: HDR 50 Gbit/s, QDR 8 Gbit/s
        wanted[int(wider) * {"53.125": 50e9 / 8, "10.0": 1e9}[faster or speed]] += 1
    listed = fabric.ports.could_be[fabric.ports.could_be > 0]
    assert Counter(listed.round().tolist()) == Counter({round(rate): n for rate, n in wanted.items()})
    assert sum(wanted.values()) == 388


@pytest.mark.parametrize(("name", "format"), DIAGNOSTICS.items())
def test_ibdiagnet_and_ufm_have_the_cables_of_ibnetdiscover(name: str, format: str) -> None:
    scan = fabric_of(raw("infiniband/fattree2-64-ftree/ibnetdiscover.txt"))
    fabric = fabric_in(parsed(name, format))
    assert fabric.names == scan.names
    assert np.array_equal(fabric.guid, scan.guid)
    for column in ("source", "target", "source_port", "target_port", "source_adapter", "target_adapter"):
        assert np.array_equal(getattr(fabric.links, column), getattr(scan.links, column))
    assert np.array_equal(fabric.links.capacity, scan.links.capacity)  # 4xHDR, printed or the default
    if format == "ibdiagnet-net":
        assert np.array_equal(fabric.lid, scan.lid)
        assert np.array_equal(fabric.adapters.port_lid, scan.adapters.port_lid)
        assert len(fabric.ports.down) == raw(name).count(": DOWN :")


def test_lists_of_nodes_name_all_devices_and_no_links() -> None:
    scan = fabric_of(raw("infiniband/fattree2-64-ftree/ibnetdiscover.txt"))
    for name, kinds in (("ibnetdiscover-l.txt", "HS"), ("ibhosts.txt", "H"), ("ibswitches.txt", "S")):
        found = parsed(f"infiniband/fattree2-64-ftree/{name}", "ibnetdiscover-list")
        fabric = fabric_in(found)
        assert "ingest it together with a source of the cables" in found.incomplete
        sizes = len(fabric.links), len(fabric.hosts), len(fabric.switches)
        assert sizes == (0, 64 * ("H" in kinds), 12 * ("S" in kinds))
        assert set(fabric.names) <= set(scan.names)
        if name == "ibswitches.txt":
            assert np.array_equal(fabric.lid, scan.lid[scan.switches])


@pytest.mark.parametrize(("name", "format"), ALL)
def test_line_ends_of_other_systems_and_a_prompt_change_nothing(name: str, format: str) -> None:
    content, parser = raw(name), catalog.FORMATS.find(format)
    plain = fabric_in(parsed(name, format))
    assert same(fabric_in(parse(parser, content.replace("\n", "\r\n"))), plain)
    if format not in ("ufm-links", "ibdiagnet-db"):
        found = parse(parser, f"Last login: Fri Nov 20\n{content}\n[root@head ~]$ ")
        assert same(fabric_in(found), plain)
        skipped = ("1 line before the scan was skipped", "1 line after the scan was skipped")
        assert found.warnings[:2] == skipped


@pytest.mark.parametrize(("name", "format"), ALL)
def test_files_cut_off_anywhere_are_refused_or_whole(name: str, format: str) -> None:
    content = read(name)
    parser, whole = catalog.FORMATS.find(format), fabric_in(parsed(name, format))
    refused = 0
    for part in range(1, 40):
        try:
            found = parse(parser, content[: len(content) * part // 40])
        except InputError:
            refused += 1
            continue
        cables = fabric_in(found).cable_count
        assert found.incomplete or cables == whole.cable_count  # a database without LINKS is none alone
    assert refused >= 36


LINES = [
    "ibwarn: [1203] mad_rpc_rmpp: _do_madrpc failed; dport (Lid 11)",
    "src/query_smp.c:199; umad (DR path slid 0; dlid 0; 0,1 Attr 0x15) bad status 110; Connection timed out",
    "/usr/sbin/ibqueryerrors: iberror: failed: Failed to open CA",
]
MIXED = read("counters/ibqueryerrors-stderr.txt").decode()


def test_the_lines_of_standard_error_are_recognised() -> None:
    others = ('Errors for "ibwarn"', "Segmentation fault", "# x")
    assert [line for line in (*LINES, *others) if DIAGNOSTIC.fullmatch(line)] == LINES


def test_a_sweep_mixed_with_standard_error_is_recognised_and_read() -> None:
    assert catalog.recognise(file(MIXED).as_group()).name == "ibqueryerrors"
    parsed = parse(IBQUERYERRORS, MIXED)
    assert f"4 lines are {DIAGNOSED}" in parsed.warnings
    (sweep,) = parsed.counters
    ports = list(zip(sweep.guid.tolist(), sweep.port.tolist(), strict=True))
    assert ports == [(0xC42A103007998A0, 1), (0xC42A10300DCF8E2, 2)]
    assert sweep.column("xmit_bytes").tolist() == [12798802 * 4, 1758872 * 4]
    heading = 'Errors for 0xc42a10300dcf8e2 "leaf-a"\n'
    moved = heading + LINES[0] + "\n" + MIXED.partition(heading)[2]
    assert catalog.recognise(file(moved).as_group()).name == "ibqueryerrors"


@pytest.mark.parametrize(
    ("parser", "sample"),
    [
        (PERFQUERY, "counters/sweep1-perfquery-1.txt"),
        (dialects.DUMP_FTS, "infiniband/fattree2-64-lmc1/dump_fts.txt.gz"),
        (IBNETDISCOVER, "counters/ibnetdiscover.txt"),
        (IBLINKINFO, "infiniband/torus-4x4x4-dor/iblinkinfo-l.txt.gz"),
    ],
    ids=["perfquery", "dump_fts", "ibnetdiscover", "iblinkinfo"],
)
def test_other_outputs_mixed_with_standard_error_are_read(parser: Format, sample: str) -> None:
    text = read(sample).decode()
    lines = text.split("\n")
    for index in range(len(lines) - 2, -1, -37):
        lines[index:index] = [LINES[index % 3]]
    added = len(lines) - text.count("\n") - 1
    plain, mixed = parse(parser, text), parse(parser, "\n".join(lines))
    assert f"{added} lines are {DIAGNOSED}" in mixed.warnings
    for one, other in zip(plain.counters, mixed.counters, strict=True):
        assert np.array_equal(one.guid, other.guid)
        assert np.array_equal(one.port, other.port)
    if plain.fabric is not None and mixed.fabric is not None:
        assert plain.fabric.names == mixed.fabric.names
        assert len(plain.fabric.links.source) == len(mixed.fabric.links.source)
    if plain.tables is not None and mixed.tables is not None:
        assert np.array_equal(plain.tables.ports, mixed.tables.ports)


def test_a_wrong_line_behind_a_diagnostic_has_its_own_number() -> None:
    lines = read("infiniband/fattree2-64-lmc1/dump_fts.txt.gz").decode().split("\n")
    lines[5:5] = LINES
    lines[9] = lines[9].replace("0x", "0y")
    assert refusal(dialects.DUMP_FTS, "\n".join(lines)).line == 10
