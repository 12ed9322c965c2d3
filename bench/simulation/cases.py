"""Define the fabrics and programs of the cases: three kinds of network, four programs of 64 ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bench.simulation.runs import Effort, TracesMissing, side_by_side
from bench.support.instances import real
from bench.support.paths import DATA
from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.routes import OPENSM_LFTS
from ingest.generate.direct import irregular, torus
from ingest.options import Options as Reading
from ingest.reading.source import read_paths
from mapping.distances.cost_model import CostModel
from mapping.simulation.messages import Messages, from_profile, from_trace
from mapping.simulation.simulate import simulate
from registry.model import Fabric, Placement, Profile

ROUNDS = 10
FAT_TREE = DATA / "infiniband" / "fattree2-64-ftree"


class Setting(NamedTuple):
    """A program on a fabric, by their names, and how it is simulated."""

    fabric_name: str
    fabric: Fabric
    routing: str
    program: str
    profile: Profile
    messages: Messages

    def seconds(self, placements: Sequence[Placement]) -> list[float]:
        """Return simulated completion times."""
        return side_by_side(self._seconds, placements)

    def _seconds(self, placement: Placement) -> float:
        return simulate(
            self.fabric, placement, self.messages, CostModel(routing=self.routing)
        ).completion_seconds


def settings(effort: Effort) -> Iterator[Setting]:
    """Return every program on every fabric."""
    sends = programs(effort)
    for name, (fabric, routing) in fabrics().items():
        for program, (profile, messages) in sends.items():
            yield Setting(name, fabric, routing, program, profile, messages)


def fabrics() -> dict[str, tuple[Fabric, str]]:
    """Return fabrics of 64 hosts with the routing that is simulated."""
    return {
        "irregular, up*/down*": (irregular(16, capacity=1e9), "up-down"),
        "torus 4x4x4, dimension order": (torus((4, 4, 4), capacity=1e9), "dimension-order"),
        "fat tree, tables of a subnet manager": (fat_tree(), "tables"),
    }


def fat_tree() -> Fabric:
    """Return 64 hosts on 12 switches with the forwarding tables that opensm's ftree engine wrote."""
    (scan,), (tables,) = (read_paths([FAT_TREE / name]) for name in ("ibnetdiscover.txt", "opensm-lfts.dump"))
    fabric = IBNETDISCOVER.parse(scan.files, Reading()).fabric
    assert fabric is not None
    return replace(fabric, tables=OPENSM_LFTS.parse(tables.files, Reading()).tables)


def programs(effort: Effort) -> dict[str, tuple[Profile, Messages]]:
    """Return traces sent at once, if there are any, and recorded profiles in rounds."""
    found: dict[str, tuple[Profile, Messages]] = {}
    for program, recorded in (("cg", "npb_cg_S_64"), ("sp", "npb_sp_A_it5_64")):
        try:
            trace = effort.trace(program)
            found[f"{program}, trace"] = trace.profile(), from_trace(trace, np.inf)
        except TracesMissing:
            profile = real(recorded)
            found[f"{program}, rounds"] = profile, from_profile(profile, ROUNDS)
    for program, recorded in (("hpcg", "hpcg_16_64"), ("lulesh", "lulesh_s5_i10_64")):
        profile = real(recorded)
        found[f"{program}, rounds"] = profile, from_profile(profile, ROUNDS)
    return found


def sent(effort: Effort) -> str:
    """Describe how programs send."""
    rounds = f"as recorded, in {ROUNDS} rounds, each begun when the one before is delivered"
    if effort.traces is None:
        return f"CG, SP, HPCG and LULESH {rounds}"
    return (
        "traces of CG and SP with all messages offered at once, in each rank's order; "
        f"HPCG and LULESH {rounds}"
    )
