"""Port counters from tools: words become bytes, full counters are known, sums are no ports."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ingest.formats.counters import COUNTERS_CSV, IBQUERYERRORS, PERFQUERY
from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.options import Options
from ingest.parsed import Format
from registry.errors import InputError
from registry.model import COUNTERS, NOT_COUNTED, CounterSweep, deltas, link_rates
from tests.support.inputs import WHEN, fabric_of, file, parse, read, refusal
from tests.support.sure import sure

ALL = read("counters/traffic-counters.txt.gz").decode()
DATA = read("counters/traffic-data.txt").decode()
QUERY = read("counters/sweep1-perfquery-1.txt").decode()
WIDE = read("counters/sweep1-perfquery-x-1.txt").decode()
CSV = read("counters/pauses.csv").decode()
TEXTS: dict[Format, str] = {IBQUERYERRORS: ALL, PERFQUERY: QUERY, COUNTERS_CSV: CSV}
TRUTH = json.loads(read("infiniband/fattree2-64-traffic/truth.json"))["link_bytes"]
MANAGEMENT = 1_000_000
"""More than the subnet manager's own bytes on any port; the job sent a thousand times as many."""


def sweep_of(parser: Format, text: str | bytes, options: Options | None = None) -> CounterSweep:
    return sure(parse(parser, text, options, path="x").counters[0])


def by_port(sweep: CounterSweep, name: str) -> dict[tuple[int, int], int]:
    keys = zip((sweep.guid | sweep.lid.astype(np.uint64)).tolist(), sweep.port.tolist(), strict=True)
    return dict(zip(keys, sweep.column(name).tolist(), strict=True))


def test_every_port_sent_the_bytes_of_the_job_that_crossed_it() -> None:
    sent = by_port(sweep_of(IBQUERYERRORS, ALL), "xmit_bytes")
    for end, count in TRUTH.items():
        guid, port = end.split("/")
        assert 0 <= sent.pop((int(guid, 16), int(port))) - count < MANAGEMENT
    assert all(count < MANAGEMENT for count in sent.values())


def test_counts_agree_with_the_raw_text() -> None:
    sweep = sweep_of(IBQUERYERRORS, ALL)
    for tool, name, unit in (("PortRcvData", "rcv_bytes", 4), ("PortXmitPkts", "xmit_packets", 1)):
        raw = re.findall(rf"GUID 0x(\w+) port (\d+):.*?\[{tool} == (\d+)", ALL)
        counted = {(int(guid, 16), int(port)): int(count) * unit for guid, port, count in raw}
        assert by_port(sweep, name) == counted
    assert not sweep.saturated.any()
    assert sweep.names == COUNTERS[:4]


def test_errors_and_waiting_are_no_bytes_and_the_sum_of_all_ports_is_no_port() -> None:
    parsed = parse(IBQUERYERRORS, DATA)
    (sweep,) = parsed.counters
    assert len(sweep) == len(re.findall(r"port \d+:", DATA)) == 7
    assert by_port(sweep, "xmit_wait")[0x2C90000100100, 9] == 46137344
    assert by_port(sweep, "symbol_errors")[0x2C90000100100, 9] == 4711
    assert by_port(sweep, "symbol_errors")[0x2C90000100500, 10] == NOT_COUNTED
    assert by_port(sweep, "xmit_bytes")[0x2C90000100500, 10] == 4 * 671088928
    assert parsed.warnings == ("only ports with errors above the tool's thresholds are listed",)


SUMMARY = """
## Summary: 76 nodes checked, 0 bad nodes found
##          256 ports checked, 0 ports have errors beyond threshold
## Thresholds:
## Suppressed:
"""
"""The whole output of ibqueryerrors for a fabric without errors."""


def test_a_list_without_errors_is_a_sweep_and_lists_of_errors_are_marked() -> None:
    empty = sweep_of(IBQUERYERRORS, SUMMARY)
    assert (len(empty), empty.names, empty.errors_only) == (0, (), True)
    assert IBQUERYERRORS.recognise(SUMMARY, "x")
    assert sweep_of(IBQUERYERRORS, DATA).errors_only
    assert not sweep_of(IBQUERYERRORS, ALL + SUMMARY).errors_only
    joined = sure(sweep_of(IBQUERYERRORS, ALL).joined(empty))
    assert (joined.errors_only, len(joined)) == (True, len(sweep_of(IBQUERYERRORS, ALL)))


def test_lines_about_links_and_summaries_are_passed_over() -> None:
    text = read("counters/sweep1-data-report.txt").decode()
    plain = re.sub(r"\n +Link info.*", "", text)
    report, sweep = (by_port(sweep_of(IBQUERYERRORS, each), "xmit_bytes") for each in (text, plain))
    assert report == sweep


def test_counters_of_unknown_names_are_left_out_and_leading_zeros_are_decimal() -> None:
    parsed = parse(IBQUERYERRORS, ALL.replace("[PortXmitPkts ==", "[PortFlux ==", 2))
    assert parsed.warnings == ("counter PortFlux of 2 ports is not stored",)
    padded = re.sub(r"PortXmitData:(\.+)(\d+)", r"PortXmitData:\g<1>0\2", QUERY)
    assert padded != QUERY
    assert np.array_equal(sweep_of(PERFQUERY, padded).values, sweep_of(PERFQUERY, QUERY).values)


def test_perfquery_names_devices_by_lid() -> None:
    sweep = sweep_of(PERFQUERY, QUERY)
    assert sweep.lid.tolist() == [1] * 12
    assert sweep.port.tolist() == list(range(1, 13))
    assert by_port(sweep, "xmit_bytes")[1, 9] == 4 * int(re.findall(r"XmitData:\.+(\d+)", QUERY)[8])
    assert by_port(sweep, "link_downed")[1, 9] == 2
    assert by_port(sweep, "qp1_dropped")[1, 9] == 0


def test_classic_counters_are_full_at_their_largest_value_and_extended_ones_are_not() -> None:
    sweep = sweep_of(PERFQUERY, read("counters/sweep2-perfquery-1.txt"))
    column = sweep.names.index("xmit_bytes")
    assert sweep.port[sweep.saturated[:, column]].tolist() == [9]
    assert by_port(sweep, "xmit_bytes")[1, 9] == 4 * 0xFFFFFFFF
    assert sweep.saturated.sum() == 1
    one = sweep_of(PERFQUERY, re.sub(r"PortXmitData:(\.+)\d+", r"PortXmitData:\g<1>4294967295", WIDE))
    assert not one.saturated.any()
    huge = sweep_of(PERFQUERY, re.sub(r"PortXmitData:(\.+)\d+", rf"PortXmitData:\g<1>{2**64 - 1}", WIDE))
    assert huge.saturated[:, huge.names.index("xmit_bytes")].all()


@pytest.mark.parametrize(
    ("name", "largest", "column"),
    [
        ("SymbolErrorCounter", 0xFFFF, "symbol_errors"),
        ("LinkDownedCounter", 0xFF, "link_downed"),
        ("LocalLinkIntegrityErrors", 0xF, "local_link_integrity_errors"),
        *(("PortXmitWait", 0xFFFFFFFF, "xmit_wait"), ("PortRcvPkts", 0xFFFFFFFF, "rcv_packets")),
    ],
)
def test_each_counter_is_full_at_its_own_width(name: str, largest: int, column: str) -> None:
    for count, full in ((largest, True), (largest - 1, False)):
        sweep = sweep_of(PERFQUERY, re.sub(rf"{name}:(\.+)\d+", rf"{name}:\g<1>{count}", QUERY))
        at = sweep.names.index(column)
        assert sweep.values[:, at].tolist() == [count] * 12
        assert sweep.saturated[:, at].all() == full


def test_of_a_port_with_both_kinds_the_extended_counters_count() -> None:
    full = re.sub(r"PortXmitData:(\.+)\d+", r"PortXmitData:\g<1>4294967295", QUERY)
    for text in (full + WIDE, WIDE + full):
        sweep = sweep_of(PERFQUERY, text)
        assert by_port(sweep, "xmit_bytes") == by_port(sweep_of(PERFQUERY, WIDE), "xmit_bytes")
        assert by_port(sweep, "symbol_errors")[1, 9] == 4711
        assert not sweep.saturated.any()


def test_sums_over_all_ports_are_left_out_and_counted() -> None:
    parsed = parse(PERFQUERY, read("counters/traffic-perfquery.txt"))
    assert list(zip(parsed.counters[0].lid, parsed.counters[0].port, strict=True)) == [(9, 1)]
    assert parsed.warnings == ("1 sum over all ports of a device is ignored",)
    with pytest.raises(InputError, match="only sums"):
        parse(PERFQUERY, read("counters/sweep1-perfquery-a-1.txt"))


def test_files_of_single_ports_are_one_sweep() -> None:
    pieces = [f"# Port counters{piece}" for piece in QUERY.split("# Port counters")[1:]]
    parsed = PERFQUERY.parse([file(piece, f"{i}") for i, piece in enumerate(pieces)], Options())
    assert np.array_equal(parsed.counters[0].values, sweep_of(PERFQUERY, QUERY).values)


def test_congestion_control_counters_are_marked_packets_and_other_blocks_are_left_out() -> None:
    text = (
        "# PortRcvConCtrl counters: Lid 9 port 3\nPortSelect:3\nPortPktRcvFECN:...12\nPortPktRcvBECN:...5\n"
    )
    sweep = sweep_of(PERFQUERY, text)
    assert (sweep.names, sweep.values.tolist()) == (("ecn_marked", "ecn_notified"), [[12, 5]])
    other = "# PortRcvErrorDetails counters: Lid 1 port 3\nPortSelect:....3\nPortLocalPhysicalErrors:....0\n"
    assert parse(PERFQUERY, QUERY + other).warnings == ("PortRcvErrorDetails counters: 1 not stored",)


def test_a_collectors_csv_has_pauses_and_marks() -> None:
    sweep = sweep_of(COUNTERS_CSV, CSV)
    assert by_port(sweep, "pfc_rcv_pauses") == {(0x2C90000100100, 9): 3, (0x2C90000100100, 10): 0}
    assert by_port(sweep, "ecn_marked")[0x2C90000100100, 10] == NOT_COUNTED
    assert by_port(sweep, "xmit_bytes")[0x2C90000100100, 9] == 2953194656


@pytest.mark.parametrize("parser", TEXTS, ids=lambda one: one.name)
def test_the_time_is_the_callers_else_the_files(parser: Format) -> None:
    assert sweep_of(parser, TEXTS[parser]).at == WHEN
    time = datetime(2025, 5, 5, tzinfo=UTC)
    assert sweep_of(parser, TEXTS[parser], Options(observed_at=time)).at == time


PORT = "GUID 0x2c90000f03f00 port 1"
COLUMN = "there is no counter 'xmit_await'; closest: xmit_wait"


@pytest.mark.parametrize(
    ("parser", "old", "new", "reason"),
    [
        (IBQUERYERRORS, "(1.000GB)] [PortRcvData", "(1.000GB", "truncated"),
        (IBQUERYERRORS, "1: [PortXmitData", "1: [PortXmitData == 1] [PortXmitData", "listed twice"),
        (IBQUERYERRORS, PORT, "GUID 0x2c90000f04000 port 1", "listed twice"),
        (IBQUERYERRORS, PORT, "GUID 0x0 port 1", "port number"),
        (IBQUERYERRORS, PORT, "GUID 0x2c90000f03f00 port 300", "port number"),
        (IBQUERYERRORS, "   GUID 0x2c90000f03f00", "Segmentation fault", "not a line of port counters"),
        (PERFQUERY, "SymbolErrorCounter:.", "what is this:.", "not a line of port counters"),
        (PERFQUERY, "SymbolErrorCounter:", f"X:{'9' * 5000}\nSymbolErrorCounter:", "not a line of port"),
        (PERFQUERY, "Lid 1 port 3", "Lid 1 port 2", "listed twice"),
        (PERFQUERY, "Lid 1 port 3", "Lid 0 port 3", "port number"),
        (PERFQUERY, "Lid 1 port 3", "Lid 60000 port 3", "port number"),
        (PERFQUERY, "Lid 1 port 3", "DR path slid 0; dlid 0; 0,1 port 3", "the LID of the device is missing"),
        (PERFQUERY, "QP1Dropped", "VL15Dropped", "listed twice"),
        (PERFQUERY, "PortRcvPkts", "PortRcvPackets", "truncated"),
        (COUNTERS_CSV, "xmit_wait", "xmit_await", COLUMN),
        (COUNTERS_CSV, "xmit_wait", "xmit_bytes", "a column name is repeated"),
        (COUNTERS_CSV, ",10,", ",9,", "listed twice"),
        (COUNTERS_CSV, ",120,", ",-120,", "ecn_marked is not a valid count"),
        (COUNTERS_CSV, ",120,", ",\N{ARABIC-INDIC DIGIT ONE},", "ecn_marked is not a valid count"),
        (COUNTERS_CSV, ",120,", ",9223372036854775808,", "ecn_marked is not a valid count"),
        (COUNTERS_CSV, ",120,", ",120,120,", "10 cells under 9 columns"),
        (COUNTERS_CSV, ",10,", ",255,", "port number"),
        (COUNTERS_CSV, "0x0002c90000100100", "leaf01", "port number"),
    ],
)
def test_what_cannot_be_is_shown(parser: Format, old: str, new: str, reason: str) -> None:
    assert old in TEXTS[parser]
    error = refusal(parser, TEXTS[parser].replace(old, new, 1), path="x")
    assert reason in error.reason
    assert error.line is not None


def test_files_without_counters_are_errors_and_a_cut_number_is_no_smaller_one() -> None:
    texts = ('Errors for "x"\n', "# a comment\n", "guid,port,xmit_bytes\n")
    for parser, text in zip(TEXTS, texts, strict=True):
        assert "no port counters found" in refusal(parser, text).reason
    whole = by_port(sweep_of(PERFQUERY, WIDE), "xmit_bytes")
    for size in range(40, 500, 23):
        with suppress(InputError):
            assert by_port(sweep_of(PERFQUERY, WIDE[:-size]), "xmit_bytes").items() <= whole.items()


def later(sweep: CounterSweep, seconds: float = 300) -> CounterSweep:
    return replace(sweep, at=sweep.at + timedelta(seconds=seconds))


def test_the_rates_of_links_are_those_of_the_job_that_ran() -> None:
    fabric = fabric_of(IBNETDISCOVER, read("infiniband/fattree2-64-traffic/ibnetdiscover.txt"))
    after = sweep_of(IBQUERYERRORS, ALL)
    rates = link_rates(fabric, deltas(replace(after, values=np.zeros_like(after.values)), later(after)))
    links = fabric.links
    for row, sent in enumerate((rates.bytes_per_second * 300).tolist()):
        adapter = links.source_adapter[row]
        guid = fabric.adapters.guid[adapter] if adapter >= 0 else fabric.guid[links.source[row]]
        expected = TRUTH.get(f"{int(guid):016x}/{links.source_port[row]}", 0)
        assert 0 <= sent - expected < MANAGEMENT
    assert not rates.at_least.any()


def test_between_two_real_sweeps_a_reset_port_grew_by_at_least_what_it_shows() -> None:
    before = sweep_of(IBQUERYERRORS, read("counters/sweep1-counters.txt.gz"))
    after = later(sweep_of(IBQUERYERRORS, read("counters/sweep2-counters.txt.gz")))
    grown = deltas(before, after)
    port = {int(grown.port[k]): k for k in np.flatnonzero(grown.guid == 0x2C90000100100)}
    sent = grown.column("xmit_bytes")[[port[10], port[1], port[2]]]
    assert sent.tolist() == [4 * 6184, 4 * (1268435816 - 268436032), 4 * (268436824 - 268436032)]
    # perfquery left PortRcvPkts of that port alone: it grew by the difference at least
    assert grown.column("rcv_packets")[port[10]] == 1033582 - 1033508
    assert grown.guid[grown.at_least.any(axis=1)].tolist() == [0x2C90000100100]
    assert grown.port[grown.at_least.any(axis=1)].tolist() == [10]
    assert not grown.backwards
    assert deltas(after, later(before, 600)).backwards is False
