"""Values of options: files of circuits and weights, pins, hosts, times; names under which we are reached."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from almanac.options import Time, option_names, read_distance, read_hosts, read_lines
from almanac.placing_options import read_background, read_circuits, read_pins, read_weights
from almanac.reference import commands
from almanac.serve.allowed_hosts import LOCAL, allowed_hosts, is_allowed
from registry.errors import InputError


def written(folder: Path, text: str) -> str:
    path = folder / "file.csv"
    path.write_text(text)
    return str(path)


def test_circuits_name_nodes_and_a_bad_file_of_them_is_reported_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n0,1\n\nh2, 1\n")
    assert read_circuits(path, 3, ("h0", "h1", "h2")).pairs.tolist() == [[0, 1], [1, 2]]
    for text, line, reason in (
        *(("x,y\n0,1\n", 1, "the columns a,b"), ("a,b\n0,h9\n", 2, "expected two nodes")),
        *(("a,b\n0,1\n1\n", 3, "expected two nodes"), ("a,b\n0,7\n", None, "7"), ("a,b\n1,1\n", None, "1")),
        ("", 1, "the columns a,b"),
    ):
        with pytest.raises(InputError, match=reason) as error:
            read_circuits(written(tmp_path, text), 3)
        assert error.value.line == line


def test_each_rank_has_one_weight(tmp_path: Path) -> None:
    assert read_weights(written(tmp_path, "rank,weight\n1,0.5\n0,2\n"), 2).tolist() == [2.0, 0.5]
    for text, reason in (
        ("rank,weight\n0,1\n", "rank 1 has no weight"),
        ("rank,weight\n0,1\n\n0,2\n", "rank 0 is repeated"),
        ("rank,weight\n2,1\n", "expected a rank from 0 to 1"),
        ("rank,weight\n0,-1\n", "not negative"),
        ("rank,weight\n0,nan\n", "not negative"),
        ("rank,weight\n0,x\n", "not negative"),
    ):
        with pytest.raises(InputError, match=reason):
            read_weights(written(tmp_path, text), 2)


def test_values_of_pins_background_times_distances_and_names() -> None:
    assert read_pins(("3=node1", "0=a=b")) == {3: "node1", 0: "a=b"}
    assert read_background(("p1", "p2/0.5")) == (("p1", None), ("p2", 0.5))
    for wrong in (("3",), ("x=a",), ("1=a", "01=b")):
        with pytest.raises(click.BadParameter):
            read_pins(wrong)
    with pytest.raises(click.BadParameter):
        read_background(("p1/soon",))
    convert = Time().convert
    assert convert("2026-01-02T03:00", None, None) == datetime(2026, 1, 2, 3, tzinfo=UTC)
    assert convert("2026-01-02T03:00+02:00", None, None) == datetime(2026, 1, 2, 1, tzinfo=UTC)


def test_names_of_options_and_of_distances() -> None:
    assert option_names(["max_degree", "max_edges"]) == "--max-degree, --max-edges"
    assert read_distance(None) == (None, None)
    assert read_distance("switches") == ("switches", None)


def test_hosts_come_from_an_expression_or_a_file_that_can_be_read(tmp_path: Path) -> None:
    assert read_hosts("n[1-2],m1") == ("n1", "n2", "m1")
    path = written(tmp_path, "# rack 1\nn[1-2]\nm1  # spare\n")
    assert read_hosts(f"@{path}") == ("n1", "n2", "m1")
    with pytest.raises(InputError, match="no host names"):
        read_hosts("@" + written(tmp_path, "# none\n"))
    missing = tmp_path / "none"
    with pytest.raises(InputError) as caught:
        read_hosts(f"@{missing}")
    assert str(caught.value) == f"{missing}: cannot be read: No such file or directory"
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="the host file of X cannot be read: not UTF-8 text"):
        read_lines(str(tmp_path / "binary"), "the host file of X")


def test_a_span_is_before_now_and_what_is_no_time_is_a_usage_error_with_examples() -> None:
    week = timedelta(days=7)
    before = datetime.now(UTC) - week
    assert before <= Time().convert("7d", None, None) <= datetime.now(UTC) - week
    with pytest.raises(click.BadParameter, match=r"'7x' is not a time such as .*, 7d, 12h or yesterday"):
        Time().convert("7x", None, None)


def test_options_of_times_have_one_type() -> None:
    named = {"at", "since", "observed_at", "start", "end"}
    found = [
        option
        for _, command in commands()
        for option in command.params
        if isinstance(option, click.Option) and option.name in named and option.opts != ["--start"]
    ]
    assert len(found) >= 15
    assert all(isinstance(option.type, Time) for option in found)


def test_an_address_on_loopback_is_reached_by_local_names_only() -> None:
    assert allowed_hosts("127.0.0.1") == LOCAL
    assert allowed_hosts("127.0.0.1", ["Fabric.Example."]) == (*LOCAL, "fabric.example")
    assert {*LOCAL, "0.0.0.0", socket.gethostname().lower()} <= set(allowed_hosts("0.0.0.0"))


ALLOWED = ("localhost", "LOCALHOST:8501", "localhost.", "192.168.1.7:80", "[fe80::1]:80", "127.0.0.1")
REFUSED = (
    *("evil.example", "localhost.evil.example", "localhost@evil.example", "evil.example@localhost"),
    *("", "a b", "localhost:port", "localhost:99999", "localhost/x", "localhost?x", "[::1"),
    "127.0.0.1.evil.example",
)


def test_local_names_and_addresses_are_allowed_and_others_are_not() -> None:
    assert [host for host in (*ALLOWED, *REFUSED) if is_allowed(host, LOCAL)] == list(ALLOWED)
