"""Define mapping instances: those of a folder such as ``tests/data/bench``, and generated ones.

Besides fabric, profile and allocation, an instance has what other tools need to know of the machine: the
sides of a full torus, or the sizes of nested groups of hosts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.support.paths import DATA
from ingest.formats.profiles.openmpi_monitoring import OPENMPI_MONITORING
from ingest.generate import nas
from ingest.generate.direct import dragonfly, hypercube, irregular, percs, torus
from ingest.generate.matrices import F1_NODES, SparseMatrix, crankshaft, kkt, product_traffic
from ingest.generate.stencils import shuffled, snap, stencil, sweep3d
from ingest.generate.trees import extended_generalised_fat_tree, juropa_like, tianhe3
from ingest.options import Options
from ingest.reading.source import read_paths
from registry.model import Allocation, Fabric, Profile

SHIPPED = DATA / "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Structure of an allocation's hosts, in their order, for tools that use it."""

    sides: tuple[int, ...] = ()
    wraps: bool = True
    groups: tuple[int, ...] = ()
    """on down, such as ``(32, 8)``; empty: no such order"""


class Instance(NamedTuple):
    """A guest and the hosts that it may use."""

    fabric: Fabric
    profile: Profile
    allocation: Allocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """An instance, with what other tools may know of its hosts."""

    fabric: Fabric
    profile: Profile
    allocation: Allocation
    shape: Shape = field(default_factory=Shape)
    peers_on_first: bool = False


FOLDER: dict[str, Shape] = {
    "torus8/fem_512": Shape(sides=(8, 8, 8)),
    "torus12/nlpkkt80_1728": Shape(sides=(12, 12, 12)),
    "percs9248/nlpkkt80_1792": Shape(groups=(32, 8)),
    "fattree3292/fem_1728": Shape(groups=(24,)),
    "dragonfly1056/btsp_1024": Shape(groups=(32, 4)),
    "tianhe2304/lu_1728": Shape(groups=(576, 96, 48)),
}
"""Instances of a folder, by ``host/guest``."""


def read(folder: Path, host: str, guest: str) -> Instance:
    """Read an instance of a folder: a guest on the first hosts of a machine, one rank each."""
    machine, traffic = np.load(folder / f"host_{host}.npz"), np.load(folder / f"guest_{guest}.npz")
    vertices, ranks = len(machine["h_indptr"]) - 1, len(traffic["g_indptr"]) - 1
    slots = np.zeros(vertices, int)
    slots[machine["hosts"]] = 1
    fabric = Fabric.from_arcs(
        (f"v{vertex}" for vertex in range(vertices)),
        np.repeat(np.arange(vertices), np.diff(machine["h_indptr"])),
        machine["h_indices"],
        machine["h_cap"],
        slots=slots,
        forwards=bool((slots > 0).all()) | (slots == 0),  # all are hosts: a direct network
    )
    senders = np.repeat(np.arange(ranks), np.diff(traffic["g_indptr"]))
    profile = Profile.from_edges(senders, traffic["g_indices"], traffic["g_w"], ranks=ranks)
    return Instance(fabric, profile, Allocation.of(fabric, machine["hosts"][:ranks].tolist()))


def recorded(folder: Path, host: str, guest: str) -> Contest:
    """Return an instance of a folder."""
    fabric, profile, allocation = read(folder, host, guest)
    shape = FOLDER.get(f"{host}/{guest}", Shape())
    return Contest(fabric=fabric, profile=profile, allocation=allocation, shape=shape)


def anywhere(folder: Path, host: str, guest: str) -> Contest:
    """Return the same with all hosts of the machine for our search; other tools get the first ones."""
    instance = recorded(folder, host, guest)
    everywhere = Allocation.of(instance.fabric, instance.fabric.hosts.tolist())
    return replace(instance, allocation=everywhere, peers_on_first=True)


def generated() -> dict[str, Callable[[], Contest]]:
    """Return more instances by name: other machines and sizes, real profiles, several ranks a host."""
    return {
        "torus8x8x16/stencil27-shuffled": lambda: on_all(
            torus((8, 8, 16)), stencil((8, 8, 16), 27, bytes=(64, 8, 1), seed=1), sides=(8, 8, 16)
        ),
        "torus10/kkt1000": lambda: on_all(torus((10,) * 3), _product("kkt", 1000), sides=(10,) * 3),
        "torus6x7x8/crankshaft336": lambda: on_all(
            torus((6, 7, 8)), _product("crankshaft", 336), sides=(6, 7, 8)
        ),
        "torus16x16/sp256-measured": lambda: on_all(
            torus((16, 16)), real("npb_sp_A_it5_256"), sides=(16, 16)
        ),
        "torus4/hpcg64-measured": lambda: on_all(torus((4,) * 3), real("hpcg_16_64"), sides=(4,) * 3),
        "torus8-2slots/kkt1024": lambda: on_all(torus((8,) * 3, slots=2), _product("kkt", 1024)),
        "torus12-irregular/crankshaft900": lambda: on_some(
            torus((12,) * 3), _product("crankshaft", 900), 1000
        ),
        "hypercube9/cg512": lambda: on_all(hypercube(9), nas.cg(512), sides=(2,) * 9),
        "percs544/crankshaft512": lambda: _first(percs(17), _product("crankshaft", 512), groups=(32, 8)),
        "percs2048-irregular/kkt700": lambda: on_some(percs(64), _product("kkt", 700), 800),
        "juropa-irregular/sweep800": lambda: on_some(
            juropa_like(), sweep3d((40, 20), mesh=(200, 100, 400), planes=10, reductions=False), 1000
        ),
        "xgft512-2to1/lu512": lambda: on_all(
            extended_generalised_fat_tree((16, 8, 4), (1, 8, 4)), nas.lu(512), groups=(128, 16)
        ),
        "xgft128-4slots/stencil512": lambda: on_all(
            extended_generalised_fat_tree((8, 4, 4), (1, 4, 2), slots=4),
            shuffled(stencil((8, 8, 8), 7), 2),
            groups=(32, 8),
        ),
        "dragonfly342-irregular/snap256": lambda: on_some(
            dragonfly(6, 3, 3), snap((16, 16), reductions=False), 300
        ),
        "dragonfly1056/ft64-measured": lambda: on_some(dragonfly(8, 4, 4), real("npb_ft_W_64"), 80),
        "tianhe864/bt576": lambda: _first(tianhe3(3, 3), nas.bt(576), groups=(288, 96, 48)),
        "irregular16/cg64-measured": lambda: on_all(irregular(16), real("npb_cg_S_64"), groups=(4,)),
        "irregular64/lulesh64-measured": lambda: on_some(irregular(64), real("lulesh_s5_i10_64"), 90),
    }


def real(run: str) -> Profile:
    """Return all traffic of a recorded run of ``tests/data/openmpi``."""
    (recording,) = read_paths([DATA / "openmpi" / f"{run}.tar.gz"])
    profile = OPENMPI_MONITORING.parse(recording.files, Options(name=run)).profiles[0]
    if profile is None:
        raise SystemExit(f"{run} holds no profile")
    return profile


@cache
def _matrix(kind: str) -> SparseMatrix:
    return kkt(40) if kind == "kkt" else crankshaft(F1_NODES)


def _product(kind: str, ranks: int) -> Profile:
    return product_traffic(_matrix(kind), ranks, name=f"{kind}-{ranks}")


def on_all(
    fabric: Fabric,
    profile: Profile,
    *,
    sides: tuple[int, ...] = (),
    wraps: bool = True,
    groups: tuple[int, ...] = (),
) -> Contest:
    """Allocate all hosts with all their slots."""
    allocation = Allocation.of(fabric, fabric.hosts.tolist(), fabric.slots[fabric.hosts].tolist())
    shape = Shape(sides=sides, wraps=wraps, groups=groups)
    return Contest(fabric=fabric, profile=profile, allocation=allocation, shape=shape)


def _first(fabric: Fabric, profile: Profile, *, groups: tuple[int, ...]) -> Contest:
    """Allocate as many of the first hosts as there are ranks."""
    allocation = Allocation.of(fabric, fabric.hosts[: profile.ranks].tolist())
    return Contest(fabric=fabric, profile=profile, allocation=allocation, shape=Shape(groups=groups))


def on_some(fabric: Fabric, profile: Profile, hosts: int) -> Contest:
    """Allocate as a busy scheduler does: runs of neighbouring hosts here and there."""
    generator = np.random.default_rng(hosts)
    free = np.ones(len(fabric.hosts), bool)
    chosen: list[int] = []
    while len(chosen) < hosts:
        start, length = int(generator.integers(len(free))), int(generator.geometric(1 / 24))
        run = np.flatnonzero(free[start : start + length])[: hosts - len(chosen)] + start
        free[run] = False
        chosen += run.tolist()
    allocation = Allocation.of(fabric, fabric.hosts[np.sort(chosen)].tolist())
    return Contest(fabric=fabric, profile=profile, allocation=allocation)
