"""Compare the 2011 paper's groups of ranks for multicore hosts (sections 3.4 and 4.2) with ours."""

from __future__ import annotations

import time

import numpy as np

from bench.papers.mapping.mapping_2011 import MATRICES, Effort, guest
from bench.support.papers import Figure, Row
from mapping.placement.partition.multicore import PARTITIONS, cut_bytes, group_ranks
from registry.model import Profile

CORES = (4, 8, 16)
RANKS = 1024
SEEDS = 5


def run(effort: Effort) -> Figure:
    """Group the ranks of all guests, and compare the bytes between groups."""
    ranks, rows = 64 if effort.small else RANKS, list[Row]()
    for name in MATRICES:
        profile = guest(name, ranks, effort.small)
        for cores in CORES:
            blocks = cut_bytes(profile, np.arange(ranks, dtype=np.int32) // cores)
            cuts = {way: _cuts(profile, cores, way) for way in PARTITIONS}
            case = f"{name}, {ranks} ranks, {cores} a host"
            for way, (cut, seconds) in cuts.items():
                rows += [
                    Row(
                        what=f"{case}: {way}, bytes between hosts", ours=cut / blocks - 1.0, baseline="blocks"
                    ),
                    Row(what=f"{case}: {way}, time", ours=seconds, baseline="seconds"),
                ]
            ratio = cuts["paper"][0] / cuts["improved"][0] - 1.0
            rows.append(Row(what=f"{case}: paper, bytes between hosts", ours=ratio, baseline="improved"))
    return Figure(
        title="2011, section 3.4: groups of ranks for hosts with several slots",
        setting=f"Mean of {SEEDS} seeds; blocks of ranks in METIS's order are the baseline. paper: METIS's "
        "k-way partition with 5% slack, corrected by moving the lightest ranks; improved: our default. The "
        "paper gives no numbers.",
        rows=tuple(rows),
    )


def _cuts(profile: Profile, cores: int, way: str) -> tuple[float, float]:
    """Return the mean bytes between groups, and the mean processor seconds of a grouping."""
    sizes = np.full(profile.ranks // cores, cores)
    group_ranks(profile, sizes, np.random.default_rng(0), way)  # loads kernels
    begin = time.process_time()
    cuts = [
        cut_bytes(profile, group_ranks(profile, sizes, np.random.default_rng(seed), way))
        for seed in range(SEEDS)
    ]
    return float(np.mean(cuts)), (time.process_time() - begin) / SEEDS
