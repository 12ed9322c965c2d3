"""Shared parts of the simulated runs: effort, traces, placements by strategy, parallel runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bench.support import paths
from ingest.formats.profiles.edges import TRACE_CSV
from ingest.options import Options as Reading
from ingest.reading.source import read_paths
from mapping.distances.distances import EQUIVALENT_2, distances
from mapping.placement.catalog import Chain
from mapping.placement.problem import Problem
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Fabric, Placement, Profile
from registry.model.profile import Trace

VALUES = Path(__file__).with_name("values.toml")
RESULTS = paths.RESULTS / "simulation"
TRACES = {"cg": "trace_npb_cg_S_64.csv.xz", "sp": "trace_npb_sp_A_it5_64.csv.xz"}
"""Files of the folder of traces, by program."""
Case = TypeVar("Case")
Result = TypeVar("Result")


class TracesMissing(Exception):
    """Raised when a part needs traces that are not available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Limits of a run.

    Attributes
    ----------
    small : bool
        Few and small cases, to try that everything works.
    traces : Path or None
        Folder of the traces.
    flits : float
        Part of the 2004 paper's networks that are simulated flit by flit, too; 0 to 1.
    """

    small: bool = False
    traces: Path | None = None
    flits: float = 0.1

    def to_json(self) -> dict[str, Any]:
        """Return the effort for the record, without the folder of the traces."""
        return {"small": self.small, "traces": self.traces is not None, "flits": self.flits}

    def trace(self, program: str) -> Trace:
        """Return the trace of a program at 64 ranks; only its first messages if the effort is small.

        Raises
        ------
        TracesMissing
        """
        if self.traces is None:
            raise TracesMissing("it needs --traces FOLDER")
        path = self.traces / TRACES[program]
        if not path.exists():
            raise TracesMissing(f"{self.traces} has no {TRACES[program]}")
        found = _read(path)
        return found.first(6_000) if self.small else found


@cache
def _read(path: Path) -> Trace:
    (recording,) = read_paths([path])
    found = TRACE_CSV.parse(recording.files, Reading()).traces[0]
    assert found is not None
    return found


def problem(fabric: Fabric, profile: Profile, routing: str, distance: str = EQUIVALENT_2) -> Problem:
    """Return the problem of a profile on all hosts of a fabric, one rank each, with the given distances."""
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    routes = build_routes(routing, fabric, allocation.hosts)
    return Problem(
        profile=profile, allocation=allocation, routes=routes, own_distances=distances(distance, routes)
    )


def placed_by(text: str, where: Problem, seed: int = 0) -> Placement:
    """Return the placement of a strategy with its options, such as ``greedy:starts=8``, run once."""
    link = Chain.parse(text).strategy
    if link is None:
        raise ValueError(f"{text} does not begin with a strategy")
    hosts = link.strategy()(where, np.random.default_rng(seed))
    return Placement(
        host_of_rank=where.allocation.hosts[hosts], allocation=where.allocation, strategy=text, seed=seed
    )


def side_by_side(run: Callable[[Case], Result], cases: Sequence[Case]) -> list[Result]:
    """Run the cases on all cores and return results in their order; kernels release the lock."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(run, cases))


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"  {text}", file=sys.stderr, flush=True)


def percent(part: int, whole: int) -> str:
    """Format a share such as ``18 of 20 (90%)``."""
    return f"{part} of {whole} ({part / max(whole, 1):.0%})"


def span(values: Sequence[float]) -> str:
    """Format median, least and most of several numbers."""
    return f"median {np.median(values):.3g}, {min(values):.3g} to {max(values):.3g}"
