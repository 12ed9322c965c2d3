"""The script of `almanac slurm install` in a real Slurm: jobs that opt in are placed, others unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mapping.placement.strategies.baselines import in_order
from registry.database.driver import Database
from registry.model import Allocation, Profile
from registry.model.intake import Intake
from registry.records.placements.records import PlacementRecord
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support import paths
from tests.support.fat_tree import at, fat_tree
from tests.support.launchers import Slurm, require, slurm

NODES = ("node00", "node01", "node02", "node03")
IN_ORDER = [host for host in NODES for _ in range(2)]
JOB = ("-n", "8", "--ntasks-per-node=2")
OPT_IN = "--comment=almanac:wrf"
TASK = 'echo "$SLURM_PROCID $SLURMD_NODENAME"'
SRUN = f"srun {{}} sh -c '{TASK}'"


class Filtered:
    """A Slurm whose srun asks a pretended almanac."""

    def __init__(self, scheduler: Slurm, folder: Path) -> None:
        self.scheduler, self.folder = scheduler, folder
        self.asked, self.program = folder / "asked", folder / "almanac"
        self.conf = Path(scheduler.environment["SLURM_CONF"])

    def install(self, answer: str, seconds: float = 5.0) -> None:
        """Install the script with a program that runs some lines of sh."""
        self.asked.unlink(missing_ok=True)
        self.program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{self.asked}\n{answer}\n')
        self.program.chmod(0o755)
        words = ["slurm", "install", "--program", str(self.program), "--seconds", str(seconds)]
        done = self.run([sys.executable, "-c", "from almanac.cli import main; main()", *words])
        assert done.returncode == 0, done.stderr

    def answer(self, *orders: Sequence[str]) -> str:
        """Return lines of sh that answer as `almanac run --dry-run` does, each time with the next order."""
        for number, order in enumerate(orders, start=1):
            (self.folder / f"my hosts {number}").write_text("".join(f"{host}\n" for host in order))
        file = f"SLURM_HOSTFILE='{self.folder}/my hosts $(wc -l <{self.asked})'"
        line = f"{file} srun --ntasks={len(orders[0])} --distribution=arbitrary sh"
        return f'echo a reason >&2; echo "{line}"'

    def run(self, words: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **self.scheduler.environment, **variables}
        return subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=60, cwd=paths.ROOT, check=False
        )

    def script(self, text: str) -> str:
        """Write a batch script; return its path."""
        path = self.folder / "job.sh"
        path.write_text(f"#!/bin/sh\n{text}\n")
        return str(path)

    def batch(self, script: str, *options: str) -> str:
        """Run a batch script; return its output, in which the lines of tasks come in any order."""
        output = self.folder / "output"
        done = self.run(["sbatch", "-W", "-o", str(output), *options, self.script(script)])
        assert done.returncode == 0, done.stderr + output.read_text()
        return output.read_text()

    def session(self, script: str, comment: str = "almanac:wrf") -> str:
        """Run a script in an allocation that opted in; return its output."""
        done = self.run(["salloc", "-Q", *JOB, "sh", "-c", f"({script}) 2>&1"], ALMANAC_COMMENT=comment)
        assert done.returncode == 0, done.stderr
        assert "almanac" not in done.stderr
        return done.stdout


def hosts_in(output: str) -> list[str]:
    """Return the host of each rank."""
    pairs = sorted(line.split() for line in output.splitlines() if line[:1].isdigit())
    assert [int(rank) for rank, _ in pairs] == list(range(len(pairs)))
    return [host for _, host in pairs]


def said(output: str) -> list[str]:
    return [line for line in output.splitlines() if not line[:1].isdigit()]


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filtered]:
    require("slurmctld", "slurmd", "srun", "sbatch", "salloc")
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "cli_filter.lua").write_text("-- Fabric Almanac: none yet\n")
    nothing = "\n".join(
        f"function slurm_cli_{name}() return slurm.SUCCESS end"
        for name in ("setup_defaults", "pre_submit", "post_submit")
    )
    with (folder / "cli_filter.lua").open("a") as file:
        file.write(f"{nothing}\nreturn slurm.SUCCESS\n")
    with slurm(folder, "node[00-03]", NODES, 2, more="CliFilterPlugins=lua\n") as scheduler:
        yield Filtered(scheduler, folder)


def shuffled(seed: int, hosts: Sequence[str] = IN_ORDER) -> list[str]:
    return list(np.random.default_rng(seed).permutation(hosts).tolist())


def test_a_batch_job_that_opts_in_runs_in_the_placed_order(filtered: Filtered) -> None:
    filtered.install(filtered.answer(shuffled(0)))
    task = 'echo "$SLURM_PROCID $SLURMD_NODENAME"; echo "variables $FIRST$SECOND"'
    script = f"SECOND=b; export SECOND\nsrun sh -c '{task}'"
    output = filtered.batch(script, OPT_IN, "--export=ALL,FIRST=a", *JOB)
    assert hosts_in(output) == shuffled(0)
    assert said(output) == ["variables ab"] * 8
    assert filtered.asked.read_text() == (
        "run --dry-run --no-measure --seconds 5 --name wrf srun --ntasks=8 --nodes=4 --ntasks-per-node=2 sh\n"
    )


def test_a_batch_job_with_another_comment_is_not_changed(filtered: Filtered) -> None:
    filtered.install(filtered.answer(shuffled(1)))
    script = f"{SRUN.format('')}; echo ${{SLURM_EXPORT_ENV-unset}} ${{ALMANAC_COMMENT-unset}}"
    output = filtered.batch(script, "--comment=almanacs", *JOB)
    assert (hosts_in(output), said(output)) == (IN_ORDER, ["unset unset"])
    assert not filtered.asked.exists()


def test_each_step_of_a_job_is_placed(filtered: Filtered) -> None:
    orders = [shuffled(seed) for seed in range(10)]
    filtered.install(filtered.answer(*orders))
    steps = filtered.session(f"for step in 1 2 3 4 5 6 7 8 9 10; do {SRUN.format('')}; echo next; done")
    assert [hosts_in(output) for output in steps.split("next\n")[:-1]] == orders


@pytest.mark.parametrize("comment", ["", "other", "almanacs", "almanac:", "almanac:-x"])
def test_the_order_stays_as_given_without_opting_in(filtered: Filtered, comment: str) -> None:
    filtered.install(filtered.answer(shuffled(2)))
    output = filtered.session(SRUN.format(f"--comment='{comment}'" if comment else ""), comment="")
    assert (hosts_in(output), said(output)) == (IN_ORDER, [])
    other = filtered.session(SRUN.format("--comment=no"))
    assert (hosts_in(other), said(other)) == (IN_ORDER, [])
    assert not filtered.asked.exists()


def test_a_batch_job_without_an_environment_is_told_so(filtered: Filtered) -> None:
    filtered.install("")
    done = filtered.run(["sbatch", "--test-only", "--export=NONE", OPT_IN, filtered.script("true")])
    assert done.returncode == 0
    assert [line for line in said(done.stderr) if line.startswith("almanac")] == [
        "almanac: not placed: with --export=NONE the script itself must export ALMANAC_COMMENT=almanac:wrf"
    ]


def test_a_step_takes_a_part_of_its_job_in_order_unless_it_opts_in_itself(filtered: Filtered) -> None:
    order = ["node01", "node00", "node00", "node01"]
    filtered.install(filtered.answer(order))
    for options in ("-n 4", "-N 2 -n 4"):
        output = filtered.session(SRUN.format(options))
        assert hosts_in(output) != order
        assert [line for line in said(output) if line.startswith("almanac: ")] == [
            "almanac: not placed: the step takes a part of its job; add --comment=almanac to srun to place it"
        ]
    assert not filtered.asked.exists()
    assert hosts_in(filtered.session(SRUN.format(f"{OPT_IN} -n 4"))) == order


@pytest.mark.parametrize("option", ["-N 4", "-N4", "--nodes 4", "--nodes=4"])
def test_an_srun_with_its_own_number_of_hosts_runs_as_given(filtered: Filtered, option: str) -> None:
    """Slurm 24.11 ends with an error if an order is given as well; 22.05 does not."""
    filtered.install(filtered.answer(shuffled(10)))
    output = filtered.session(SRUN.format(option))
    assert hosts_in(output) == IN_ORDER
    assert said(output) == ["almanac: not placed: leave out --nodes of srun: Slurm takes no order with it"]
    assert hosts_in(filtered.session("srun sh -c '" + TASK + f"' {option} ''")) == shuffled(10)


def test_a_session_is_told_how_to_opt_in(filtered: Filtered) -> None:
    filtered.install(filtered.answer(shuffled(3)))
    done = filtered.run(["salloc", "-Q", OPT_IN, *JOB, "srun", "sh", "-c", TASK])
    assert (hosts_in(done.stdout), said(done.stderr)) == (
        IN_ORDER,
        ["almanac: to place srun in this allocation: export ALMANAC_COMMENT=almanac:wrf"],
    )
    assert hosts_in(filtered.session(SRUN.format(""), comment="almanac")) == shuffled(3)
    assert "--name" not in filtered.asked.read_text()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("exec no-such-program", "no-such-program: not found"),
        ("sleep 30", "no answer within 5.1 s"),
        ("echo not placed: the database does not answer >&2; echo srun sh", "the database does not answer"),
        ("exit 1", "almanac found no order"),
        ("kill -SEGV $$", "Segmentation fault"),
        ("echo SLURM_HOSTFILE=/no/such/file srun --ntasks=8 sh", "SLURM_HOSTFILE=/no/such/file"),
    ],
    ids=["missing", "slow", "no database", "failed", "crashed", "no file"],
)
def test_whatever_fails_the_job_runs_as_given(filtered: Filtered, answer: str, reason: str) -> None:
    filtered.install(answer, seconds=0.1)
    output = filtered.session(SRUN.format(""))
    assert hosts_in(output) == IN_ORDER
    (line,) = said(output)
    assert line.startswith("almanac: not placed: ")
    assert reason in line


def test_an_almanac_that_is_not_installed_leaves_the_job_as_given(filtered: Filtered) -> None:
    filtered.install("")
    filtered.program.unlink()
    output = filtered.session(SRUN.format(""))
    assert hosts_in(output) == IN_ORDER
    (line,) = said(output)
    assert line.startswith("almanac: not placed: timeout: ")
    assert str(filtered.program) in line


def test_a_file_of_another_length_leaves_the_job_as_given(filtered: Filtered) -> None:
    filtered.install(filtered.answer(shuffled(4)))
    (filtered.folder / "my hosts 1").write_text("node00\n")
    output = filtered.session(SRUN.format(""))
    assert hosts_in(output) == IN_ORDER
    assert len(said(output)) == 1


def test_an_srun_without_a_job_says_that_it_is_not_placed(filtered: Filtered) -> None:
    filtered.install(filtered.answer(shuffled(5)))
    done = filtered.run(["srun", OPT_IN, *JOB, "sh", "-c", TASK])
    assert hosts_in(done.stdout) == IN_ORDER
    assert said(done.stderr) == [
        "almanac: not placed: srun runs outside of a job: its hosts are not known yet"
    ]


def test_an_order_that_is_given_already_is_not_changed(filtered: Filtered) -> None:
    """So `almanac run srun` is not placed twice."""
    filtered.install(filtered.answer(shuffled(6)))
    mine = filtered.folder / "mine"
    mine.write_text("\n".join(shuffled(7)))
    script = f"export SLURM_HOSTFILE={mine}\n{SRUN.format('-m arbitrary')}"
    output = filtered.session(script)
    assert (hosts_in(output), said(output)) == (shuffled(7), [])
    assert not filtered.asked.exists()


def test_a_script_of_the_site_calls_this_one(filtered: Filtered) -> None:
    filtered.install(filtered.answer(shuffled(8)))
    script = filtered.conf.parent / "cli_filter.lua"
    script.rename(filtered.folder / "almanac.lua")
    own = """
function slurm_cli_setup_defaults() return slurm.SUCCESS end
function slurm_cli_pre_submit(options) io.stderr:write("of the site\\n") return slurm.SUCCESS end
function slurm_cli_post_submit() return slurm.SUCCESS end
"""
    script.write_text(f'{own}dofile("{filtered.folder}/almanac.lua")\nreturn slurm.SUCCESS\n')
    try:
        output = filtered.session(SRUN.format(""))
    finally:
        script.unlink()
    assert (hosts_in(output), said(output)) == (shuffled(8), ["of the site"])


def test_the_real_program_places_a_job(
    filtered: Filtered,
    embedded: Almanac,
    embedded_database: Database,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    registry = Registry(embedded_database)
    ring = Profile.from_edges(
        range(8), [1, 2, 3, 4, 5, 6, 7, 0], [8e6] * 8, ranks=8, name="ring", application="wrf"
    )
    registry.save(Intake(cluster="ft", observed_at=at(0), fabric=fat_tree(), profiles=(ring,)))
    snapshot = registry.fabrics.read("ft")
    straight = in_order(8, Allocation.of(snapshot.fabric, NODES, 2))
    order = np.random.default_rng(9).permutation(straight.host_of_rank)
    registry.placements.save(
        PlacementRecord(
            cluster="ft",
            content=snapshot.id,
            profile=registry.profiles.read("ring").id,
            placement=replace(straight, host_of_rank=order, strategy="given"),
        )
    )
    main = f'exec {sys.executable} -c "from almanac.cli import main; main()" "$@"'
    filtered.install(f"cd {paths.ROOT}\nexport ALMANAC_HOME={tmp_path}\n{main}", seconds=30)
    output = filtered.session(SRUN.format(""))
    assert hosts_in(output) == [str(snapshot.fabric.names[host]) for host in order]
    assert said(output) == []


def test_a_script_of_others_is_not_overwritten(
    offline: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, conf = tmp_path / "cli_filter.lua", tmp_path / "slurm.conf"
    monkeypatch.setenv("SLURM_CONF", str(conf))
    conf.write_text("CliFilterPlugins=user_defaults # ours\n")
    script.write_text("-- ours\n")
    refused = offline("slurm", "install", "--program", "/opt/almanac")
    assert refused.code == 1
    assert "is a script of your own" in refused.err
    assert script.read_text() == "-- ours\n"
    beside = tmp_path / "almanac.lua"
    done = offline("slurm", "install", "--program", '/opt/"al"', "--seconds", "2", "--to", beside)
    assert f'dofile("{beside}")' in done.err
    assert 'local ALMANAC, SECONDS = "/opt/\\"al\\"", 2\n' in beside.read_text()
    script.unlink()
    tried = offline("slurm", "install", "--program", "/opt/almanac", "--dry-run")
    assert not script.exists()
    assert f"put CliFilterPlugins=user_defaults,lua into {conf}" in tried.err
    assert offline("slurm", "install", "--program", "/opt/almanac").code == 0
    assert script.read_text() == tried.out
    conf.write_text("clifilterplugins=lua\n")
    again = offline("slurm", "install", "--program", "/opt/other")
    assert "has CliFilterPlugins=lua already" in again.err
    assert '"/opt/other"' in script.read_text()
