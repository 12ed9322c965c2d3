"""A scan with full names of hosts, and a scheduler with short ones: launchers get the scheduler's names."""

from __future__ import annotations

from pathlib import Path

from tests.almanac.conftest import Almanac
from tests.support import paths

FOLDER = paths.DATA / "infiniband" / "full-names"
PROFILE = paths.DATA / "openmpi" / "npb_cg_S_16.tar.gz"


def test_a_job_is_placed_and_its_launchers_file_has_the_jobs_names(almanac: Almanac, tmp_path: Path) -> None:
    almanac.ok("ingest", "--cluster", "hpc", FOLDER / "scan.txt")
    assert "warning" not in almanac.ok("ingest", "--cluster", "hpc", FOLDER / "sacct.txt").err
    almanac.ok("ingest", PROFILE, "--name", "cg")
    file, again = tmp_path / "hosts", tmp_path / "again"
    placed = almanac.ok(
        "map",
        "cg",
        "--job",
        "938045",
        "--slots",
        "8",
        "--steps",
        "10",
        "--export",
        f"slurm-hostfile={file}",
        "--json",
    ).json
    assert set(file.read_text().split()) == {"node2527", "node2528"}
    almanac.ok("export", placed["placement"], f"slurm-hostfile={again}")
    assert again.read_text() == file.read_text()
    named = ("map", "cg", "--cluster", "hpc", "--slots", "8", "--steps", "10")
    almanac.ok(*named, "--hosts", "node2528.cluster.example,node2527")
    refused = almanac(*named, "--hosts", "node[002527-002528]")
    assert "there is no host 'node002527'; closest: node2527.cluster.example" in refused.err
