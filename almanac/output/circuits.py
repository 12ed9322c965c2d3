"""Output of circuit plans: tables, CSV of circuits and of routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from almanac.output.json.circuits import named_circuits
from almanac.output.printing import print_table, say, whole
from registry import units
from registry.csv_text import csv_text

if TYPE_CHECKING:
    from registry.model import CircuitPlan
    from registry.model.circuit_plan import Circuits

CIRCUIT_COLUMNS = ("a", "b")
"""Columns of a file of circuits: two nodes, by number from 0 or by name."""
ROUTE_COLUMNS = ("one", "other", "bytes", "route")
"""Columns of a file of routes: two ranks (or two hosts, if ranks stay), bytes, nodes separated by blanks."""
BUSIEST = 10
"""Circuits that are printed."""


def circuit_csv(circuits: Circuits, hosts: Sequence[str] = ()) -> str:
    """Return CSV text of circuits that `almanac.options.circuits.read_circuits` reads."""
    return csv_text(CIRCUIT_COLUMNS, named_circuits(circuits, hosts))


def route_csv(plan: CircuitPlan, hosts: Sequence[str] = ()) -> str:
    """Return CSV text with the route between each pair of ranks, or of hosts if ranks stay.

    Traffic within a node has no row.
    """
    routes = plan.routes
    assert routes is not None
    flows = routes.crossing
    ends = tuple(zip(routes.one[flows].tolist(), routes.other[flows].tolist(), strict=True))
    pairs = named_circuits(ends, hosts if routes.of_nodes else ())
    rows = []
    for (one, other), size, way in zip(pairs, routes.bytes[flows].tolist(), plan.ways(flows), strict=True):
        nodes = " ".join(hosts[node] if hosts else str(node) for node in way)
        rows.append((one, other, whole(size), nodes))
    return csv_text(ROUTE_COLUMNS, rows)


def show_circuit_plan(title: str, fields: dict[str, Any]) -> None:
    """Print a circuit plan as tables.

    Parameters
    ----------
    fields : dict
        JSON document of the plan.
    """
    bound, limits = fields["upper_bound"], f"at most {fields['max_edges']}, {fields['max_degree']} per node"
    rows = [
        ["throughput", _rate_text(fields["throughput"]), ""],
        ["limit by computing", _rate_text(fields["compute_throughput"]), ""],
        ["limit by circuits", _rate_text(fields["communication_throughput"]), ""],
        ["certified upper bound", _rate_text(bound["throughput"]), f"{bound['name']}: {bound['proof']}"],
        [
            "relative to first topology",
            _ratio_text(fields["improvement"]),
            f"{len(fields['trail']) - 1} steps",
        ],
        ["circuits", str(len(fields["circuits"])), limits],
    ]
    print_table(title, ["", "value", "limit or proof"], rows)
    busiest = sorted(fields["circuits"], key=lambda one: -one["bytes"])[:BUSIEST]
    print_table(
        "busiest circuits",
        ["circuit", "bytes per profile"],
        [[f"{one['a']} - {one['b']}", units.text(one["bytes"], units.BYTES)] for one in busiest],
    )
    if fields["present"] is not None:
        show_circuit_moves(fields["present"])
    state = "" if fields["complete"] else " (interrupted: the best so far)"
    say(f"saved as {fields['circuit_plan']}{state}")


def show_circuit_moves(moves: dict[str, Any]) -> None:
    """Print the circuits to move, and the gain.

    Parameters
    ----------
    moves : dict
        Key ``present`` of a plan's JSON document.
    """
    if moves["seconds_saved"] <= 0.0:
        say("keep the present circuits: no better ones were found")
        return
    for key in ("removed", "added"):
        circuits = ", ".join(f"{a} - {b}" for a, b in moves[key])
        say(f"{key} ({len(moves[key])}): {circuits or 'none'}")
    say(f"{_ratio_text(moves['gain'])} the present throughput")
    if moves["break_even_profiles"] is not None:
        say(
            f"moving the circuits pays off after {moves['break_even_profiles']:.6g} profiles, "
            f"{units.text(moves['break_even_seconds'], units.SECONDS)}"
        )


def _rate_text(value: float | None) -> str:
    return "no limit" if value is None else f"{value:.6g} profiles/s"


def _ratio_text(value: float | None) -> str:
    return "no limit" if value is None else f"{value:.3f} times"
