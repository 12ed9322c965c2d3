"""ibnetdiscover: what a damaged, cut-off or contradictory scan gets."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.formats.fabrics import ibnetdiscover
from registry.errors import InputError
from tests.support.ibnetdiscover_scans import TREE, fabric_of, raw, read, swap
from tests.support.inputs import damaged, file, survives

REAL = [TREE.encode(), raw("public/1.topo").encode(), raw("public/4.topo").encode()]


def fails(text: str, reason: str) -> InputError:
    with pytest.raises(InputError, match=reason) as caught:
        read(text)
    assert caught.value.path == "scan"
    return caught.value


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_a_scan_that_found_only_itself_says_so() -> None:
    fails(raw("public/ndr-dgx-only-local.ibnetdiscover"), "found only its own machine")


def test_a_scan_of_aggregation_nodes_alone_found_nothing() -> None:
    record = TREE.split("\n\n")[-1].replace('"node0006 mlx5_0"', '"Mellanox Technologies Aggregation Node"')
    lines = record.replace('"S-0002c90000100400"[3]', '"H-0002c90000f00600"[1]')
    fails(lines, "found only its own machine")


@pytest.mark.parametrize("cut", range(4, len(TREE.splitlines())))
def test_a_scan_cut_at_any_line_is_an_error(cut: int) -> None:
    with pytest.raises(InputError):
        read("\n".join(TREE.splitlines()[:cut]) + "\n")


def test_a_scan_cut_at_any_byte_before_the_last_rate_is_an_error() -> None:
    only_told_elsewhere = re.compile(r'"leaf02" ?(lid \d+ ?)?(4xHDR)?$')  # the peer's LID, the rate
    accepted = []
    for cut in range(1, len(TREE)):
        try:
            read(TREE[:cut])
        except InputError:
            continue
        accepted.append(cut)
    assert all(cut > len(TREE) - 30 and only_told_elsewhere.search(TREE[:cut]) for cut in accepted)
    assert accepted


def test_a_cut_off_line_is_shown() -> None:
    cut = TREE[: TREE.rindex("lmc 0")]
    assert fails(cut, "truncated").line == len(cut.splitlines())


def test_ends_that_contradict_each_other_are_shown() -> None:
    one = '[4]\t"S-0002c90000100100"[1]'
    error = fails(TREE.replace(one, '[4]\t"S-0002c90000100100"[2]', 1), "leads elsewhere")
    assert error.line is not None
    assert error.text is not None
    assert "S-0002c9" in error.text


def test_a_device_printed_twice_is_an_error() -> None:
    record = "\nvendid" + TREE.split("\nvendid")[-1]
    error = fails(TREE + record, "the device is already in line")
    assert error.line is not None
    assert error.line > len(TREE.splitlines())


def test_a_port_printed_twice_is_an_error() -> None:
    line = TREE.splitlines()[-1]
    assert fails(TREE + line + "\n", "the port is already in line").line == len(TREE.splitlines()) + 1


def test_a_line_that_is_none_of_the_tools_is_an_error() -> None:
    text = TREE.replace("devid=0xd2f0", "what is this\ndevid=0xd2f0", 1)
    error = fails(text, "not a line of ibnetdiscover")
    assert (error.line, error.text) == (line_of(text, "what is this"), "what is this")


def test_output_of_diff_is_refused() -> None:
    fails(raw("infiniband/fattree2-64-broken-link/ibnetdiscover.diff"), "--diff")


@pytest.mark.parametrize("rate", ["3xHDR", "4xABC", "16xNDR", "0xSDR"])
def test_an_impossible_rate_is_an_error(rate: str) -> None:
    assert fails(TREE.replace("4xHDR", rate, 1), "is not a width and speed of InfiniBand").line == 11


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("lid 5 lmc", "lid 70000 lmc", "LID 70000 is out of range"),
        ("caguid=0x2c90000f00100", "caguid=0x2c90000f00101", "contradict"),
        ('Ca\t1 "H-0002c90000f00100"', 'Ca\t1 "S-0002c90000f00100"', "contradict"),
        ("[1](2c90000f00101)", "[255](2c90000f00101)", "out of range"),
        ("[1](2c90000f00101)", "[0](2c90000f00101)", "out of range"),
        ("lmc 0 ", "lmc 8 ", "out of range"),
        ("lmc 0 ", "lmc 9 ", "out of range"),
    ],
)
def test_values_that_cannot_be_are_errors(old: str, new: str, reason: str) -> None:
    assert old in TREE
    fails(TREE.replace(old, new), reason)


def test_an_overlong_line_is_an_error() -> None:
    fails(TREE.replace("leaf01", "x" * 5000), "longer than 4096")


@pytest.mark.parametrize(
    "time", ["Xxx Aug 99 06:33:24 2025", "Fri Foo  8 06:33:24 2025", "Fri Aug  8 26:33:24 2025", "?"]
)
def test_a_time_that_is_none_is_left_to_the_file(time: str) -> None:
    assert fabric_of(swap(TREE, r"generated on .*", f"generated on {time}")).observed_at is None


@given(st.binary(max_size=400) | st.text(max_size=200).map(str.encode))
def test_arbitrary_bytes_only_ever_raise_input_errors(data: bytes) -> None:
    survives(ibnetdiscover, [file(data)])


@settings(max_examples=300)
@given(st.sampled_from(REAL).flatmap(damaged))
def test_damaged_scans_only_ever_raise_input_errors(data: bytes) -> None:
    survives(ibnetdiscover, [file(data)])
