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

from mapping.placement.methods.baselines import in_order
from registry.model import Allocation, Profile
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.placement_rows import PlacementRecord
from tests.almanac.conftest import NO_FILTER, Almanac
from tests.support import paths
from tests.support.fat_tree import at, fat_tree
from tests.support.launchers import Slurm, executable
from tests.support.waiting import PATIENCE

NODES = ("node00", "node01", "node02", "node03")
IN_ORDER = [host for host in NODES for _ in range(2)]
JOB = ("-n", "8", "--ntasks-per-node=2")
OPT_IN = "--comment=almanac:wrf"
TASK = 'echo "$SLURM_PROCID $SLURMD_NODENAME"'
SRUN = f"srun {{}} sh -c '{TASK}'"


class Filtered:
    def __init__(self, scheduler: Slurm, folder: Path, almanac: Almanac) -> None:
        self.scheduler, self.folder, self.almanac = scheduler, folder, almanac
        self.asked, self.program = folder / "asked", folder / "almanac"
        self.filter = scheduler.folder / "cli_filter.lua"

    def install(self, answer: str, seconds: float = 5.0) -> None:
        self.asked.unlink(missing_ok=True)
        executable(self.program, f'#!/bin/sh\nprintf "%s\\n" "$*" >>{self.asked}\n{answer}\n')
        self.almanac.ok("slurm", "install", "--program", self.program, "--seconds", seconds)

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
            words, env=environment, capture_output=True, text=True, timeout=PATIENCE, cwd=paths.ROOT
        )

    def script(self, text: str) -> str:
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
        done = self.run(["salloc", "-Q", *JOB, "sh", "-c", f"({script}) 2>&1"], ALMANAC_COMMENT=comment)
        assert done.returncode == 0, done.stderr
        assert "almanac" not in done.stderr
        return done.stdout


def hosts_in(output: str) -> list[str]:
    pairs = sorted(line.split() for line in output.splitlines() if line[:1].isdigit())
    assert [int(rank) for rank, _ in pairs] == list(range(len(pairs)))
    return [host for _, host in pairs]


def messages(output: str) -> list[str]:
    return [line for line in output.splitlines() if not (line[:1].isdigit() or "srun: job " in line)]


@pytest.fixture
def filtered(
    site: Slurm, tmp_path: Path, offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Filtered]:
    monkeypatch.setenv("SLURM_CONF", site.environment["SLURM_CONF"])
    script = site.folder / "cli_filter.lua"
    before = script.read_text()
    yield Filtered(site, tmp_path, offline)
    script.write_text(before)


def shuffled(seed: int, hosts: Sequence[str] = IN_ORDER) -> list[str]:
    return list(np.random.default_rng(seed).permutation(hosts).tolist())


def test_a_batch_job_runs_in_the_placed_order_if_it_opts_in(filtered: Filtered) -> None:
    filtered.install(filtered.answer(shuffled(0)))
    other = f"{SRUN.format('')}; echo ${{SLURM_EXPORT_ENV-unset}} ${{ALMANAC_COMMENT-unset}}"
    output = filtered.batch(other, "--comment=almanacs", *JOB)
    assert (hosts_in(output), messages(output)) == (IN_ORDER, ["unset unset"])
    assert not filtered.asked.exists()
    task = 'echo "$SLURM_PROCID $SLURMD_NODENAME"; echo "variables $FIRST$SECOND"'
    script = f"SECOND=b; export SECOND\nsrun sh -c '{task}'"
    output = filtered.batch(script, OPT_IN, "--export=ALL,FIRST=a", *JOB)
    assert (hosts_in(output), messages(output)) == (shuffled(0), ["variables ab"] * 8)
    assert filtered.asked.read_text() == (
        "run --dry-run --no-measure --seconds 5 --name wrf srun --ntasks=8 --nodes=4 --ntasks-per-node=2 sh\n"
    )
    done = filtered.run(["sbatch", "--test-only", "--export=NONE", OPT_IN, filtered.script("true")])
    assert done.returncode == 0
    assert [line for line in messages(done.stderr) if line.startswith("almanac")] == [
        "almanac: not placed: with --export=NONE the script itself must export ALMANAC_COMMENT=almanac:wrf"
    ]


def test_each_step_of_a_job_is_placed(filtered: Filtered) -> None:
    orders = [shuffled(seed) for seed in range(3)]
    filtered.install(filtered.answer(*orders))
    steps = filtered.session(f"for step in 1 2 3; do {SRUN.format('')}; echo next; done")
    assert [hosts_in(output) for output in steps.split("next\n")[:-1]] == orders


def test_the_order_stays_as_given_without_opting_in(filtered: Filtered) -> None:
    filtered.install(filtered.answer(shuffled(2)))
    for comment in ("", "other", "almanacs", "almanac:", "almanac:-x"):
        output = filtered.session(SRUN.format(f"--comment='{comment}'" if comment else ""), comment="")
        assert (hosts_in(output), messages(output)) == (IN_ORDER, []), comment
    other = filtered.session(SRUN.format("--comment=no"))
    assert (hosts_in(other), messages(other)) == (IN_ORDER, [])
    assert not filtered.asked.exists()


def test_a_step_takes_a_part_of_its_job_in_order_unless_it_opts_in_itself(filtered: Filtered) -> None:
    order = ["node01", "node00", "node00", "node01"]
    filtered.install(filtered.answer(order))
    for options in ("-n 4", "-N 2 -n 4"):
        output = filtered.session(SRUN.format(options))
        assert hosts_in(output) != order
        assert [line for line in messages(output) if line.startswith("almanac: ")] == [
            "almanac: not placed: the step takes a part of its job; add --comment=almanac to srun to place it"
        ]
    assert not filtered.asked.exists()
    assert hosts_in(filtered.session(SRUN.format(f"{OPT_IN} -n 4"))) == order


def test_an_srun_with_its_own_number_of_hosts_runs_as_given(filtered: Filtered) -> None:
    """Slurm 24.11 ends with an error if an order is given as well; 22.05 does not."""
    filtered.install(filtered.answer(shuffled(10)))
    for option in ("-N 4", "-N4", "--nodes 4", "--nodes=4"):
        output = filtered.session(SRUN.format(option))
        assert hosts_in(output) == IN_ORDER
        reason = "leave out --nodes of srun: Slurm takes no order with it"
        assert messages(output) == [f"almanac: not placed: {reason}"], option
    assert hosts_in(filtered.session(f"srun sh -c '{TASK}' -N 4 ''")) == shuffled(10)


def test_what_cannot_be_placed_says_how_it_can_be(filtered: Filtered) -> None:
    filtered.install(filtered.answer(shuffled(3)))
    done = filtered.run(["salloc", "-Q", OPT_IN, *JOB, "srun", "sh", "-c", TASK])
    hint = "almanac: to place srun in this allocation: export ALMANAC_COMMENT=almanac:wrf"
    assert (hosts_in(done.stdout), messages(done.stderr)) == (IN_ORDER, [hint])
    done = filtered.run(["srun", OPT_IN, *JOB, "sh", "-c", TASK])
    hint = "almanac: not placed: srun runs outside of a job: its hosts are not known yet"
    assert (hosts_in(done.stdout), messages(done.stderr)) == (IN_ORDER, [hint])
    assert hosts_in(filtered.session(SRUN.format(""), comment="almanac")) == shuffled(3)
    assert "--name" not in filtered.asked.read_text()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        *(("exec no-such-program", "no-such-program: not found"), ("sleep 30", "no answer within 5.1 s")),
        ("echo not placed: the database does not answer >&2; echo srun sh", "the database does not answer"),
        *(("exit 1", "almanac found no order"), ("kill -SEGV $$", "Segmentation fault")),
        ("echo SLURM_HOSTFILE=/no/such/file srun --ntasks=8 sh", "SLURM_HOSTFILE=/no/such/file"),
        *(("echo SLURM_HOSTFILE={short} srun --ntasks=8 sh", ""), ("", "timeout: ")),
    ],
    ids=["missing", "slow", "no database", "failed", "crashed", "no file", "short file", "not installed"],
)
def test_whatever_fails_the_job_runs_as_given(filtered: Filtered, answer: str, reason: str) -> None:
    short = filtered.folder / "short"
    short.write_text("node00\n")
    filtered.install(answer.format(short=short), seconds=0.1)
    if not answer:
        filtered.program.unlink()
    output = filtered.session(SRUN.format(""))
    assert hosts_in(output) == IN_ORDER
    (line,) = messages(output)
    assert "{short}" in answer or line.startswith("almanac: not placed: ")
    assert reason in line
    assert answer or str(filtered.program) in line


def test_an_order_that_is_given_already_is_not_changed(filtered: Filtered) -> None:
    """So `almanac run srun` is not placed twice."""
    filtered.install(filtered.answer(shuffled(6)))
    mine = filtered.folder / "mine"
    mine.write_text("\n".join(shuffled(7)))
    output = filtered.session(f"export SLURM_HOSTFILE={mine}\n{SRUN.format('-m arbitrary')}")
    assert (hosts_in(output), messages(output)) == (shuffled(7), [])
    assert not filtered.asked.exists()


def test_a_script_of_the_site_calls_this_one(filtered: Filtered) -> None:
    filtered.install(filtered.answer(shuffled(8)))
    (filtered.folder / "almanac.lua").write_text(filtered.filter.read_text())
    own = NO_FILTER.replace("pre_submit() ", 'pre_submit() io.stderr:write("of the site\\n") ')
    filtered.filter.write_text(f'{own}dofile("{filtered.folder}/almanac.lua")\nreturn slurm.SUCCESS\n')
    output = filtered.session(SRUN.format(""))
    assert (hosts_in(output), messages(output)) == (shuffled(8), ["of the site"])


def test_the_real_program_places(
    filtered: Filtered, almanac: Almanac, registry: Registry, tmp_path: Path
) -> None:
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
    assert (hosts_in(output), messages(output)) == ([str(snapshot.fabric.names[host]) for host in order], [])


def test_others_scripts_are_kept(offline: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, conf = tmp_path / "cli_filter.lua", tmp_path / "slurm.conf"
    monkeypatch.setenv("SLURM_CONF", str(conf))
    conf.write_text("CliFilterPlugins=user_defaults # ours\n")
    script.write_text("-- ours\n")
    install = ("slurm", "install", "--program")
    assert "is a script of your own" in offline.refused(*install, "/opt/almanac")
    assert script.read_text() == "-- ours\n"
    beside = tmp_path / "almanac.lua"
    done = offline(*install, '/opt/"al"', "--seconds", "2", "--to", beside)
    assert f'dofile("{beside}")' in done.err
    assert 'local ALMANAC, SECONDS = "/opt/\\"al\\"", 2\n' in beside.read_text()
    script.unlink()
    tried = offline(*install, "/opt/almanac", "--dry-run")
    assert not script.exists()
    assert f"put CliFilterPlugins=user_defaults,lua into {conf}" in tried.err
    offline.ok(*install, "/opt/almanac")
    assert script.read_text() == tried.out
    conf.write_text("clifilterplugins=lua\n")
    assert "has CliFilterPlugins=lua already" in offline(*install, "/opt/other").err
    assert '"/opt/other"' in script.read_text()
