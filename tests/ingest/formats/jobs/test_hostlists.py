"""Host list expressions: order, padding, limits, and what is refused."""

from __future__ import annotations

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.jobs.hostlists import MAX_HOSTS, expand
from registry.errors import InputError
from tests.support.inputs import read


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node1", "node1"),
        ("node[0001-0003,0007]", "node0001 node0002 node0003 node0007"),
        ("node[08-11]", "node08 node09 node10 node11"),
        ("node[8-11]", "node8 node9 node10 node11"),
        ("node[1-2]-ib0.site.org", "node1-ib0.site.org node2-ib0.site.org"),
        ("c[0-1]n[0-2]", "c0n0 c0n1 c0n2 c1n0 c1n1 c1n2"),
        ("login,node[1-2],gpu[7]", "login node1 node2 gpu7"),
        ("n1 n2\n n3,\tn4,", "n1 n2 n3 n4"),
        ("a-p1-dgx-[01-02]-c01", "a-p1-dgx-01-c01 a-p1-dgx-02-c01"),
        ("", ""),
    ],
)
def test_expressions_name_their_hosts(text: str, hosts: str) -> None:
    assert expand(text) == tuple(hosts.split())


def test_the_order_given_is_kept() -> None:
    assert expand("node[5,1-2],login,node[4,3]") == ("node5", "node1", "node2", "login", "node4", "node3")
    assert expand("c[1,0]n[2,0-1]") == ("c1n2", "c1n0", "c1n1", "c0n2", "c0n0", "c0n1")
    assert expand(read("slurm/hostlist.txt").decode()) == ("node0001", "node0002", "node0005", "node0064")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("ok,n[1-", "n[1-"),
        ("ok,n1]", "n1]"),
        ("ok,n[3-1]", "n[3-1]"),
        ("ok,n[8-011]", "n[8-011]"),
        ("ok,n[a-b],ok2", "n[a-b]"),
        ("ok,n[]", "n[]"),
        ("ok,n[0-6/3]", "n[0-6/3]"),
        ("ok,n[٣]", "n[٣]"),
        ("ok,n[1,]", "n[1,]"),
        ("ok,n[-1]", "n[-1]"),
        ("ok,n[1-2][3-4]", "n[1-2][3-4]"),
        ("ok,@all", "@all"),
        ("ok,n1!n2", "n1!n2"),
        ("ok,n%s", "n%s"),
        ("ok,n*", "n*"),
        ("ok,$(id)", "$(id)"),
        ("ok,[1]é", "[1]é"),
        ("ok,n1,n[2,1]", "n[2,1]"),
        ("ok,n[0-999999999]", "n[0-999999999]"),
        ("ok,n[0-9999]x[0-9999]", "n[0-9999]x[0-9999]"),
        ("ok,n[0-99999999999999999999]", "n[0-99999999999999999999]"),
        ("ok," + "[0-1]a" * 40, "[0-1]a" * 40),
    ],
)
def test_a_faulty_part_is_named(text: str, part: str) -> None:
    with pytest.raises(InputError) as caught:
        expand(text, path="jobs.txt", line=7)
    assert (caught.value.path, caught.value.line) == ("jobs.txt", 7)
    assert caught.value.text == part[:197] + "..." if len(part) > 200 else part


def test_the_limit_holds_for_the_whole_expression() -> None:
    half = MAX_HOSTS // 2
    assert len(expand(f"a[1-{half}],b[1-{half}]")) == MAX_HOSTS
    with pytest.raises(InputError, match="more than"):
        expand(f"a[1-{half}],b[1-{half}],c[1-1]")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 999)), unique=True))
def test_single_names_come_back_as_they_are(names: list[tuple[str, int]]) -> None:
    hosts = tuple(f"{letter}{number:03}" for letter, number in names)
    assert expand(",".join(hosts)) == hosts
    assert expand(",".join(f"{letter}[{number:03}]" for letter, number in names)) == hosts


@given(st.text(max_size=40) | st.text(alphabet="n[]-,0123/ ", max_size=40))
def test_any_text_is_expanded_or_refused(text: str) -> None:
    try:
        hosts = expand(text)
    except InputError:
        return
    assert len(set(hosts)) == len(hosts)
    assert all(host and not host.isspace() for host in hosts)


NAMES = st.from_regex(r"[A-Za-z0-9_.:-]{1,12}", fullmatch=True)


@given(
    before=NAMES,
    behind=st.just("") | NAMES,
    first=st.integers(0, 10**6),
    more=st.integers(0, 30),
    width=st.integers(1, 9),
)
def test_what_is_expanded_without_the_library_is_what_the_library_expands(
    before: str, behind: str, first: int, more: int, width: int
) -> None:
    last = first + more
    if len(f"{first:0{width}d}") != len(str(last).zfill(width)):
        return
    for text in (before, f"{before}[{first:0{width}d}-{last:0{width}d}]{behind}"):
        try:
            named = tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
        except (NodeSetException, ValueError):
            continue
        assert expand(text) == named
