"""The order in which Slurm deals ranks to hosts, beside what srun really did."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.fabrics.slurm_topology import read_leaves
from ingest.formats.hostlists import expand
from registry.errors import InvalidValue
from registry.model import Job
from registry.model.placement import order_of_job, rank_order, shared
from tests.support import paths
from tests.support.launchers import require, slurm
from tests.support.waiting import PATIENCE

DATA = paths.DATA / "slurm"


def tree(above: str, **nodes: str) -> str:
    """A topology.conf of leaf switches with nodes n[...], and switches such as ``c=a,b`` above them."""
    lines = [f"SwitchName={name} Nodes=n[{numbers}]\n" for name, numbers in nodes.items()]
    return "".join(lines + [f"SwitchName={one.replace('=', ' Switches=')}\n" for one in above.split()])


def block(sizes: str, **nodes: str) -> str:
    lines = [f"BlockName={name} Nodes=n[{numbers}]\n" for name, numbers in nodes.items()]
    return "".join([*lines, f"BlockSizes={sizes}\n"])


TOPOLOGIES = {
    "flat": "",
    "tree": tree("c=a,b", a="8,1,3,5", b="2,4,6-7"),
    "tree2": tree("x=a,c y=b,d z=x,y", a="2,7", b="1,8", c="3,5", d="4,6"),
    "tree3": "SwitchName=top Switches=w,c,m\n" + tree("", w="5,2", c="8,1,3", m="4,6-7"),
    "block": block("4", b1="2,4,6,8", b2="1,3,5,7"),
    "block2": block("2,4", b1="3,8", b2="1,6", b3="2,7", b4="4,5"),
    "block3": block("2", w="5,2,8", c="1,3,7", m="4,6"),
}
TOPOLOGIES["yaml3"] = """- topology: default
  cluster_default: true
  tree:
    switches:
    - {switch: top, children: "m,c,w"}
    - {switch: w, nodes: "n[5,2]"}
    - {switch: c, nodes: "n[8,1,3]"}
    - {switch: m, nodes: "n[4,6-7]"}
"""
"""topology.conf or topology.yaml by the name in `topology_orders.txt`."""
UNDER_TOPOLOGIES = [
    line.split() for line in (DATA / "topology_orders.txt").read_text().splitlines() if line[0] != "#"
]
ORDERS = [line.split() for line in (DATA / "srun_orders.txt").read_text().splitlines() if line[0] != "#"]


def printed(name: str) -> list[str]:
    """Node of each rank, as ``srun --label`` printed them."""
    rows = (line.split() for line in (DATA / name).read_text().splitlines())
    return [node for _, node in sorted((int(rank), node) for _, rank, node, *_ in rows)]


@pytest.mark.parametrize(
    ("name", "distribution", "plane"),
    [("srun_block.txt", "block", None), ("srun_cyclic.txt", "cyclic", None), ("srun_plane2.txt", "plane", 2)],
)
def test_64_ranks_sit_where_srun_put_them(name: str, distribution: str, plane: int | None) -> None:
    job = Job(id="1", hosts=expand("node[0001-0016]"), slots=(4,) * 16, ranks=64, distribution=distribution)
    assert list(order_of_job(job, plane=plane).hosts) == printed(name)


@pytest.mark.parametrize("row", ORDERS, ids=lambda row: "-".join(row[:2]))
def test_ranks_of_uneven_hosts_sit_where_srun_put_them(row: list[str]) -> None:
    tasks, given, *nodes = row
    distribution, _, plane = given.partition("=")
    names = sorted(set(nodes))
    counts = [nodes.count(name) for name in names]
    assert sum(counts) == int(tasks)
    found = rank_order(counts, distribution, int(plane) if plane else None)
    assert [names[host] for host in found.tolist()] == nodes


@pytest.mark.parametrize("row", UNDER_TOPOLOGIES, ids=lambda row: "-".join(row[:5]))
def test_ranks_sit_where_srun_of_each_version_put_them(row: list[str], tmp_path: Path) -> None:
    version, topology, given, hosts, tasks, *nodes = row
    distribution, _, plane = given.replace("default", "").partition("=")
    counts = (part.rstrip(")").split("(x") for part in tasks.split(","))
    slots = [int(count) for count, *times in counts for _ in range(int(*times or "1"))]
    leaves: tuple[tuple[str, ...], ...] = ()
    if TOPOLOGIES[topology] and version == "26.05.5":
        (tmp_path / "topology.conf").write_text(TOPOLOGIES[topology])
        leaves = read_leaves(tmp_path / "topology.conf")
    job = Job(id="1", hosts=expand(hosts), slots=tuple(slots), ranks=len(nodes), distribution=distribution)
    found = order_of_job(job, plane=int(plane) if plane else None, leaves=leaves)
    assert [host[1:] for host in found.hosts] == nodes


def test_a_job_without_hosts_or_with_one_that_the_topology_lacks_has_no_order() -> None:
    with pytest.raises(InvalidValue, match="job 4 has none"):
        order_of_job(Job(id="4"))
    job = Job(id="1", hosts=("a", "b"), slots=(1, 1), ranks=2)
    with pytest.raises(InvalidValue, match="b is on no switch or block of it"):
        order_of_job(job, leaves=(("a",),))
    assert order_of_job(job, distribution="cyclic", leaves=(("a",),)).hosts == ("a", "b")


def slow(counts: list[int], each: int) -> list[int]:
    left, order = list(counts), []
    while any(left):
        for host, count in enumerate(left):
            now = min(each, count)
            order += [host] * now
            left[host] -= now
    return order


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(1, 7))
def test_every_distribution_visits_hosts_round_after_round(counts: list[int], plane: int) -> None:
    assert rank_order(counts, "plane", plane).tolist() == slow(counts, plane)
    assert rank_order(counts, "cyclic").tolist() == slow(counts, 1)
    assert rank_order(counts, "block").tolist() == slow(counts, 99)


@given(st.integers(0, 40), st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_ranks_are_shared_one_a_host_and_round(ranks: int, room: list[int]) -> None:
    taken, left = [0] * len(room), ranks
    while left:
        free = [host for host in range(len(room)) if taken[host] < room[host]] or range(len(room))
        for host in list(free)[:left]:
            taken[host] += 1
            left -= 1
    assert shared(ranks, room) == tuple(taken)


def test_a_job_with_more_slots_than_ranks_shares_them_first() -> None:
    job = Job(id="2", hosts=("a", "b", "c"), slots=(4, 4, 4), ranks=5)
    assert "".join(order_of_job(job).hosts) == "aabbc"
    assert "".join(order_of_job(job, distribution="cyclic").hosts) == "abcab"
    unknown = Job(id="3", hosts=("a", "b"), slots=(1, 2), distribution="cyclic")
    assert order_of_job(unknown).hosts == ("a", "b", "b")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (([1], "arbitrary"), "its order is only in the host list"),
        (([1], "random"), "must be one of block, cyclic, plane, arbitrary"),
        (([1], "plane"), "the size of a plane is needed"),
        (([1], "plane", 0), "the size of a plane is needed"),
        (([], "block"), "needs at least one host"),
        (([1, -1], "block"), "no negative number"),
    ],
)
def test_an_order_that_nobody_knows_is_refused(asked: Any, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        rank_order(*asked)


def test_slurm_deals_ranks_to_the_hosts_of_a_job_as_it_lists_them(processes: None, tmp_path: Path) -> None:
    """A topology plug-in decides which hosts a job gets, not how ranks are dealt."""
    require("slurmctld", "slurmd", "srun")
    print_host = ("sh", "-c", 'echo "$SLURM_PROCID $SLURMD_NODENAME"; echo "$SLURM_JOB_NODELIST" >&2')
    with slurm(tmp_path, "n[1-8]", expand("n[1-8]"), 2, topology=TOPOLOGIES["tree"]) as scheduler:
        for nodes, distribution in ((8, "block"), (8, "cyclic"), (3, "block"), (5, "cyclic")):
            words = ["srun", f"-N{nodes}", f"-n{2 * nodes}", "-m", distribution, *print_host]
            environment = {**os.environ, **scheduler.environment}
            done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=PATIENCE)
            rows = sorted((int(rank), host) for rank, host in map(str.split, done.stdout.splitlines()))
            listed = expand(done.stderr.splitlines()[-1])
            assert [rank for rank, _ in rows] == list(range(2 * nodes))
            job = Job(id="1", hosts=listed, slots=(2,) * nodes, ranks=2 * nodes, distribution=distribution)
            assert list(order_of_job(job).hosts) == [host for _, host in rows]
