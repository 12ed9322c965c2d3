"""Run the two programs: on the network by Open MPI, or in simulated time by SimGrid's SMPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np

from bench.loop.network import CONTROL, DATA, LAUNCHER, SPINE, Plan, Refused
from ingest.formats.profiles.openmpi_monitoring import OPENMPI_MONITORING
from ingest.options import Options
from ingest.reading.source import read_paths
from mapping.launchers import write
from registry.model import Fabric, Placement, Profile

SOURCE = Path(__file__).with_name("exchange.c")
TIMEOUT = 300.0
AGENT = """#!/bin/sh
# Takes ssh's place: runs the command in the namespace of a host, under the host's name.
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec {prefix}$host unshare --uts sh -c "hostname $host; $*"
"""
OPTIONS = (
    "--mca plm rsh --mca plm_rsh_no_tree_spawn 1 --mca pml ^cm,ucx --mca btl tcp,self "
    f"--mca btl_tcp_if_include {DATA}.0/24 --mca oob_tcp_if_include {CONTROL}.0/24 "
    "--mca btl_tcp_sndbuf 131072 --mca btl_tcp_rcvbuf 131072 "
    "--mca mpi_yield_when_idle 1 --bind-to none --allow-run-as-root"
)
_STEP = re.compile(r"step \d+ (\d+\.\d+)")
_RANK = re.compile(r"rank (\d+) host (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of ``exchange.c``."""

    name: str
    parts: int
    bytes: int

    def profile(self, ranks: int) -> Profile:
        """Return what a step sends, by formula."""
        rank = np.arange(ranks)
        one, other = (axis.ravel() for axis in np.meshgrid(rank, rank, indexing="ij"))
        if self.name == "halo":
            columns = ranks // self.parts
            far = abs(one // columns - other // columns) + abs(one % columns - other % columns)
            talks = far == 1
        else:
            talks = (one % self.parts == other % self.parts) & (one != other)
        return Profile.from_edges(
            one[talks], other[talks], np.full(int(talks.sum()), self.bytes), ranks=ranks
        )


@dataclass(frozen=True, slots=True)
class Output:
    """What a run printed: the host of each rank, and the seconds of each step."""

    hosts: tuple[str, ...]
    seconds: tuple[float, ...]

    @classmethod
    def of(cls, text: str) -> Output:
        """Return the output of a run; raises ``ValueError`` if it is not whole."""
        ranks = {int(one[1]): one[2] for one in _RANK.finditer(text)}
        seconds = tuple(float(one[1]) for one in _STEP.finditer(text))
        if not seconds or sorted(ranks) != list(range(len(ranks))):
            raise ValueError(f"the program printed {text[-500:]!r}")
        return cls(tuple(ranks[rank] for rank in sorted(ranks)), seconds)

    @classmethod
    def on(cls, placement: Placement, fabric: Fabric, text: str) -> Output:
        """Return the output of a run; raises ``RuntimeError`` if a rank ran elsewhere than placed."""
        output = cls.of(text)
        if output.hosts != tuple(fabric.names[host] for host in placement.host_of_rank.tolist()):
            raise RuntimeError(f"the ranks run on {', '.join(output.hosts)}")
        return output


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs programs on a fabric that is built; its files are in a folder."""

    plan: Plan
    folder: Path

    def compile(self) -> None:
        """Compile the programs, and write the agent that enters a namespace."""
        program = str(self.folder / "exchange")
        subprocess.run(["mpicc.openmpi", "-O2", "-o", program, str(SOURCE)], check=True)
        agent = self.folder / "agent"
        agent.write_text(AGENT.format(prefix=self.plan.prefix))
        agent.chmod(0o755)

    def run(
        self,
        program: Program,
        placement: Placement,
        fabric: Fabric,
        steps: int,
        options: Sequence[str] = (),
    ) -> Output:
        """Run a program with its ranks on the hosts of a placement.

        Raises:
            RuntimeError: It fails, or a rank runs elsewhere.
        """
        hosts = self.folder / "hosts"
        hosts.write_text(write("openmpi-hostfile", placement, fabric))
        entered = ["ip", "netns", "exec", self.plan.prefix + LAUNCHER, "mpirun.openmpi", *OPTIONS.split()]
        entered += ["--mca", "plm_rsh_agent", str(self.folder / "agent"), *options]
        entered += ["--hostfile", str(hosts), "--map-by", "seq", "-n", str(placement.ranks)]
        entered += [str(self.folder / "exchange"), program.name]
        words = [*entered, str(program.parts), str(program.bytes), str(steps)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode:
            raise RuntimeError(f"mpirun ended with {done.returncode}: {done.stderr[-2000:]}")
        return Output.on(placement, fabric, done.stdout)

    def record(self, program: Program, placement: Placement, fabric: Fabric, steps: int) -> Profile:
        """Return what a step sends, as Open MPI counts it over all steps, the first one included."""
        folder = self.folder / f"recorded-{program.name}"
        folder.mkdir()
        variables = {"enable": "2", "enable_output": "3", "filename": str(folder / "rank")}
        options = [
            word for name, value in variables.items() for word in ("--mca", f"pml_monitoring_{name}", value)
        ]
        self.run(program, placement, fabric, steps, options)
        (files,) = read_paths([folder])
        found = OPENMPI_MONITORING.parse(files.files, Options()).profiles[0]
        return Profile.from_edges(found.sender, found.partner, found.bytes / (steps + 1), ranks=found.ranks)


PROGRAMS = ("smpicc", "smpirun")
LATENCY, FLOPS = "50us", "1Gf"
"""Of each cable, and of each host; programs are not slowed by their computation."""
OPTIONS_SIMULATED = ("--cfg=smpi/simulate-computation:no", "--log=root.threshold:error")


@dataclass(frozen=True, slots=True)
class SimulatedRunner:
    """Runs programs on a simulated fabric; its files are in a folder."""

    plan: Plan
    folder: Path

    def compile(self) -> None:
        """Compile the programs, and describe the fabric.

        Raises:
            Refused: SimGrid is not installed.
        """
        for program in PROGRAMS:
            if shutil.which(program) is None:
                raise Refused(f"{program} is not installed")
        (self.folder / "platform.xml").write_text("\n".join(platform(self.plan)) + "\n")
        words = ["smpicc", "-O2", "-o", str(self.folder / "exchange"), str(SOURCE)]
        subprocess.run(words, check=True, capture_output=True)

    def run(self, program: Program, placement: Placement, fabric: Fabric, steps: int) -> Output:
        """Run a program with its ranks on the hosts of a placement, in simulated time.

        Raises:
            RuntimeError: It fails, or a rank runs elsewhere.
        """
        hosts = self.folder / "hosts"
        hosts.write_text(write("openmpi-hostfile", placement, fabric))
        words = ["smpirun", "-platform", str(self.folder / "platform.xml"), "-hostfile", str(hosts)]
        words += [
            "-np",
            str(placement.ranks),
            *OPTIONS_SIMULATED,
            str(self.folder / "exchange"),
            program.name,
        ]
        words += [str(program.parts), str(program.bytes), str(steps)]
        environment = {**os.environ, "HOME": str(self.folder)}  # smpirun needs one that can be written
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, env=environment)
        if done.returncode:
            raise RuntimeError(f"smpirun ended with {done.returncode}: {done.stderr[-2000:]}")
        return Output.on(placement, fabric, done.stdout)


def platform(plan: Plan) -> Iterator[str]:
    """Yield the lines of SimGrid's description of a fabric: a route for each pair of hosts."""
    yield '<?xml version="1.0"?>'
    yield '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    yield '<platform version="4.1"><zone id="fabric" routing="Full">'
    for host in plan.hosts:
        yield f'<host id="{host}" speed="{FLOPS}"/>'
    for cable in plan.cables():
        name = f"{cable.source}-{cable.target}"
        yield f'<link id="{name}" bandwidth="{plan.bits / 8:g}Bps" latency="{LATENCY}"/>'
    for one, other in permutations(range(len(plan.hosts)), 2):
        ends = plan.hosts[one], plan.hosts[other]
        between = _between(plan.leaf(one), plan.leaf(other))
        passed = [ends[0], *between, ends[1]]
        links = "".join(f'<link_ctn id="{a}-{b}"/>' for a, b in pairwise(passed))
        yield f'<route src="{ends[0]}" dst="{ends[1]}" symmetrical="NO">{links}</route>'
    yield "</zone></platform>"


def _between(one: int, other: int) -> list[str]:
    return [f"leaf{one}"] if one == other else [f"leaf{one}", SPINE, f"leaf{other}"]


def version() -> str:
    """Return the name and version of SimGrid."""
    done = subprocess.run(["smpirun", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]
