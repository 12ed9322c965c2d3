"""Circuits of optical switches: their files, and what commands tell of a plan, as a table and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from almanac.commands.profile import whole
from almanac.output import csv_text, finite, print_table
from registry import units

if TYPE_CHECKING:
    from mapping.reconfiguration.model.topology import Topology
    from mapping.service.answers.circuits import CircuitPlanReport
    from registry.model import CircuitPlan, Floats
    from registry.model.circuit_plan import Circuits

COLUMNS = ("a", "b")
"""Of files of circuits: the nodes that one joins, by number from 0, or by name where they have names."""
WEIGHT_COLUMNS = ("rank", "weight")
ROUTE_COLUMNS = ("one", "other", "bytes", "route")
"""Of files of routes: two ranks, or two hosts under ranks that stay; nodes on the way, with blanks."""
BUSIEST = 10
"""Circuits that are shown."""


def read_circuits(path: str, nodes: int, hosts: Sequence[str] = ()) -> Topology:
    """The topology of a CSV file with the columns ``a,b``, a row a circuit.

    Parameters
    ----------
    hosts : sequence of str
        Names of the nodes, in their order; rows may name them so.

    Raises
    ------
    InputError
        With the line.
    """
    from mapping.reconfiguration.model.topology import Topology
    from registry.errors import InputError, InvalidValue

    number = {host: node for node, host in enumerate(hosts)}
    pairs: list[tuple[int, int]] = []
    for row in _rows(path, COLUMNS):
        ends = [_node(cell, number) for cell in row.cells]
        if len(ends) != 2 or -1 in ends:
            raise InputError("not two nodes", path=path, line=row.line, text=row.text)
        pairs.append((ends[0], ends[1]))
    try:
        return Topology.of(nodes, pairs)
    except InvalidValue as error:
        raise InputError(str(error), path=path) from error


def read_weights(path: str, ranks: int) -> Floats:
    """float64[ranks]: a CSV file with the columns ``rank,weight``, a row a rank: what each computes.

    Raises
    ------
    InputError
        With the line; a rank that there is not, twice or without a weight, a weight that is not finite or
        below zero.
    """
    import numpy as np

    from registry.errors import InputError

    weight = np.full(ranks, np.nan)
    for row in _rows(path, WEIGHT_COLUMNS):
        rank, value = _weight(row.cells)
        if not (0 <= rank < ranks and math.isfinite(value) and value >= 0.0):
            reason = f"not one of {ranks} ranks, from 0, and a weight that is finite and not negative"
            raise InputError(reason, path=path, line=row.line, text=row.text)
        if not math.isnan(weight[rank]):
            raise InputError(f"rank {rank} a second time", path=path, line=row.line, text=row.text)
        weight[rank] = value
    if np.isnan(weight).any():
        raise InputError(f"rank {int(np.argmax(np.isnan(weight)))} has no weight", path=path)
    return weight


class _Row(NamedTuple):
    """A row of a CSV file that is not empty."""

    line: int
    cells: list[str]
    text: str


def _rows(path: str, columns: tuple[str, ...]) -> Iterator[_Row]:
    """The rows below a first line that names these columns.

    Raises
    ------
    InputError
    """
    from registry.errors import InputError

    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=path) from error
    if not lines or tuple(cell.strip() for cell in lines[0].split(",")) != columns:
        raise InputError(f"the first line does not name the columns {','.join(columns)}", path=path, line=1)
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield _Row(number, [cell.strip() for cell in line.split(",")], line)


def _weight(cells: Sequence[str]) -> tuple[int, float]:
    """A rank and its weight; -1 where the cells are not that."""
    if len(cells) != 2:
        return -1, 0.0
    try:
        return _node(cells[0], {}), float(cells[1])
    except ValueError:
        return -1, 0.0


def _node(cell: str, number: dict[str, int]) -> int:
    """The node that a cell names; -1 for none."""
    if cell in number:
        return number[cell]
    return int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 9 else -1


def circuit_rows(circuits: Circuits, hosts: Sequence[str] = ()) -> str:
    """CSV text: circuits as `read_circuits` reads them, by name where there are names."""
    return csv_text(COLUMNS, named(circuits, hosts))


def route_rows(plan: CircuitPlan, hosts: Sequence[str] = ()) -> str:
    """CSV text: the one way of what each two ranks exchange, or each two hosts under ranks that stay.

    What stays within a node has no row.
    """
    routes = plan.routes
    assert routes is not None
    flows = routes.crossing
    ends = tuple(zip(routes.one[flows].tolist(), routes.other[flows].tolist(), strict=True))
    pairs = named(ends, hosts if routes.of_nodes else ())
    rows = []
    for (one, other), size, way in zip(pairs, routes.bytes[flows].tolist(), plan.ways(flows), strict=True):
        over = " ".join(hosts[node] if hosts else str(node) for node in way)
        rows.append((one, other, whole(size), over))
    return csv_text(ROUTE_COLUMNS, rows)


def named(circuits: Circuits, hosts: Sequence[str]) -> list[tuple[int | str, int | str]]:
    """Circuits by names of hosts, or by numbers where nodes have none."""
    return [(hosts[a], hosts[b]) if hosts else (a, b) for a, b in circuits]


def plan_told(planned: CircuitPlanReport, hosts: Sequence[str], identity: str) -> dict[str, Any]:
    """The documented JSON keys of a plan."""
    plan, search = planned.plan, planned.search
    known = not math.isnan(plan.present_throughput)
    return {
        "configuration": identity,
        **{name: getattr(plan, name) for name in ("nodes", "max_degree", "max_edges", "link_speed")},
        "paper": plan.method == "paper",
        "start": search.parameters.get("start"),
        "seed": plan.seed,
        "complete": plan.complete,
        "hosts": list(hosts),
        "throughput": finite(plan.throughput),
        "compute_throughput": finite(plan.compute_throughput),
        "communication_throughput": finite(plan.communication_throughput),
        "upper_bound": {**asdict(planned.bound), "throughput": finite(planned.bound.throughput)},
        "improvement": finite(_improvement(plan)),
        "circuits": [
            {"a": a, "b": b, "bytes": load}
            for (a, b), load in zip(named(plan.circuits, hosts), plan.link_load.tolist(), strict=True)
        ],
        "node_of_rank": plan.node_of_vertex.tolist(),
        "trail": _trail_told(planned),
        "present": _against(plan, hosts) if known else None,
    }


def _improvement(plan: CircuitPlan) -> float:
    """Throughput over that of the first topology."""
    first = float(plan.trail_throughput[0])
    return 1.0 if plan.throughput == first else plan.throughput / first


def _trail_told(planned: CircuitPlanReport) -> list[dict[str, Any]]:
    numbers = ("throughput", "compute_throughput", "communication_throughput", "best")
    return [
        {**asdict(one), **{name: finite(getattr(one, name)) for name in numbers}} for one in planned.trail
    ]


def _against(plan: CircuitPlan, hosts: Sequence[str]) -> dict[str, Any]:
    """The present circuits beside those that were found, and what pays for moving them."""
    saved = 1.0 / plan.present_throughput - 1.0 / plan.throughput
    profiles = plan.reconfiguration_seconds / saved if saved > 0.0 else math.nan
    return {
        "throughput": finite(plan.present_throughput),
        "removed": named(plan.removed, hosts),
        "added": named(plan.inserted, hosts),
        "gain": finite(plan.gain),
        "seconds_saved": saved,
        "break_even_profiles": finite(profiles),
        "break_even_seconds": finite(plan.break_even_seconds),
    }


def show_plan(title: str, told: dict[str, Any]) -> None:
    """A plan as tables, from its JSON keys."""
    bound, rate = told["upper_bound"], "profiles/s"
    rows = [
        ["throughput", _rate(told["throughput"], rate), ""],
        ["of computing alone", _rate(told["compute_throughput"], rate), ""],
        ["of the circuits alone", _rate(told["communication_throughput"], rate), ""],
        ["certified upper bound", _rate(bound["throughput"], rate), f"{bound['name']}: {bound['proof']}"],
        ["over the first topology", _times(told["improvement"]), f"{len(told['trail']) - 1} steps"],
        ["circuits", str(len(told["circuits"])), f"at most {told['max_edges']}, {told['max_degree']} a node"],
    ]
    print_table(title, ["", "value", "why"], rows)
    busiest = sorted(told["circuits"], key=lambda one: -one["bytes"])[:BUSIEST]
    print_table(
        "circuits with most traffic",
        ["circuit", "bytes of a profile"],
        [[f"{one['a']} - {one['b']}", units.text(one["bytes"], units.BYTES)] for one in busiest],
    )
    if told["present"] is not None:
        show_moves(told["present"])
    state = "" if told["complete"] else " (interrupted: the best so far)"
    click.echo(f"saved as {told['configuration']}{state}")


def show_moves(against: dict[str, Any]) -> None:
    """Circuits to move and what that gains, from the JSON keys of `present`."""
    if against["seconds_saved"] <= 0.0:
        click.echo("stay: no circuits that were found are better than the present ones")
        return
    for words in ("removed", "added"):
        circuits = ", ".join(f"{a} - {b}" for a, b in against[words])
        click.echo(f"{words} ({len(against[words])}): {circuits or 'none'}")
    click.echo(f"{_times(against['gain'])} the present throughput")
    if against["break_even_profiles"] is not None:
        click.echo(
            f"moving the circuits pays after {against['break_even_profiles']:.6g} profiles, "
            f"{units.text(against['break_even_seconds'], units.SECONDS)}"
        )


def _rate(value: float | None, unit: str) -> str:
    return "without limit" if value is None else f"{value:.6g} {unit}"


def _times(value: float | None) -> str:
    return "without limit" if value is None else f"{value:.3f} times"
