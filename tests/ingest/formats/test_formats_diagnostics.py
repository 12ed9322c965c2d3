"""What InfiniBand tools print on standard error stops no reader of their output (`2>&1`)."""

from __future__ import annotations

import numpy as np
import pytest

from ingest import catalog
from ingest.catalog import Parser
from ingest.formats import DIAGNOSED, DIAGNOSTIC
from ingest.formats.counters import ibqueryerrors, perfquery
from ingest.formats.fabrics import iblinkinfo, ibnetdiscover
from ingest.formats.routes import dialects
from tests.support.inputs import file, parse, read, refusal

LINES = [
    "ibwarn: [1203] mad_rpc_rmpp: _do_madrpc failed; dport (Lid 11)",
    "src/query_smp.c:199; umad (DR path slid 0; dlid 0; 0,1 Attr 0x15) bad status 110; Connection timed out",
    "/usr/sbin/ibqueryerrors: iberror: failed: Failed to open CA",
]
MIXED = read("counters/ibqueryerrors-stderr.txt").decode()


def test_the_lines_of_standard_error_are_recognised() -> None:
    assert all(DIAGNOSTIC.fullmatch(line) for line in LINES)
    assert not any(
        DIAGNOSTIC.fullmatch(line) for line in ('Errors for "ibwarn"', "Segmentation fault", "# x")
    )


def test_a_sweep_mixed_with_standard_error_is_recognised_and_read() -> None:
    assert catalog.recognise(file(MIXED).as_group()).name == "ibqueryerrors"
    parsed = parse(ibqueryerrors, MIXED)
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
        (perfquery, "counters/sweep1-perfquery-1.txt"),
        (dialects.DUMP_FTS, "infiniband/fattree2-64-lmc1/dump_fts.txt.gz"),
        (ibnetdiscover, "counters/ibnetdiscover.txt"),
        (iblinkinfo, "infiniband/torus-4x4x4-dor/iblinkinfo-l.txt.gz"),
    ],
    ids=["perfquery", "dump_fts", "ibnetdiscover", "iblinkinfo"],
)
def test_other_outputs_mixed_with_standard_error_are_read(parser: Parser, sample: str) -> None:
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
