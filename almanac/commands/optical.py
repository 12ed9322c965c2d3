"""``almanac cluster optical``: describe or show the optical switch of a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from almanac.options import export_option, json_option, open_registry, option_names, read_hosts
from almanac.output.circuits import circuit_csv, named_circuits, optical_switch_to_json
from almanac.output.printing import print_json, print_table, say, write_text
from almanac.placing_options import read_circuits, switch_options
from registry import units

if TYPE_CHECKING:
    from registry.registry import Registry
    from registry.store.circuit_plans import OpticalSwitch

SHOWN = 20
"""Circuits that are printed."""
REQUIRED = ("max_degree", "max_edges", "link_speed")
"""Options that are required for a switch that is not stored yet."""


@click.command("optical")
@click.argument("cluster")
@switch_options("host", compute_default="0, computing does not count")
@click.option(
    "--hosts",
    metavar="HOSTLIST|@FILE",
    help="Hosts on the switch, in the order of its nodes (default: all hosts of the cluster).",
)
@click.option(
    "--circuits",
    "file",
    type=click.Path(),
    metavar="FILE",
    help="Present circuits: a CSV file with the columns a,b and host names.",
)
@click.option(
    "--applied", metavar="ID", help="The present circuits are those of this plan of `almanac reconfigure`."
)
@export_option(lambda: ["circuits"], "Write the present circuits to a CSV file: circuits=FILE.")
@json_option
def optical(
    cluster: str,
    file: str | None,
    applied: str | None,
    exports: tuple[tuple[str, str], ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Store the data of CLUSTER's optical switch, or show it if no option is given.

    Values of options that are not given are kept. With other --hosts the present circuits become unknown.
    """
    if file is not None and applied is not None:
        raise click.UsageError("give either --circuits or --applied")
    given = {name: value for name, value in options.items() if value is not None}
    with open_registry() as registry:
        if given or file is not None:
            _save(registry, cluster, given, file)
        if applied is not None:
            _apply(registry, cluster, applied)
        switch = registry.optical.read(cluster)
    for _, path in exports:
        write_text(path, circuit_csv(switch.circuits, switch.hosts))
    if as_json:
        print_json(optical_switch_to_json(switch))
    else:
        _show(switch)


def _save(registry: Registry, cluster: str, given: dict[str, Any], file: str | None) -> None:
    """Save the given values, and keep the stored ones that are not given.

    Raises:
        InvalidValue, UnknownName, InputError
    """
    from registry.store.circuit_plans import OpticalSwitch

    fabric = registry.fabrics.read(cluster).fabric
    every = tuple(fabric.names[vertex] for vertex in fabric.hosts.tolist())
    stored = _stored(registry, cluster, given)
    named = given.pop("hosts", None)
    values: dict[str, Any] = {"hosts": every}
    if stored is not None:
        values = {name: getattr(stored, name) for name in ("hosts", "compute_seconds", *REQUIRED)}
    if named is not None:
        values["hosts"] = _hosts(named, every)
    if stored is not None and stored.hosts == values["hosts"] and file is None:
        values |= {"circuits": stored.circuits, "plan": stored.plan}
    switch = OpticalSwitch(cluster=cluster, **values | given)
    if file is not None:
        switch = _with_circuits(switch, file)
    registry.optical.save(switch)


def _stored(registry: Registry, cluster: str, given: dict[str, Any]) -> OpticalSwitch | None:
    """Return the stored switch, or None if there is none and all required options are given."""
    from registry.errors import UnknownName

    try:
        return registry.optical.read(cluster)
    except UnknownName:
        missing = [name for name in REQUIRED if name not in given]
    if missing:
        options = option_names(missing)
        raise click.UsageError(f"no optical switch of {cluster} is stored: give {options}")
    return None


def _hosts(text: str, every: tuple[str, ...]) -> tuple[str, ...]:
    """Return the hosts of an expression, which must be hosts of the cluster."""
    from registry.errors import UnknownName

    hosts = read_hosts(text)
    if unknown := sorted(set(hosts) - set(every)):
        raise UnknownName("host", unknown[0], every)
    return hosts


def _with_circuits(switch: OpticalSwitch, file: str) -> OpticalSwitch:
    """Return the switch with the circuits of a file, which must connect all hosts within its limits."""
    from mapping.questions.circuits import machine_of

    topology = read_circuits(file, len(switch.hosts), switch.hosts)
    topology.require(machine_of(switch))
    pairs = tuple(zip(topology.source.tolist(), topology.target.tolist(), strict=True))
    return replace(switch, circuits=pairs)


def _apply(registry: Registry, cluster: str, plan: str) -> None:
    """Mark a plan of this cluster as applied.

    Raises:
        UnknownName, InvalidValue
    """
    from registry.errors import InvalidValue

    found = registry.circuit_plans.read(plan)
    if found.cluster != cluster:
        owner = found.cluster or "no cluster"
        raise InvalidValue("applied", f"{found.id} is a plan of {owner}, not of {cluster}")
    registry.circuit_plans.apply(found.id)


def _show(switch: OpticalSwitch) -> None:
    """Print the data of a switch and its first circuits."""
    rows = [
        ["hosts", f"{len(switch.hosts)}, from {switch.hosts[0]} to {switch.hosts[-1]}"],
        ["circuits per host", f"at most {switch.max_degree}"],
        ["circuits", f"at most {switch.max_edges}; present: {len(switch.circuits) or 'unknown'}"],
        ["speed of a circuit", f"{units.text(switch.link_speed, units.RATE)}, both directions together"],
        ["computing time of a rank", units.text(switch.compute_seconds, units.SECONDS)],
        ["applied plan", switch.plan or "unknown"],
        ["stored at", "" if switch.at is None else units.moment_text(switch.at)],
    ]
    print_table("", ["", f"optical switch of {switch.cluster}"], rows)
    for one, other in named_circuits(switch.circuits, switch.hosts)[:SHOWN]:
        say(f"{one} - {other}")
    if len(switch.circuits) > SHOWN:
        say(f"and {len(switch.circuits) - SHOWN} more: --export circuits=FILE writes all of them")
