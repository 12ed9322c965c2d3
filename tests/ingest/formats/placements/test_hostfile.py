"""Repeated hosts, and hosts relative to an allocation: the rule is named."""

from __future__ import annotations

import pytest

from ingest import catalog
from ingest.formats.jobs.hostlists import expand
from ingest.formats.placements import hostfile, openmpi_rankfile
from registry.errors import InputError
from tests.support.inputs import file, hosts_of, parse, refusal


def test_lines_that_repeat_an_earlier_host_are_read_in_order_and_the_rule_is_named() -> None:
    text = "a\na\nb\na\nb\n"
    assert hosts_of(hostfile, text) == ("a", "a", "b", "a", "b")
    (warning,) = parse(hostfile, text).warnings
    assert warning.startswith("2 lines repeat the hosts of an earlier line (a in line 4 first): ")
    assert "`--map-by seq`" in warning
    assert "Open MPI adds up the slots of such lines" in warning
    assert not parse(hostfile, "a\na\nb\nb\n").warnings
    assert not parse(hostfile, "a:2\nb:1\na:1\n").warnings


def test_a_host_repeated_with_slots_is_refused_with_the_rule() -> None:
    error = refusal(hostfile, "a slots=2\nb slots=2\na slots=2\n")
    assert error.line == 3
    assert error.reason == (
        "host a is repeated with slots=: Open MPI adds up the slots of such lines, and the host takes "
        "its ranks where it is first named: write one line with the sum"
    )


@pytest.mark.parametrize("text", ["+e0\n+e1\n", "+n0 slots=2\nb slots=2\n", "# x\n+e\n", "+e:2\n"])
def test_relative_hosts_are_recognised_and_refused_with_the_rule(text: str) -> None:
    assert catalog.recognise(file(text).as_group()).name == "hostfile"
    error = refusal(hostfile, text)
    assert "which only mpirun knows: use the names" in error.reason
    assert "relative" in refusal(hostfile, "a\n" + text).reason


@pytest.mark.parametrize("host", ["+e0", "+n12", "+e", "+e:2"])
def test_relative_hosts_in_lists_and_rankfiles_are_refused_with_the_rule(host: str) -> None:
    with pytest.raises(InputError, match=r"is relative: .*which only mpirun knows"):
        expand(f"a,{host}")
    assert "which only mpirun knows" in refusal(openmpi_rankfile, f"rank 0={host} slot=0\n").reason
