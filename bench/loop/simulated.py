"""Run the two programs with SimGrid's SMPI, on the same fabric, if the machine cannot build it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations
from pathlib import Path

from bench.loop.network import Refused
from bench.loop.plan import SPINE, Plan
from bench.loop.programs import SOURCE, TIMEOUT, Output, Program
from mapping.launchers import write
from registry.model import Fabric, Placement

PROGRAMS = ("smpicc", "smpirun")
LATENCY, FLOPS = "50us", "1Gf"
"""Of each cable, and of each host; programs are not slowed by their computation."""
OPTIONS = ("--cfg=smpi/simulate-computation:no", "--log=root.threshold:error")


@dataclass(frozen=True, slots=True)
class SimulatedRunner:
    """Runs programs on a simulated fabric; its files are in a folder."""

    plan: Plan
    folder: Path

    def compile(self) -> None:
        """Compile the programs, and describe the fabric.

        Raises
        ------
        Refused
            SimGrid is not installed.
        """
        for program in PROGRAMS:
            if shutil.which(program) is None:
                raise Refused(f"{program} is not installed")
        (self.folder / "platform.xml").write_text("\n".join(platform(self.plan)) + "\n")
        words = ["smpicc", "-O2", "-o", str(self.folder / "exchange"), str(SOURCE)]
        subprocess.run(words, check=True, capture_output=True)

    def run(self, program: Program, placement: Placement, fabric: Fabric, steps: int) -> Output:
        """Run a program with its ranks on the hosts of a placement, in simulated time.

        Raises
        ------
        RuntimeError
            It fails, or a rank runs elsewhere.
        """
        hosts = self.folder / "hosts"
        hosts.write_text(write("openmpi-hostfile", placement, fabric))
        words = ["smpirun", "-platform", str(self.folder / "platform.xml"), "-hostfile", str(hosts)]
        words += ["-np", str(placement.ranks), *OPTIONS, str(self.folder / "exchange"), program.name]
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
