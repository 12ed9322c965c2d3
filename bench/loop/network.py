"""A fabric of network namespaces with limited cables: its plan, how it is built, counted and removed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from registry.model import Fabric

DATA, CONTROL = "10.210.0", "10.211.0"
"""Subnets of the programs' messages and of the launcher; both are known inside the namespaces only."""
SWITCHES, LAUNCHER, SPINE = "switches", "launcher", "spine"
BURST, LIMIT = "16kb", "8mb"
"""How much may pass at once, and room for what waits: more than the TCP buffers of all flows hold, so that
nothing is dropped."""


@dataclass(frozen=True, slots=True)
class Cable:
    """A direction of a cable."""

    namespace: str
    device: str
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A two-level fabric: leaf switches with hosts, and one spine."""

    leaves: int = 4
    per_leaf: int = 4
    bits: int = 50_000_000
    prefix: str = "almanac-loop-"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts, leaf by leaf."""
        return tuple(f"h{number:02}" for number in range(1, self.leaves * self.per_leaf + 1))

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Full names of all namespaces."""
        return tuple(self.prefix + name for name in (SWITCHES, LAUNCHER, *self.hosts))

    def leaf(self, host: int) -> int:
        """Return the number of a host's leaf, from 1."""
        return host // self.per_leaf + 1

    def cables(self) -> list[Cable]:
        """Return both directions of every cable."""
        found = []
        for number, host in enumerate(self.hosts):
            leaf = f"leaf{self.leaf(number)}"
            found += [Cable(host, "fabric", host, leaf), Cable(SWITCHES, host, leaf, host)]
        for number in range(1, self.leaves + 1):
            leaf = f"leaf{number}"
            found += [Cable(SWITCHES, f"up{number}", leaf, SPINE)]
            found += [Cable(SWITCHES, f"down{number}", SPINE, leaf)]
        return found

    def fabric(self) -> Fabric:
        """Return the fabric with capacities in bytes/s, headers of packets included."""
        cables = self.cables()
        names = [*self.hosts, *(f"leaf{number}" for number in range(1, self.leaves + 1)), SPINE]
        index = {name: vertex for vertex, name in enumerate(names)}
        return Fabric.from_arcs(
            names,
            [index[one.source] for one in cables],
            [index[one.target] for one in cables],
            self.bits / 8,
            slots=np.arange(len(names)) < len(self.hosts),
        )

    def commands(self) -> Iterator[list[str]]:
        """Yield the commands that build it, all inside the namespaces."""
        for name in self.namespaces:
            yield ["ip", "netns", "add", name]
            yield self._ip(name, "link set lo up")
        switches, launcher = self.namespaces[:2]
        for bridge in (SPINE, *(f"leaf{number}" for number in range(1, self.leaves + 1))):
            yield from self._bridge(switches, bridge)
        yield from self._bridge(launcher, "control")
        yield self._ip(launcher, f"address add {CONTROL}.250/24 dev control")
        for number in range(1, self.leaves + 1):
            yield self._ip(switches, f"link add up{number} type veth peer name down{number}")
            yield from self._port(switches, f"up{number}", f"leaf{number}")
            yield from self._port(switches, f"down{number}", SPINE)
        for number, host in enumerate(self.hosts):
            own = self.prefix + host
            leaf = f"leaf{self.leaf(number)}"
            for bridging, bridge, device, subnet in (
                (switches, leaf, "fabric", DATA),
                (launcher, "control", "control", CONTROL),
            ):
                yield self._ip(bridging, f"link add {host} type veth peer name {device} netns {own}")
                yield from self._port(bridging, host, bridge)
                yield self._ip(own, f"address add {subnet}.{number + 1}/24 dev {device}")
                yield self._ip(own, f"link set {device} up")
        for cable in self.cables():
            limited = f"qdisc add dev {cable.device} root tbf rate {self.bits}bit burst {BURST} limit {LIMIT}"
            yield ["tc", "-n", self.prefix + cable.namespace, *limited.split()]

    def _bridge(self, namespace: str, name: str) -> Iterator[list[str]]:
        yield self._ip(namespace, f"link add {name} type bridge stp_state 0 mcast_snooping 0")
        yield self._ip(namespace, f"link set {name} up")

    def _port(self, namespace: str, device: str, bridge: str) -> Iterator[list[str]]:
        yield self._ip(namespace, f"link set {device} master {bridge}")
        yield self._ip(namespace, f"link set {device} up")

    @staticmethod
    def _ip(namespace: str, words: str) -> list[str]:
        return ["ip", "-n", namespace, *words.split()]


PROGRAMS = ("ip", "tc", "unshare", "mpirun.openmpi", "mpicc.openmpi")


class Refused(Exception):
    """This machine cannot build the fabric; the text says why."""


@contextlib.contextmanager
def built(plan: Plan) -> Iterator[None]:
    """Build a fabric, and remove it at the end, also after an error or a signal.

    Raises:
        Refused: A program is missing, the user is not root, or the kernel refuses.
    """
    for program in PROGRAMS:
        if shutil.which(program) is None:
            raise Refused(f"{program} is not installed")
    if os.geteuid() != 0:
        raise Refused("network namespaces need root")
    if left := existing(plan):
        raise Refused(f"{left[0]} exists: another run, or a killed one (remove it with --remove)")
    try:
        for command in plan.commands():
            _run(command)
        yield
    finally:
        remove(plan)


def existing(plan: Plan) -> list[str]:
    """Return the namespaces of a plan's prefix that exist."""
    names = [line.split()[0] for line in _run(["ip", "netns", "list"]).splitlines() if line.strip()]
    return [name for name in names if name.startswith(plan.prefix)]


def remove(plan: Plan) -> None:
    """End what runs in the namespaces of a plan's prefix, and remove them."""
    for name in existing(plan):
        with contextlib.suppress(Refused):
            for process in _run(["ip", "netns", "pids", name]).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
        with contextlib.suppress(Refused):
            _run(["ip", "netns", "delete", name])


def counted(plan: Plan) -> tuple[dict[tuple[str, str], int], int]:
    """Return the bytes sent by each port of a switch, by the ends of its cable, and the dropped packets."""
    text = _run(["tc", "-n", plan.prefix + SWITCHES, "-statistics", "-json", "qdisc", "show"])
    found = {one["dev"]: one for one in json.loads(text) if one["kind"] == "tbf"}
    sent = {
        (one.source, one.target): int(found[one.device]["bytes"])
        for one in plan.cables()
        if one.namespace == SWITCHES
    }
    return sent, sum(int(one["drops"]) for one in found.values())


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
