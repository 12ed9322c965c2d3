"""Host files of Open MPI, MPICH and Slurm as orders of hosts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.placements import hostfile
from registry.errors import InputError
from tests.support.inputs import damaged, file, parse, read, survives

TURNED = (3, 2, 1, 0, 0, 1, 2, 3)


def hosts(content: str | bytes) -> tuple[str, ...]:
    placement = parse(hostfile, content).placements[0]
    assert placement is not None
    return placement.hosts


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("openmpi_seq_hostfile.txt", "node"), ("mpich_machinefile.txt", "node"), ("slurm_hostfile.txt", "n")],
)
def test_host_files_that_launchers_took(name: str, prefix: str) -> None:
    content = read(f"placements/{name}")
    assert hosts(content) == tuple(f"{prefix}{i}" for i in TURNED)
    assert hostfile.recognise(content.decode(), "x")


def test_slots_are_filled_host_by_host() -> None:
    assert hosts(read("placements/hosts.txt")) == tuple(f"node{i}" for i in (0, 0, 1, 1, 2, 2, 3, 3))
    assert hosts("# made\na slots=2 max_slots=4 # x\n\nb  slots = 0\nc slots=1 max-slots=1\n") == (
        "a",
        "a",
        "c",
    )


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a slots=1\nb\n", 2, "not of the first line's kind"),
        ("a\nb:2\n", 2, "not of the first line's kind"),
        ("a:1\nb slots=1\n", 2, "not of the first line's kind"),
        (
            "a slots=1\nb slots=1\na slots=1\n",
            3,
            "host a is repeated with slots=: the launcher merges such lines",
        ),
        ("a slo", 1, "expected a host with its number of ranks"),
        ("a:x\n", 1, "expected a host with its number of ranks"),
        ("a slots=1 user=ann\n", 1, "expected a host with its number of ranks"),
        ("+n0\n", 1, "expected a host with its number of ranks"),
        ("a:99999999\n", 1, "places more than 16777216 ranks"),
        ("a slots=0\n", None, "no ranks found"),
        ("# nothing\n", None, "no ranks found"),
    ],
)
def test_a_host_file_that_cannot_be_read_is_refused(text: str, line: int | None, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        hosts(text)
    assert (caught.value.path, caught.value.line) == ("input", line)
    assert caught.value.reason.startswith(reason)


def test_it_is_recognised_only_where_all_lines_are_hosts() -> None:
    for text in ("a slots=2\n", "a:2\n", "a\nb\n", "# x\na\na\n"):
        assert hostfile.recognise(text, "x")
    for text in ("", "# x\n", "garbage\n", "hello world\n", "1\n2\n", "a\nb c\n", "{\n}\n"):
        assert not hostfile.recognise(text, "x")


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    survives(hostfile, [file(body)])


@given(damaged(read("placements/mpich_machinefile.txt")), damaged(read("placements/hosts.txt")))
def test_a_damaged_file_is_read_or_refused(machines: bytes, slots: bytes) -> None:
    survives(hostfile, [file(machines)])
    survives(hostfile, [file(slots)])
