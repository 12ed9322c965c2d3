"""A fabric leaves the registry as other tools' files, as of any time, and comes back; ranks of jobs, too."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from registry.exports.catalog import FORMATS
from tests.almanac.conftest import SCAN, Almanac
from tests.support import paths

DATA = paths.DATA
NOT_READ = ("kubernetes-labels", "kueue-topology", "volcano-hypernodes")


@pytest.fixture
def changed(almanac: Almanac) -> Almanac:
    """Cluster ft as it was scanned in May, and in June with a spine less."""
    rest = DATA / "infiniband" / "fattree2-64-dead-spine" / "ibnetdiscover.txt"
    for path, month in ((SCAN, 5), (rest, 6)):
        almanac.ok("ingest", path, "--cluster", "ft", "--observed-at", f"2026-0{month}-01T00:00:00Z")
    return almanac


def test_every_format_is_written_as_of_a_time_and_read_back(changed: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "exported"
    for format in FORMATS.names:
        export = ("cluster", "export", "ft", "--at", "2026-05-02", f"{format}={path}")
        note = changed.ok(*export).err
        assert f"{format} of ft at 2026-05-01 00:00:00 UTC written to {path}" in note
        if format not in NOT_READ:
            back = changed.json("ingest", path, "--cluster", "again", "--dry-run")
            assert back["host_count"] == 64, format
        path.unlink()
    then, now = (changed.ok("cluster", "export", "ft", *at, "csv").out for at in (("--at", "2026-05-02"), ()))
    assert len(then.splitlines()) == 1 + 2 * 96
    assert then != now


def test_what_cannot_be_written_is_reported_and_nothing_is_written(almanac: Almanac, tmp_path: Path) -> None:
    path, ring = tmp_path / "exported", tmp_path / "ring.csv"
    ring.write_text("source,target,capacity\na,b,1\nb,c,1\nc,a,1\n")
    almanac.ok("ingest", ring, "--cluster", "ring")
    missing = almanac.refused("cluster", "export", "tf", f"csv={path}")
    assert "there is no cluster 'tf'" in missing
    almanac.refused("cluster", "export", "ring", "cvs", code=2)
    refused = almanac.refused("cluster", "export", "ring", f"slurm-topology={path}")
    assert "a direct network has no tree of switches" in refused
    assert not path.exists()


@pytest.fixture
def busy(almanac: Almanac, tmp_path: Path) -> Almanac:
    jobs = tmp_path / "sacct.json"
    jobs.write_bytes(gzip.decompress((DATA / "slurm" / "sacct.json.gz").read_bytes()))
    almanac.ok("ingest", SCAN, "--cluster", "ft", "--observed-at", "2026-05-01")
    almanac.ok("ingest", jobs, "--cluster", "ft")
    return almanac


def test_ranks_of_a_job_are_written_as_its_distribution_put_them(busy: Almanac, tmp_path: Path) -> None:
    was = tmp_path / "was.csv"
    busy.ok("job", "export", "1", f"csv={was}")
    hosts = [f"node{1 + rank // 4:04d}" for rank in range(64)]
    assert was.read_text() == "rank,host\n" + "".join(f"{rank},{host}\n" for rank, host in enumerate(hosts))
    plane = busy("job", "export", "1", "--distribution", "plane", "--plane", 2).out.splitlines()
    assert plane[1:5] == ["0,node0001", "1,node0001", "2,node0002", "3,node0002"]
    uneven = busy.ok("job", "export", "2")
    assert "lacks the ranks per host: they are spread over its slots" in uneven.err
    assert len(uneven.out.splitlines()) == 41
    refused = busy.refused("job", "export", "1", "--distribution", "plane")
    assert "the size of a plane is needed" in refused
    busy.ok("ingest", was, "--cluster", "ft", "--dry-run")
    order = tmp_path / "MPICH_RANK_ORDER"
    order.write_text("1,3,0,2\n")
    assert "--hosts" in busy.refused("ingest", order, "--cluster", "ft")
    given = ("--hosts", "node[0007,0003]", "--slots", 2)
    assert len(busy.json("ingest", order, "--cluster", "ft", *given)["placement_ids"]) == 1


def test_ranks_follow_the_rule_of_the_version_of_slurm(busy: Almanac, tmp_path: Path) -> None:
    topology = tmp_path / "topology.conf"
    topology.write_text(
        "BlockName=later Nodes=node[0009-0016]\nBlockName=b Nodes=node[0001-0008]\nBlockSizes=8\n"
    )
    ranks = ("job", "export", "1", "--slurm-version")
    listed = [f"node{1 + rank // 4:04d}" for rank in range(64)]

    def hosts(*words: object) -> list[str]:
        done = busy.ok(*ranks, *words)
        return [line.split(",")[1] for line in done.out.splitlines()[1:]]

    assert hosts("26.05", "--topology", topology) == listed[32:] + listed[:32]
    assert hosts("26.05", "--topology", topology, "--distribution", "cyclic")[:2] == ["node0001", "node0002"]
    assert hosts("24.11.5", "--topology", topology) == listed
    assert hosts("26.05.5") == listed
    assert "without --topology" in busy(*ranks, "26.05.5").err
    for version, rule in (("25.11", "24.11"), ("20.11.9", "22.05"), ("27.05", "26.05")):
        messages = busy(*ranks, version, "--topology", topology).err
        assert f"Slurm {version} was not measured: the rule of {rule} is used" in messages
    wrong = busy.refused(*ranks, "new", code=2)
    assert "'new' is not a version such as 26.05" in wrong
    alone = busy.refused("job", "export", "1", "--topology", topology, code=2)
    assert "--topology needs --slurm-version" in alone
    topology.write_text("BlockName=b Nodes=node[0001-0008]\nBlockSizes=8\n")
    lacks = busy.refused(*ranks, "26.05", "--topology", topology)
    assert "node0009 is on no switch or block of it" in lacks
