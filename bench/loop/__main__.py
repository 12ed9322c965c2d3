"""Measure both programs in order, at random and placed, in turns, and record the times."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

import numpy as np

from bench.loop.network import Plan, Refused, built, counted, remove
from bench.loop.programs import Program, Runner, SimulatedRunner
from bench.loop.programs import version as simgrid_version
from bench.simulation.cases import spearman
from bench.support.machine import about, now
from bench.support.paths import RESULTS
from mapping.cost.metrics import evaluate
from mapping.placement.methods.baselines import in_order, random_placement
from mapping.placement.place import place
from registry.model import Allocation, Evaluation, Fabric, Floats, Placement, Profile

RECORD, SIMULATED = RESULTS / "loop.json", RESULTS / "loop_simulated.json"
PROGRAMS = (
    Program(name="halo", parts=4, bytes=1 << 18),
    Program(name="all-to-all", parts=4, bytes=1 << 18),
)
PAIR = Program(name="halo", parts=1, bytes=1 << 20)
"""Two ranks that exchange with each other: what Open MPI needs for both directions of a cable."""
SEARCH_STEPS = 20_000
METRICS = ("congestion_seconds", "network_congestion_seconds", "hop_bytes")
MEASURED = "median_seconds"


@dataclass(slots=True, eq=False)
class Order:
    """A placement of a program's ranks, its estimate and what was measured."""

    name: str
    placement: Placement
    estimate: Evaluation
    medians: list[float] = field(default_factory=list)
    counted: list[float] = field(default_factory=list)


def orders_of(fabric: Fabric, profile: Profile, seeds: Sequence[int]) -> list[Order]:
    """Return a profile in order, placed by the default search, and at random by each seed."""
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    ranks = profile.ranks
    found = {
        "in order": in_order(ranks, allocation),
        "placed": place(fabric, profile, allocation, steps=SEARCH_STEPS, seed=0),
        **{f"random, seed {seed}": random_placement(ranks, allocation, seed) for seed in seeds},
    }
    return [Order(name, one, evaluate(fabric, profile, one)) for name, one in found.items()]


def switch_bytes(fabric: Fabric, estimate: Evaluation) -> dict[tuple[str, str], float]:
    """Return the estimated bytes on each cable that a switch sends on, by the names of its ends."""
    links = fabric.links
    ends = zip(links.source.tolist(), links.target.tolist(), estimate.link_bytes.tolist(), strict=True)
    return {(fabric.names[a], fabric.names[b]): load for a, b, load in ends if fabric.slots[a] == 0}


def summary(orders: Sequence[Order]) -> dict[str, Any]:
    """Return the estimates and times of all orders, and how their ranks agree.

    Estimates that differ by less than half of a thousandth of the highest one share a rank: what Open MPI
    counts contains a few bytes of barriers, too.
    """
    rows = {one.name: _row(one) for one in orders}
    measured = _column(rows.values(), MEASURED)
    rho = {}
    for name in METRICS:
        values = _column(rows.values(), name)
        rho[name] = round(float(spearman(np.round(values / values.max(), 3), measured)), 3)
    placed = rows["placed"]
    drawn = [row for name, row in rows.items() if name.startswith("random")]
    compared = {"in_order": [rows["in order"]], "random": drawn}
    return {
        "spearman_with_median_seconds": rho,
        **{
            f"placed_over_{name}": {
                key: placed[key] / float(np.median(_column(others, key))) for key in (METRICS[0], MEASURED)
            }
            for name, others in compared.items()
        },
        "faster_than_placed": [name for name, row in rows.items() if row[MEASURED] < placed[MEASURED]],
        "orders": rows,
    }


def _row(order: Order) -> dict[str, Any]:
    return {
        **{name: getattr(order.estimate, name) for name in METRICS},
        MEASURED: median(order.medians),
        "min_seconds": min(order.medians),
        "max_seconds": max(order.medians),
        "runs": order.medians,
        **({"counted_over_estimated": median(order.counted)} if order.counted else {}),
        "hosts": order.placement.host_of_rank.tolist(),
    }


def _column(rows: Iterable[Mapping[str, Any]], name: str) -> Floats:
    return np.array([row[name] for row in rows], np.float64)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and record; or print why this machine cannot."""
    parser = argparse.ArgumentParser(prog="python -m bench.loop", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each order [default: %(default)s]")
    parser.add_argument("--random", type=int, default=8, help="random orders [default: %(default)s]")
    parser.add_argument("--steps", type=int, default=3, help="steps of a run [default: %(default)s]")
    parser.add_argument("--mbit", type=int, default=25, help="rate of all cables [default: %(default)s]")
    parser.add_argument("--simulate", action="store_true", help="with SMPI, as if the machine refused")
    parser.add_argument("--trial", action="store_true", help="print, and record nothing")
    parser.add_argument("--remove", action="store_true", help="only remove what a killed run left")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    plan = Plan(bits=given.mbit * 1_000_000)
    if given.remove:
        remove(plan)
        return
    with tempfile.TemporaryDirectory(prefix="almanac-loop-") as folder:
        try:
            record, found = _found(plan, Path(folder), given)
        except Refused as reason:
            print(f"skipped: {reason}", file=sys.stderr)
            return
    text = json.dumps({**about(), **found}, indent=2)
    print(text)
    if not given.trial:
        record.write_text(text + "\n")


def _found(plan: Plan, folder: Path, given: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """Return what was measured with its record, or what was simulated if the machine refuses."""
    if not given.simulate:
        try:
            with built(plan):
                return RECORD, _measured(Runner(plan, folder), given)
        except Refused as reason:
            print(f"not measured: {reason}; simulated with SimGrid's SMPI", file=sys.stderr)
    return SIMULATED, simulated(SimulatedRunner(plan, folder), given.steps, list(range(given.random)))


def simulated(runner: SimulatedRunner, steps: int, seeds: list[int]) -> dict[str, Any]:
    """Run both programs in simulated time, once in each order; their profiles are those of the formula."""
    plan, fabric = runner.plan, runner.plan.fabric()
    runner.compile()
    programs: dict[str, Any] = {}
    for program in PROGRAMS:
        orders = orders_of(fabric, program.profile(len(plan.hosts)), seeds)
        for order in orders:
            order.medians.append(median(runner.run(program, order.placement, fabric, steps).seconds))
        programs[program.name] = {**asdict(program), **summary(orders)}
    return {
        "simulator": simgrid_version(),
        "sizes": {"ranks": len(plan.hosts), "steps": steps},
        "plan": asdict(plan),
        "random_seeds": seeds,
        "search_steps": SEARCH_STEPS,
        "programs": programs,
    }


def _measured(runner: Runner, given: argparse.Namespace) -> dict[str, Any]:
    """Record, place and run both programs."""
    plan, fabric = runner.plan, runner.plan.fabric()
    before, seeds = os.getloadavg()[1], list(range(given.random))
    runner.compile()
    orders: dict[Program, list[Order]] = {}
    differs: dict[str, float] = {}
    for program in PROGRAMS:
        first = in_order(len(plan.hosts), Allocation.of(fabric, fabric.hosts.tolist()))
        profile = runner.record(program, first, fabric, given.steps)
        formula = program.profile(profile.ranks)
        differs[program.name] = float(profile.bytes.sum() / formula.bytes.sum() - 1)
        orders[program] = orders_of(fabric, profile, seeds)
    dropped = counted(plan)[1]
    for repeat in range(given.repeats):
        for program, several in orders.items():
            for turn in range(len(several)):  # another one begins in each repeat
                _run(runner, fabric, program, several[(turn + repeat) % len(several)], given.steps)
    return {
        "pair": measured_pair(runner, fabric, given.steps),
        "open_mpi": _version(),
        "load_average_before": before,
        "sizes": {"ranks": len(plan.hosts), "repeats": given.repeats, "steps": given.steps},
        "plan": asdict(plan),
        "random_seeds": seeds,
        "search_steps": SEARCH_STEPS,
        "dropped_packets": counted(plan)[1] - dropped,
        "programs": {
            program.name: {
                **asdict(program),
                "recorded_bytes_over_formula_minus_one": differs[program.name],
                **summary(several),
            }
            for program, several in orders.items()
        },
    }


def measured_pair(runner: Runner, fabric: Fabric, steps: int) -> dict[str, Any]:
    """Return the estimate and the measured seconds of two hosts of a leaf that exchange alone."""
    placement = in_order(2, Allocation.of(fabric, fabric.hosts.tolist()))
    estimate = evaluate(fabric, PAIR.profile(2), placement)
    seconds = runner.run(PAIR, placement, fabric, steps).seconds
    return {
        "date": now(),
        "bytes": PAIR.bytes,
        METRICS[0]: estimate.congestion_seconds,
        MEASURED: median(seconds),
        "steps_seconds": list(seconds),
    }


def _run(runner: Runner, fabric: Fabric, program: Program, order: Order, steps: int) -> None:
    """Run an order once, and add its times and the bytes that were counted."""
    before = counted(runner.plan)[0]
    output = runner.run(program, order.placement, fabric, steps)
    after = counted(runner.plan)[0]
    order.medians.append(median(output.seconds))
    order.counted.append(_over(switch_bytes(fabric, order.estimate), before, after) / (steps + 1))
    print(f"{program.name:12} {order.name:16} {order.medians[-1]:.3f} s", file=sys.stderr, flush=True)


def _over(
    estimated: Mapping[tuple[str, str], float],
    before: Mapping[tuple[str, str], int],
    after: Mapping[tuple[str, str], int],
) -> float:
    return sum(after[ends] - before[ends] for ends in estimated) / sum(estimated.values())


def _version() -> str:
    done = subprocess.run(["mpirun.openmpi", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
