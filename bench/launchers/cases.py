"""Draw random cases: hosts of a job with their slots, a step of it, and the requested host of each rank."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from almanac.job_environment import JobEnvironment
from almanac.running.launchers import Launcher
from almanac.running.order import Order
from mapping.launchers import write
from mapping.placement.methods.baselines import in_order
from registry.model import Allocation, Fabric

NAMES = tuple(f"node{number:04}" for number in range(1, 9))
MOST = 4
"""Most ranks of a host."""
KINDS = ((1, False), (2, True), (0, True), (4, False), (0, False), (2, False), (1, True), (4, True))
"""Slots per host, 0 if they differ, and whether a step takes a part of the job; cases take them in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A job, and the part of it that is started."""

    number: int
    seed: int
    hosts: tuple[str, ...]
    slots: tuple[int, ...]
    part: int
    ranks: int

    @classmethod
    def draw(cls, number: int, seed: int) -> Case:
        """Return a case by its number and the seed of all."""
        each, is_step = KINDS[number % len(KINDS)]
        random = np.random.default_rng((seed, number))
        hosts = tuple(NAMES[host] for host in random.permutation(len(NAMES)))
        slots = tuple(random.integers(1, MOST + 1, len(hosts)) if not each else [each] * len(hosts))
        part = int(random.integers(2, len(hosts))) if is_step else len(hosts)
        room = int(sum(slots[:part]))
        ranks = int(random.integers(part, room + 1)) if is_step else room
        return cls(
            number=number, seed=seed, hosts=hosts, slots=tuple(map(int, slots)), part=part, ranks=ranks
        )

    def order(self, job: JobEnvironment, launcher: Launcher) -> Order:
        """Return a random order of the ranks on the hosts that the launcher has for them."""
        assert job.ranks is not None
        count = len(NAMES)
        arcs = list(range(count)), [count] * count
        slots = [MOST] * count + [0]
        fabric = Fabric.from_arcs([*NAMES, "s"], arcs[0] + arcs[1], arcs[1] + arcs[0], 1.0, slots=slots)
        placement = in_order(job.ranks, Allocation.of(fabric, job.hosts, job.slots))
        random = np.random.default_rng((self.seed, self.number, 1))
        placement = replace(placement, host_of_rank=random.permutation(placement.host_of_rank))
        return Order(
            ranks=job.ranks,
            text=write(launcher.format, placement, fabric),
            hosts=tuple(fabric.names[host] for host in placement.host_of_rank.tolist()),
            placement=f"case-{self.number}",
            reasons=(),
        )
