"""`almanac map` prints the hosts that it chose, and warns if the job has another profile."""

from __future__ import annotations

from pathlib import Path

from tests.almanac.conftest import Almanac

JOBS = (
    "JobID|JobName|User|State|Submit|Start|End|NodeList|NNodes|NTasks\n"
    "7|x|u|RUNNING|2026-01-01T00:00:00|2026-01-01T00:00:00|Unknown|{hosts}|4|16\n"
)


def test_hosts_are_printed_if_there_are_more_than_needed(offline: Almanac, tmp_path: Path) -> None:
    torus, ring = tmp_path / "torus.json", tmp_path / "ring.csv"
    offline.ok("generate", "fabric", "torus", "--sides", "4x4", "--format", "node-link", "-o", torus)
    ring.write_text("src,dst,bytes\n0,1,8\n1,2,8\n2,0,8\n")
    words = ("map", ring, "--fabric", torus, "--steps", 100)
    found = offline.json(*words)
    assert len(found["hosts"]) == 3 < found["host_count"] == 16
    assert "3 of 16 hosts are used: " in offline(*words).out
    assert all(name.rpartition("-")[0] in offline(*words).out for name in found["hosts"])
    full = offline("map", ring, "--fabric", torus, "--steps", 100, "--hosts", ",".join(found["hosts"]))
    assert "hosts are used" not in full.out


def test_another_profile_than_the_one_of_the_job_is_named(loaded: Almanac, tmp_path: Path) -> None:
    hosts = loaded.json(
        "query", "MATCH (d:Device {kind: 'host'}) RETURN d.name AS name ORDER BY name LIMIT 4"
    )
    jobs, other = tmp_path / "jobs.txt", tmp_path / "other.csv"
    jobs.write_text(JOBS.format(hosts=",".join(row["name"] for row in hosts)))
    loaded.ok("ingest", "--cluster", "ft", jobs)
    loaded.ok("job", "attach", 7, "cg")
    other.write_text("# ranks: 16\nsrc,dst,bytes\n0,1,8\n1,2,8\n")
    loaded.ok("ingest", other, "--name", "other")
    words = ("--job", 7, "--slots", 4, "--steps", 100)
    own, wrong = loaded("map", "cg", *words), loaded("map", "other", *words)
    assert "attached" not in own.err
    assert "warning: profile cg is attached to job 7, and other is placed" in wrong.err
    assert loaded.json("map", "other", *words)["job_profile"] == "cg"
    assert loaded.json("map", "cg", *words)["job_profile"] is None
