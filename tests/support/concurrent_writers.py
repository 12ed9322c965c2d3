"""Processes that use a registry at the same time; run as ``python -m tests.support.concurrent_writers WORK``.

The server's address comes as JSON on standard input.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from registry.model import Profile
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.snapshots import canonical, content_hash
from tests.support.fat_tree import at, fat_tree
from tests.support.waiting import PATIENCE

CONTENTS = (fat_tree(), fat_tree(without=(0,)), fat_tree(renamed={"leaf1": "x"}), fat_tree(leaves=3))


def write(registry: Registry, number: int, rounds: int) -> None:
    """Observe one cluster repeatedly, each writer at its own times, with a profile each time."""
    for turn in range(rounds):
        minute = 2 * turn + number
        fabric = CONTENTS[(turn + number) % len(CONTENTS)]
        profile = Profile.from_edges([0], [1], [1.0 + minute], name=f"p{minute}", application="cg")
        registry.save(Intake(cluster="toy", observed_at=at(minute), fabric=fabric, profiles=(profile,)))


def read(registry: Registry, observations: int) -> None:
    """Read until everything is there; check that each fabric and its derived graph is one that was saved."""
    known = {content_hash(canonical(fabric)) for fabric in CONTENTS}
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if registry.fabrics.clusters():
            snapshot = registry.fabrics.read("toy")
            assert content_hash(snapshot.fabric) in known
            hosts = [snapshot.fabric.names[v] for v in snapshot.fabric.hosts][:4]
            registry.fabrics.subgraph("toy", hosts)
            if len(registry.fabrics.observations("toy")) == observations:
                return
    raise TimeoutError(f"{observations} observations were not seen in time")


def hang(registry: Registry, written: int) -> None:
    """Save a fabric and stop in the middle of the transaction: before or after it was written."""

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        if phase == "saving the fabric" and (total is not None) == bool(written):
            print("in the middle", flush=True)
            time.sleep(3000)

    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=CONTENTS[0]), progress)


def main() -> None:
    """Connect and do the work named by the first argument; the others are its numbers."""
    address = json.load(sys.stdin)
    works: dict[str, Callable[..., None]] = {"write": write, "read": read, "hang": hang}
    with Registry.open(**address) as registry:
        works[sys.argv[1]](registry, *map(int, sys.argv[2:]))


if __name__ == "__main__":
    main()
