"""Files of no known format: one line says what they are and what to do."""

from __future__ import annotations

import pytest

from ingest import catalog
from ingest.formats.profiles import edge_csv
from registry.errors import InputError, UnknownFormat
from tests.support.inputs import file, refusal

CSV = "src,dst,bytes\n0,1,2\n"
REFUSED = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
FILES: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "NCCL": ('<!-- made by x -->\n<system version="1">\n  <cpu numaid="0">\n', ("NCCL", "lstopo --of xml")),
    "Chakra": ('{\n "workload_graph": [\n {"Id": 1, "ctrlDeps": []}]}', ("Chakra", "ExecutionTraceObserver")),
    "Chakra of the jsonizer": ('{"version": "0.0.4"}\n{"id": "1", "dataDeps": ["2"]}', ("Chakra",)),
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
        assert "iconv" in refusal(edge_csv, CSV.encode(encoding)).reason
    assert "binary" in refusal(edge_csv, CSV.encode() + b"\0\0\0").reason
