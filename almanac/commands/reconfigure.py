"""``almanac reconfigure``: circuits of an optical switch for an application, and what moving them gives."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from almanac.commands.common import json_option, open_registry
from almanac.output import note, print_json, print_table, progress_bars, write_text
from registry import units

if TYPE_CHECKING:
    from mapping.reconfigure.bounds import UpperBound
    from mapping.reconfigure.co_optimise import Reconfiguration
    from mapping.reconfigure.problem import Application, Machine
    from mapping.reconfigure.topology import Topology
    from registry.model import Profile
    from registry.progress import Progress

Pairs = list[tuple[int, int]]
COLUMNS = ("a", "b")
"""Of files of circuits: the nodes that one joins, from 0."""


@click.command("reconfigure")
@click.argument("profile")
@click.option("--nodes", type=int, required=True, help="Nodes on the switch; ranks share them.")
@click.option("--max-degree", type=int, required=True, help="Circuits that may end at a node.")
@click.option("--max-edges", type=int, required=True, help="Circuits that the switch can hold.")
@click.option(
    "--link-speed", type=float, required=True, help="Bytes/s of a circuit, both directions together."
)
@click.option(
    "--compute-seconds",
    type=float,
    default=1.0,
    show_default=True,
    help="That each rank computes while it sends what the profile holds.",
)
@click.option(
    "--start",
    metavar="NAME|FILE",
    help="First topology: condensed, torus, ring, chordal-ring-Q, or a CSV with the columns a,b.",
)
@click.option("--present", metavar="FILE", help="The circuits that there are: which of them to move.")
@click.option(
    "--reconfiguration-seconds",
    type=click.FloatRange(min=0.0),
    help="That moving circuits takes; with --present.",
)
@click.option("--paper", is_flag=True, help="The loop of the paper alone, without our own search after it.")
@click.option("--patience", type=int, help="With --paper: iterations without gain after which to stop.")
@click.option("--skip", type=float, help="With --paper: probability of passing over a pair of circuits.")
@click.option(
    "--seconds", type=click.FloatRange(min=0.0), help="To search, about (default: until it is done)."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="CSV of the circuits that were found.")
@json_option
def command(
    profile: str,
    reconfiguration_seconds: float | None,
    output: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Find circuits, a node for each rank of PROFILE and routes that send its traffic as often as can be.

    Throughput is profiles a second: each rank computes and sends all that the profile holds once. Nothing is
    saved. After Ctrl-C the best so far is told, marked incomplete.
    """
    ask = Ask(**asked)
    if not ask.paper and (ask.patience is not None or ask.skip is not None):
        raise click.UsageError("--patience and --skip go with --paper")
    if reconfiguration_seconds is not None and ask.present is None:
        raise click.UsageError("--reconfiguration-seconds goes with --present")
    with open_registry() as registry:
        stored = registry.profiles.read(profile).profile
    with progress_bars() as progress:
        found = _found(ask, stored, progress)
    if output is not None:
        write_text(output, csv_text(pairs_of(found.best.topology)))
        note(f"circuits written to {output}")
    told = _told(ask, stored, found, reconfiguration_seconds)
    if as_json:
        print_json(told)
    else:
        _show(told)
    if not found.best.complete:
        click.get_current_context().exit(130)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The machine, and how to search, as the options say."""

    nodes: int
    max_degree: int
    max_edges: int
    link_speed: float
    compute_seconds: float
    start: str | None
    present: str | None
    paper: bool
    patience: int | None
    skip: float | None
    seconds: float | None
    seed: int


class Found(NamedTuple):
    """What was found.

    Attributes
    ----------
    best : Reconfiguration
    bound : UpperBound
    present : Topology or None
    present_throughput : float
        Of the present circuits, with a partition and routes for them; nan where there are none.
    """

    best: Reconfiguration
    bound: UpperBound
    present: Topology | None
    present_throughput: float


def read_circuits(path: str, nodes: int) -> Topology:
    """The topology of a CSV file with the columns ``a,b``, a row a circuit.

    Raises
    ------
    InputError
        With the line.
    """
    from mapping.reconfigure.topology import Topology
    from registry.errors import InputError, InvalidValue

    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=path) from error
    if not lines or tuple(cell.strip() for cell in lines[0].split(",")) != COLUMNS:
        raise InputError(f"the first line does not name the columns {','.join(COLUMNS)}", path=path, line=1)
    pairs: Pairs = []
    for number, line in enumerate(lines[1:], start=2):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip():
            continue
        if len(cells) != 2 or not all(cell.isascii() and cell.isdigit() and len(cell) < 9 for cell in cells):
            raise InputError("not two nodes", path=path, line=number, text=line)
        pairs.append((int(cells[0]), int(cells[1])))
    try:
        return Topology.of(nodes, pairs)
    except InvalidValue as error:
        raise InputError(str(error), path=path) from error


def pairs_of(topology: Topology) -> Pairs:
    """The nodes that each circuit joins, ascending."""
    return list(zip(topology.source.tolist(), topology.target.tolist(), strict=True))


def csv_text(pairs: Pairs) -> str:
    """Circuits as `read_circuits` reads them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS, *pairs])
    return text.getvalue()


def _found(ask: Ask, profile: Profile, progress: Progress) -> Found:
    from mapping.reconfigure.bounds import throughput_bound
    from mapping.reconfigure.problem import Application, Machine
    from registry.errors import InvalidValue

    if not (math.isfinite(ask.compute_seconds) and ask.compute_seconds > 0.0):
        raise InvalidValue("compute_seconds", f"is {ask.compute_seconds}, must be finite and above zero")
    machine = Machine(
        nodes=ask.nodes,
        max_degree=ask.max_degree,
        max_edges=ask.max_edges,
        compute_speed=1.0 / ask.compute_seconds,
        link_speed=ask.link_speed,
    )
    application = Application.of_profile(profile)
    present = None if ask.present is None else read_circuits(ask.present, ask.nodes)
    best = _best(ask, application, machine, progress)
    return Found(
        best,
        throughput_bound(application, machine),
        present,
        math.nan if present is None else _throughput(application, present, machine, ask.seed),
    )


def _best(ask: Ask, application: Application, machine: Machine, progress: Progress) -> Reconfiguration:
    from mapping.reconfigure.co_optimise import PATIENCE, SKIP, reconfigure
    from mapping.reconfigure.improving import BEST_SEEDS, best_of
    from mapping.reconfigure.seeds import CONDENSED

    start: str | Topology | None = ask.start
    if ask.start is not None and Path(ask.start).is_file():
        start = read_circuits(ask.start, ask.nodes)
    if not ask.paper:
        starts = BEST_SEEDS if start is None else (start,)
        return best_of(
            application,
            machine,
            seed_topologies=starts,
            seed=ask.seed,
            seconds=ask.seconds,
            progress=progress,
        )
    return reconfigure(
        application,
        machine,
        seed_topology=CONDENSED if start is None else start,
        patience=PATIENCE if ask.patience is None else ask.patience,
        skip=SKIP if ask.skip is None else ask.skip,
        seed=ask.seed,
        seconds=ask.seconds,
        progress=progress,
    )


def _throughput(application: Application, present: Topology, machine: Machine, seed: int) -> float:
    import numpy as np

    from mapping.reconfigure.place_and_route import place_and_route

    return place_and_route(application, present, machine, np.random.default_rng(seed)).throughput


def _told(ask: Ask, profile: Profile, found: Found, seconds: float | None) -> dict[str, Any]:
    """The documented JSON keys."""
    best = found.best
    solution = best.solution
    return {
        "profile": profile.name,
        "ranks": profile.ranks,
        **{name: getattr(ask, name) for name in ("nodes", "max_degree", "max_edges", "link_speed")},
        **{name: getattr(ask, name) for name in ("compute_seconds", "paper", "start", "seed")},
        "complete": best.complete,
        "throughput": best.throughput,
        "compute_throughput": _finite(solution.compute_throughput),
        "communication_throughput": _finite(solution.communication_throughput),
        "upper_bound": {**asdict(found.bound), "throughput": _finite(found.bound.throughput)},
        "improvement": best.improvement,
        "circuits": [
            {"a": a, "b": b, "bytes": load}
            for (a, b), load in zip(pairs_of(best.topology), solution.link_load.tolist(), strict=True)
        ],
        "node_of_rank": solution.node_of_vertex.tolist(),
        "trail": [
            {
                **asdict(one),
                "throughput": _finite(one.throughput),
                "communication_throughput": _finite(one.communication_throughput),
            }
            for one in best.trail
        ],
        "present": None if found.present is None else _against(found, found.present, seconds),
    }


def _against(found: Found, present: Topology, seconds: float | None) -> dict[str, Any]:
    """The present circuits beside those that were found, and how many profiles pay for moving them."""
    now, then = found.present_throughput, found.best.throughput
    old, new = set(pairs_of(present)), set(pairs_of(found.best.topology))
    saved = 1.0 / now - 1.0 / then
    return {
        "throughput": _finite(now),
        "removed": sorted(old - new),
        "added": sorted(new - old),
        "gain": then / now,
        "seconds_saved": saved,
        "break_even_profiles": seconds / saved if seconds is not None and saved > 0.0 else None,
    }


def _show(told: dict[str, Any]) -> None:
    bound, rate = told["upper_bound"], "profiles/s"
    rows = [
        ["throughput", f"{told['throughput']:.6g} {rate}", ""],
        ["of computing alone", f"{told['compute_throughput']:.6g} {rate}", ""],
        ["certified upper bound", f"{bound['throughput']:.6g} {rate}", f"{bound['name']}: {bound['proof']}"],
        ["over the first topology", f"{told['improvement']:.3f} times", f"{len(told['trail']) - 1} steps"],
        ["circuits", str(len(told["circuits"])), f"at most {told['max_edges']}, {told['max_degree']} a node"],
    ]
    if told["communication_throughput"] is not None:
        rows.insert(2, ["of the links alone", f"{told['communication_throughput']:.6g} {rate}", ""])
    print_table(
        f"{told['profile']}: {told['ranks']} ranks on {told['nodes']} nodes", ["", "value", "why"], rows
    )
    busiest = sorted(told["circuits"], key=lambda one: -one["bytes"])[:10]
    print_table(
        "circuits with most traffic",
        ["circuit", "bytes of a profile"],
        [[f"{one['a']} - {one['b']}", units.text(one["bytes"], units.BYTES)] for one in busiest],
    )
    if told["present"] is not None:
        _show_present(told["present"])


def _show_present(against: dict[str, Any]) -> None:
    if against["seconds_saved"] <= 0.0:
        click.echo("stay: no circuits that were found are better than the present ones")
        return
    for words in ("removed", "added"):
        circuits = ", ".join(f"{a} - {b}" for a, b in against[words])
        click.echo(f"{words}: {circuits or 'none'}")
    click.echo(f"{against['gain']:.3f} times the present throughput")
    if against["break_even_profiles"] is not None:
        click.echo(f"moving the circuits pays after {against['break_even_profiles']:.6g} profiles")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
