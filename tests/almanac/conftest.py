"""Running the command line in this process, on a server or on none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from almanac.cli import main
from registry.database.driver import Database
from registry.database.embedded_server import ServerAddress
from tests.support import paths, servers
from tests.support.launchers import Slurm, require, slurm

TREE = paths.DATA / "infiniband" / "fattree2-64-traffic"
SCAN, TABLES = TREE / "ibnetdiscover.txt", TREE / "opensm-lfts.dump"
PROFILE = paths.DATA / "openmpi" / "npb_cg_S_16.tar.gz"
"""A fat tree of 64 hosts with its forwarding tables, and a profile of 16 ranks."""
SLURM = {
    "SLURM_JOB_NODELIST": "node[0001-0004,0033]",
    "SLURM_TASKS_PER_NODE": "4(x3),2(x2)",
    "SLURM_NTASKS": "16",
    "SLURM_JOB_ID": "77",
    "SLURM_CLUSTER_NAME": "ft",
}


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        answer = json.loads(self.err.splitlines()[-1])
        assert set(answer) == {"error", "path", "line", "text", "reason"}
        return dict(answer)


@dataclass(frozen=True)
class Almanac:
    """The command line in this process."""

    captured: pytest.CaptureFixture[str]

    def __call__(self, *arguments: object) -> Outcome:
        """Run a command, whatever its exit code."""
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = self.captured.readouterr()
        return Outcome(int(stop.value.code or 0), captured.out, captured.err)

    def ok(self, *arguments: object) -> Outcome:
        """Run a command that succeeds."""
        outcome = self(*arguments)
        assert outcome.code == 0, outcome.err
        return outcome

    def json(self, *arguments: object) -> Any:
        """Run a command that succeeds; return its JSON document."""
        return self.ok(*arguments, "--json").json

    def refused(self, *arguments: object, code: int = 1) -> str:
        """Run a command that ends with an exit code; return its messages."""
        outcome = self(*arguments)
        assert outcome.code == code, outcome.err
        return outcome.err

    def error(self, *arguments: object, code: int = 1) -> dict[str, Any]:
        """Run a command that ends with an exit code; return its error in JSON."""
        outcome = self(*arguments, "--json")
        assert outcome.code == code, outcome.err
        return outcome.error


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Almanac:
    """The command with a database that nobody serves: for what must not need one."""
    monkeypatch.setenv("ALMANAC_CONFIG", str(_empty_config(tmp_path)))
    monkeypatch.setenv("ALMANAC_DB", "bolt://127.0.0.1:1")
    return Almanac(capsys)


@pytest.fixture
def almanac(
    offline: Almanac, monkeypatch: pytest.MonkeyPatch, server: ServerAddress, database: Database
) -> Almanac:
    """The command on a server, empty."""
    for name, value in servers.variables(server).items():
        monkeypatch.setenv(name, value)
    return offline


@pytest.fixture
def loaded(almanac: Almanac) -> Almanac:
    """The command with cluster `ft` and profile `cg`."""
    almanac.ok("ingest", SCAN, TABLES, "--cluster", "ft")
    almanac.ok("ingest", PROFILE, "--name", "cg")
    return almanac


NO_FILTER = "".join(
    f"function slurm_cli_{name}() return slurm.SUCCESS end\n"
    for name in ("setup_defaults", "pre_submit", "post_submit")
)


@pytest.fixture(scope="session")
def site(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Slurm with eight hosts of four slots, by default the first four, and a filter that does nothing."""
    require("slurmctld", "slurmd", "srun", "sbatch", "salloc")
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "cli_filter.lua").write_text(f"-- Fabric Almanac: none yet\n{NO_FILTER}return slurm.SUCCESS\n")
    more = "CliFilterPlugins=lua\nPartitionName=four Nodes=node[00-03] Default=YES State=UP\n"
    nodes = [f"node{number:02}" for number in range(8)]
    with slurm(folder, "node[00-07]", nodes, 4, more=more) as running:
        yield running


def _empty_config(folder: Path) -> Path:
    path = folder / "config.toml"
    path.write_text("")
    return path
