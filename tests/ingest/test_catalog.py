"""Recognition of formats: by content alone, by one format only, or by none, with what to do then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest import catalog
from ingest.catalog import FORMATS
from ingest.formats.profiles.edges import EDGE_CSV
from ingest.parsed import Format
from ingest.reading.source import SourceGroup, read_paths
from registry.catalog import Catalog
from registry.errors import InputError, UnknownFormat, UnknownName
from tests.support import paths
from tests.support.inputs import DATA, file, refusal, survives

KNOWN = {
    "infiniband/*/ibnetdiscover.txt*": "ibnetdiscover", "infiniband/*/before.ibnetdiscover": "ibnetdiscover",
    "infiniband/*.net": "ibnetdiscover", "public/[1-4].topo": "ibnetdiscover",
    "public/*.ibnetdiscover": "ibnetdiscover", "infiniband/*/ibnetdiscover-p.txt": "ibnetdiscover-ports",
    "infiniband/*/ibnetdiscover-l.txt": "ibnetdiscover-list",
    "infiniband/*/ibhosts.txt": "ibnetdiscover-list", "infiniband/*/ibswitches.txt": "ibnetdiscover-list",
    "infiniband/*/iblinkinfo*.txt*": "iblinkinfo", "infiniband/*/opensm-subnet.lst*": "opensm-subnet",
    "formats/*.db_csv": "ibdiagnet-db", "formats/*.net_dump": "ibdiagnet-net",
    "formats/ufm_links.json": "ufm-links", "infiniband/*/opensm-lfts.dump*": "opensm-lfts",
    "infiniband/*/dump_fts*.txt*": "dump-fts", "infiniband/*/ibroute.txt": "dump-fts",
    "infiniband/*/opensm.fdbs*": "fdbs", "counters/*-counters.txt*": "ibqueryerrors",
    "counters/*-report.txt": "ibqueryerrors", "counters/*-data.txt": "ibqueryerrors",
    "counters/*perfquery*.txt": "perfquery", "counters/pauses.csv": "counters-csv", "formats/*.ndt": "ndt",
    "formats/libtopomap*.map": "libtopomap", "formats/topology*.conf": "slurm-topology",
    "formats/topology.yaml": "slurm-topology-yaml", "formats/topograph_model.yaml": "topograph-model",
    "formats/k8s_nodes.json": "topograph-labels", "formats/llnl.topo": "ibtopo",
    "formats/bgp_coords.txt": "bluegene-p", "formats/myrinet_pm.conf": "myrinet-pm",
    "formats/slingshot_*": "slingshot", "formats/opareport*": "opareport", "formats/xtprocadmin.txt": "cray",
    "public/sample.xtdb2proc*": "cray", "slurm/scontrol_show_topology*.txt": "slurm-show-topology",
    "lldp/*.json*": "lldp", "hwloc/*.xml": "hwloc-xml", "netloc/*.ndat*": "netloc",
    "openmpi/*": "openmpi-monitoring", "edges/*": "edge-csv", "profiles/*.mtx": "matrix-market",
    "profiles/*.graph": "metis-graph", "profiles/*dense*.csv": "dense-csv",
    "profiles/dumpi2ascii*": "dumpi2ascii", "profiles/pytorch*": "pytorch-trace",
    "profiles/nccl_graph*.xml": "nccl-graph", "profiles/nccl_info.log": "nccl-log",
    "profiles/layout.toml": "ai-layout", "profiles/mpip*": "mpip", "profiles/otf2*": "otf2",
    "profiles/trace_*": "trace-csv", "bench/*.npz": "npz", "slurm/scontrol_show_job*": "slurm-scontrol",
    "slurm/scontrol_show_steps.txt": "slurm-steps", "slurm/sacct*.txt": "slurm-sacct",
    "slurm/*.json*": "slurm-json", "slurm/squeue*.txt": "slurm-squeue", "flux/*.json": "flux-r",
    "placements/openmpi_rankfile.txt": "openmpi-rankfile", "placements/*host*.txt": "hostfile",
    "placements/mpich_machinefile.txt": "hostfile", "placements/openmpi_*_map.txt": "openmpi-map",
    "placements/openmpi_report_bindings.txt": "openmpi-map",
    "placements/openmpi_tag_output.txt": "rank-list", "placements/mpich_prepend_rank.txt": "rank-list",
    "slurm/srun_[bcp]*.txt": "rank-list", "formats/libtopomap.fake": "rank-list",
}  # fmt: skip
FOREIGN = (
    "infiniband/*/ibroute-M.txt", "counters/README.md", "infiniband/*/RUN.txt", "infiniband/README.md",
    "formats/sinfo.json", "formats/scontrol_show_nodes.txt", "formats/bgp_TXYZ.map",
)  # fmt: skip
FOREIGN_FILES = [path for pattern in FOREIGN for path in sorted(DATA.glob(pattern))]
NAMED = [(path, format) for pattern, format in KNOWN.items() for path in sorted(DATA.glob(pattern))]
NAMED = [(path, format) for path, format in NAMED if path.name != "README.md"]
DOCS = paths.ROOT / "docs" / "reference"
PAGES = (DOCS / "formats.md", *sorted((DOCS / "formats").glob("*.md")))
ROWS = [row for page in PAGES for row in page.read_text().splitlines()]


def label(value: object) -> str:
    return value.relative_to(DATA).as_posix() if isinstance(value, Path) else str(value)


@pytest.mark.parametrize("pattern", [*KNOWN, *FOREIGN])
def test_every_pattern_of_these_tests_finds_files(pattern: str) -> None:
    assert list(DATA.glob(pattern))


@pytest.mark.parametrize(("path", "format"), NAMED, ids=label)
def test_files_are_recognised_whatever_they_are_called(path: Path, format: str) -> None:
    for group in read_paths([path]):
        assert catalog.recognise(group).name == format
        files = tuple(file(read.data, f"{index}.dat") for index, read in enumerate(group.files))
        assert catalog.recognise(SourceGroup(path="x", files=files)).name == format


@pytest.mark.parametrize("path", FOREIGN_FILES, ids=label)
def test_formats_that_are_not_read_are_unknown_and_the_known_ones_are_named(path: Path) -> None:
    (group,) = read_paths([path])
    with pytest.raises(UnknownFormat) as caught:
        catalog.recognise(group)
    assert caught.value.path == str(path)
    assert caught.value.known == tuple(format.name for format in FORMATS)


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_every_line_of_the_catalog_leads_to_its_format_and_stands_in_the_documentation(
    format: Format,
) -> None:
    kinds = {"fabric", "tables", "counters", "intended", "layouts", "profile", "jobs", "placement"}
    assert format.kind in kinds
    assert format.evidence in {"real", "public", "own"}
    assert catalog.FORMATS.find(format.name) is format
    assert any(row.startswith(f"| `{format.name}` | {format.kind} | {format.evidence} |") for row in ROWS)


def test_names_of_formats_are_unique_and_an_unknown_name_gets_the_closest_ones() -> None:
    assert len({format.name for format in FORMATS}) == len(FORMATS)
    with pytest.raises(UnknownName, match="closest: ibnetdiscover"):
        catalog.FORMATS.find("ibnetdiscovr")


def group(*contents: bytes) -> SourceGroup:
    return SourceGroup(path="here", files=tuple(file(data, f"file{at}") for at, data in enumerate(contents)))


def test_an_empty_file_is_no_unknown_format() -> None:
    for data in (b"", b" \n\n"):
        with pytest.raises(InputError, match="empty") as caught:
            catalog.recognise(group(data))
        assert not isinstance(caught.value, UnknownFormat)


def test_two_formats_of_a_file_are_named_and_several_files_need_a_format_made_of_several() -> None:
    known = FORMATS.find("libtopomap")
    twins = Catalog("format", [replace(known, name=name) for name in ("one", "two")])
    with pytest.raises(InputError, match="could be one and two: choose one with --format"):
        catalog.recognise(group(b"num: 1\n"), twins)
    for second, path in ((b"something else\n", "file1"), (b"num: 2\n", "here")):
        with pytest.raises(UnknownFormat) as caught:
            catalog.recognise(group(b"num: 1\n", second))
        assert caught.value.path == path


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@given(data=st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_recognised_or_not_and_read_or_refused(format: Format, data: bytes) -> None:
    """Damaged files of each format are read in tests/fuzz."""
    survives(format, [file(data, "f")])


def test_a_plug_in_that_fails_does_not_recognise_a_file_and_is_named() -> None:
    def recognise(head: str, path: str) -> bool:
        raise KeyError("head")

    failing = replace(EDGE_CSV, name="odd", recognise=recognise, package="odds 1.0")
    group = file("# ranks: 2\nsrc,dst,bytes\n0,1,8\n").as_group()
    with pytest.warns(UserWarning, match=r"the format odd of odds 1\.0 failed: KeyError: 'head'"):
        assert catalog.recognise(group, Catalog("format", [failing, *FORMATS])).name == "edge-csv"


CSV = "src,dst,bytes\n0,1,2\n"
REFUSED = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
FILES: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "NCCL": ('<!-- made by x -->\n<system version="1">\n  <cpu numaid="0">\n', ("NCCL", "lstopo --of xml")),
    "Chakra": ('{\n "workload_graph": [\n {"Id": 1, "ctrlDeps": []}]}', ("Chakra", "ExecutionTraceObserver")),
    "Chakra of the jsonizer": ('{"version": "0.0.4"}\n{"id": "1", "dataDeps": ["2"]}', ("Chakra",)),
    "Chakra by its nodes": ('{"nodes": [{"id": 1, "type": "COMM_COLL_NODE"}]}', ("Chakra", "Execution")),
    "UFM ports": ('{"ports": [{"guid": "1", "systemID": "2"}]}', ("UFM's list of ports", "resources/links")),
    "Kineto": ('{"schemaVersion": 1, "traceEvents": [{}]}', ("Kineto", "ExecutionTraceObserver")),
    "UTF-16": (CSV.encode("utf-16"), ("UTF-16", "iconv")),
    "UTF-16, big end": (CSV.encode("utf-16-be"), ("UTF-16", "iconv")),
    "error of Slurm": (REFUSED, ("only a command's error", "Unable to contact slurm controller", "again")),
    "error of a shell": ("-bash: ibnetdiscover: command not found\n", ("error", "command not found")),
    "error of ibnetdiscover": (
        "ibwarn: [1] mad_rpc_open_port: can't open UMAD port ((null):0)\nsrc/x.c:9; can't open MAD port\n",
        ("only a command's error", "UMAD"),
    ),
    "error of sacct": ("sacct: error: failed to open persistent connection\nsacct: error: x\n", ("error",)),
    "usage": ("usage: sacct [-x]\n   -x: what\n", ("only a command's error",)),
    "commas in sacct": ("JobID,JobName,State,NodeList\n1,a,COMPLETED,n[1-2]\n", ("sacct -P", "--delimiter")),
    "semicolons in squeue": ('"JOBID";"ST";"NODELIST"\n1;R;n1\n', ("sacct -P", "squeue -o")),
    "no title": ("1|a|COMPLETED|n1\n2|b|COMPLETED|n2\n", ("-n (--noheader)",)),
    "comments": ("# a\n\n  # b\n", ("only comments",)),
    "HTML": ("\n<!DOCTYPE html>\n<html>401</html>", ("HTML", "login")),
    "zip": (b"PK\x03\x04\0\0\0", ("zip", "unpack")),
}


@pytest.mark.parametrize("name", FILES)
def test_one_line_says_what_a_file_is_and_what_to_do(name: str) -> None:
    content, words = FILES[name]
    with pytest.raises(UnknownFormat) as caught:
        catalog.recognise(file(content).as_group())
    assert all(word in caught.value.reason for word in words)
    assert len(caught.value.reason) < 300
    assert "opensm" not in caught.value.reason
    assert caught.value.known == catalog.FORMATS.names


def test_what_is_not_known_names_the_page_of_formats_and_not_all_of_them() -> None:
    with pytest.raises(UnknownFormat) as caught:
        catalog.recognise(file("Lorem ipsum\ndolor\n").as_group())
    assert caught.value.reason == (
        "the content is of no format known here; leave the file out, or name its format with --format "
        "(docs/reference/formats.md lists them)"
    )


def test_a_long_text_that_begins_with_an_error_is_not_taken_for_one() -> None:
    with pytest.raises(InputError, match="of no format known here"):
        catalog.recognise(file(REFUSED + "Lorem ipsum\n" * 40).as_group())


def test_utf_16_is_named_if_the_format_is_given() -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        assert "iconv" in refusal(EDGE_CSV, CSV.encode(encoding)).reason
    assert "binary" in refusal(EDGE_CSV, CSV.encode() + b"\0\0\0").reason
