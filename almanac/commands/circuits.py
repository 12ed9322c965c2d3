"""Circuits of optical switches: their files, and what commands tell of a plan, as a table and as JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from almanac.output import print_table
from registry import units

if TYPE_CHECKING:
    from mapping.answers.circuits import Planned
    from mapping.reconfigure.topology import Topology
    from registry.model import CircuitPlan
    from registry.model.reconfiguration import Circuits

COLUMNS = ("a", "b")
"""Of files of circuits: the nodes that one joins, by number from 0, or by name where they have names."""
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
    from mapping.reconfigure.topology import Topology
    from registry.errors import InputError, InvalidValue

    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=path) from error
    if not lines or tuple(cell.strip() for cell in lines[0].split(",")) != COLUMNS:
        raise InputError(f"the first line does not name the columns {','.join(COLUMNS)}", path=path, line=1)
    number = {host: node for node, host in enumerate(hosts)}
    pairs: list[tuple[int, int]] = []
    for row, line in enumerate(lines[1:], start=2):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip():
            continue
        ends = [_node(cell, number) for cell in cells]
        if len(ends) != 2 or -1 in ends:
            raise InputError("not two nodes", path=path, line=row, text=line)
        pairs.append((ends[0], ends[1]))
    try:
        return Topology.of(nodes, pairs)
    except InvalidValue as error:
        raise InputError(str(error), path=path) from error


def _node(cell: str, number: dict[str, int]) -> int:
    """The node that a cell names; -1 for none."""
    if cell in number:
        return number[cell]
    return int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 9 else -1


def csv_text(circuits: Circuits, hosts: Sequence[str] = ()) -> str:
    """Circuits as `read_circuits` reads them, by name where there are names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(named(circuits, hosts))
    return text.getvalue()


def named(circuits: Circuits, hosts: Sequence[str]) -> list[tuple[int | str, int | str]]:
    """Circuits by names of hosts, or by numbers where nodes have none."""
    return [(hosts[a], hosts[b]) if hosts else (a, b) for a, b in circuits]


def plan_told(planned: Planned, hosts: Sequence[str], identity: str) -> dict[str, Any]:
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
        "throughput": _finite(plan.throughput),
        "compute_throughput": _finite(plan.compute_throughput),
        "communication_throughput": _finite(plan.communication_throughput),
        "upper_bound": {**asdict(planned.bound), "throughput": _finite(planned.bound.throughput)},
        "improvement": _finite(_improvement(plan)),
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


def _trail_told(planned: Planned) -> list[dict[str, Any]]:
    numbers = ("throughput", "compute_throughput", "communication_throughput", "best")
    return [
        {**asdict(one), **{name: _finite(getattr(one, name)) for name in numbers}} for one in planned.trail
    ]


def _against(plan: CircuitPlan, hosts: Sequence[str]) -> dict[str, Any]:
    """The present circuits beside those that were found, and what pays for moving them."""
    saved = 1.0 / plan.present_throughput - 1.0 / plan.throughput
    profiles = plan.reconfiguration_seconds / saved if saved > 0.0 else math.nan
    return {
        "throughput": _finite(plan.present_throughput),
        "removed": named(plan.removed, hosts),
        "added": named(plan.inserted, hosts),
        "gain": _finite(plan.gain),
        "seconds_saved": saved,
        "break_even_profiles": _finite(profiles),
        "break_even_seconds": _finite(plan.break_even_seconds),
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
        _show_present(told["present"])
    state = "" if told["complete"] else " (interrupted: the best so far)"
    click.echo(f"saved as {told['configuration']}{state}")


def _show_present(against: dict[str, Any]) -> None:
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


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
