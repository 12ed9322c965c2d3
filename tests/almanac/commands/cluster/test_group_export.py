"""A fabric leaves the registry as other tools' files, as of any time, and comes back; ranks of jobs, too."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from registry.exports.catalog import FORMATS
from tests.almanac.conftest import Almanac
from tests.support import paths

DATA = paths.DATA
SCAN = DATA / "infiniband" / "fattree2-64-traffic" / "ibnetdiscover.txt"

NOT_READ = ("kubernetes-labels", "kueue-topology", "volcano-hypernodes")


@pytest.fixture
def loaded(embedded: Almanac) -> Almanac:
    """Cluster ft as it was scanned in May, and in June with a spine less."""
    early, late = "2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z"
    assert embedded("ingest", SCAN, "--cluster", "ft", "--observed-at", early).code == 0
    rest = DATA / "infiniband" / "fattree2-64-dead-spine" / "ibnetdiscover.txt"
    assert embedded("ingest", rest, "--cluster", "ft", "--observed-at", late).code == 0
    return embedded


@pytest.mark.parametrize("format", FORMATS.names)
def test_every_format_is_written_and_read_back(loaded: Almanac, tmp_path: Path, format: str) -> None:
    path = tmp_path / "exported"
    outcome = loaded("cluster", "export", "ft", "--at", "2026-05-02", f"{format}={path}")
    assert outcome.code == 0, outcome.err
    assert f"{format} of ft at 2026-05-01 00:00:00 UTC written to {path}" in outcome.err
    if format not in NOT_READ:
        back = loaded("ingest", path, "--cluster", "again", "--dry-run", "--json").json
        assert back["host_count"] == 64


def test_the_wiring_of_a_time_is_written(loaded: Almanac) -> None:
    then = loaded("cluster", "export", "ft", "--at", "2026-05-02", "csv").out
    now = loaded("cluster", "export", "ft", "csv").out
    assert len(then.splitlines()) == 1 + 2 * 96
    assert then != now


def test_what_cannot_be_written_is_reported_and_nothing_is_written(loaded: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "exported"
    missing = loaded("cluster", "export", "tf", f"csv={path}")
    assert missing.code == 1
    assert "there is no cluster 'tf'" in missing.err
    assert loaded("cluster", "export", "ft", "cvs").code == 2
    torus = tmp_path / "ring.csv"
    torus.write_text("source,target,capacity\na,b,1\nb,c,1\nc,a,1\n")
    assert loaded("ingest", torus, "--cluster", "ring").code == 0
    refused = loaded("cluster", "export", "ring", f"slurm-topology={path}")
    assert refused.code == 1
    assert "a direct network has no tree of switches" in refused.err
    assert not path.exists()


def test_ranks_of_a_job_are_written_as_its_distribution_put_them(loaded: Almanac, tmp_path: Path) -> None:
    jobs = tmp_path / "sacct.json"
    jobs.write_bytes(gzip.decompress((DATA / "slurm" / "sacct.json.gz").read_bytes()))
    assert loaded("ingest", jobs, "--cluster", "ft").code == 0
    was = tmp_path / "was.csv"
    assert loaded("job", "export", "1", f"csv={was}").code == 0
    hosts = [f"node{1 + rank // 4:04d}" for rank in range(64)]
    assert was.read_text() == "rank,host\n" + "".join(f"{rank},{host}\n" for rank, host in enumerate(hosts))
    plane = loaded("job", "export", "1", "--distribution", "plane", "--plane", 2).out.splitlines()
    assert plane[1:5] == ["0,node0001", "1,node0001", "2,node0002", "3,node0002"]
    uneven = loaded("job", "export", "2")
    assert uneven.code == 0
    assert "lacks the ranks per host: they are spread over its slots" in uneven.err
    assert len(uneven.out.splitlines()) == 41
    refused = loaded("job", "export", "1", "--distribution", "plane")
    assert refused.code == 1
    assert "the size of a plane is needed" in refused.err
    back = loaded("ingest", was, "--cluster", "ft", "--dry-run")
    assert back.code == 0, back.err


def test_ranks_follow_the_rule_of_the_version_of_slurm(loaded: Almanac, tmp_path: Path) -> None:
    jobs, topology = tmp_path / "sacct.json", tmp_path / "topology.conf"
    jobs.write_bytes(gzip.decompress((DATA / "slurm" / "sacct.json.gz").read_bytes()))
    assert loaded("ingest", jobs, "--cluster", "ft").code == 0
    topology.write_text(
        "BlockName=later Nodes=node[0009-0016]\nBlockName=b Nodes=node[0001-0008]\nBlockSizes=8\n"
    )
    ranks = ("job", "export", "1", "--slurm-version")
    listed = [f"node{1 + rank // 4:04d}" for rank in range(64)]

    def hosts(*words: object) -> list[str]:
        done = loaded(*ranks, *words)
        assert done.code == 0, done.err
        return [line.split(",")[1] for line in done.out.splitlines()[1:]]

    assert hosts("26.05", "--topology", topology) == listed[32:] + listed[:32]
    assert hosts("26.05", "--topology", topology, "--distribution", "cyclic")[:2] == ["node0001", "node0002"]
    assert hosts("24.11.5", "--topology", topology) == listed
    assert hosts("26.05.5") == listed
    assert "without --topology" in loaded(*ranks, "26.05.5").err
    for version, rule in (("25.11", "24.11"), ("20.11.9", "22.05"), ("27.05", "26.05")):
        said = loaded(*ranks, version, "--topology", topology).err
        assert f"Slurm {version} was not measured: the rule of {rule} is used" in said
    wrong = loaded(*ranks, "new")
    assert (wrong.code, "'new' is not a version such as 26.05" in wrong.err) == (2, True)
    alone = loaded("job", "export", "1", "--topology", topology)
    assert (alone.code, "--topology needs --slurm-version" in alone.err) == (2, True)
    topology.write_text("BlockName=b Nodes=node[0001-0008]\nBlockSizes=8\n")
    lacks = loaded(*ranks, "26.05", "--topology", topology)
    assert (lacks.code, "node0009 is on no switch or block of it" in lacks.err) == (1, True)


def test_a_rank_order_is_read_with_the_given_hosts(loaded: Almanac, tmp_path: Path) -> None:
    order = tmp_path / "MPICH_RANK_ORDER"
    order.write_text("1,3,0,2\n")
    bare = loaded("ingest", order, "--cluster", "ft")
    assert bare.code == 1
    assert "--hosts" in bare.err
    answer = loaded("ingest", order, "--cluster", "ft", "--hosts", "node[0007,0003]", "--slots", 2, "--json")
    assert answer.code == 0, answer.err
    assert len(answer.json["placement_ids"]) == 1
