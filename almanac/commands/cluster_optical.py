"""``almanac cluster optical``: what is known of a cluster's optical switch: hosts, limits and circuits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from almanac.commands import circuits
from almanac.commands.common import json_option, open_registry, option_names, read_hosts
from almanac.output import print_json, print_table, write_text
from registry import units

if TYPE_CHECKING:
    from registry.records.optical_switches import OpticalSwitch
    from registry.registry import Registry

SHOWN = 20
"""Circuits that are shown."""
NEEDED = ("max_degree", "max_edges", "link_speed")
"""What has to be told of a switch that was not known before."""


@click.command("optical")
@click.argument("cluster")
@click.option("--max-degree", type=int, help="Circuits that may end at a host.")
@click.option("--max-edges", type=int, help="Circuits that the switch can hold.")
@click.option("--link-speed", type=float, help="Bytes/s of a circuit, both directions together.")
@click.option(
    "--compute-seconds",
    type=float,
    help="That each rank computes while it sends what its profile holds, the ranks of a host one after the "
    "other (default: 0, computing does not count).",
)
@click.option(
    "--hosts",
    metavar="HOSTLIST|@FILE",
    help="Hosts on the switch, in the order of its nodes (default: all of the cluster).",
)
@click.option(
    "--circuits", "file", metavar="FILE", help="As it is set now: a CSV with the columns a,b, hosts by name."
)
@click.option("--applied", metavar="ID", help="It was set as this saved plan of `almanac reconfigure` says.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="CSV of the present circuits.")
@json_option
def optical(
    cluster: str,
    file: str | None,
    applied: str | None,
    output: str | None,
    as_json: bool,
    **told: Any,
) -> None:
    """Tell of the optical switch of CLUSTER, or show what is known of it.

    Options that are not given leave what is known; other hosts make its circuits unknown.
    """
    if file is not None and applied is not None:
        raise click.UsageError("--circuits and --applied tell the same")
    given = {name: value for name, value in told.items() if value is not None}
    with open_registry() as registry:
        if given or file is not None:
            _tell(registry, cluster, given, file)
        if applied is not None:
            _apply(registry, cluster, applied)
        switch = registry.optical.read(cluster)
    if output is not None:
        write_text(output, circuits.circuit_rows(switch.circuits, switch.hosts))
    if as_json:
        print_json(_told(switch))
    else:
        _show(switch)


def _tell(registry: Registry, cluster: str, given: dict[str, Any], file: str | None) -> None:
    """Save what is told beside what is known.

    Raises
    ------
    InvalidValue, UnknownName, InputError
    """
    from registry.records.optical_switches import OpticalSwitch

    fabric = registry.fabrics.read(cluster).fabric
    every = tuple(fabric.names[vertex] for vertex in fabric.hosts.tolist())
    known = _known(registry, cluster, given)
    named = given.pop("hosts", None)
    values: dict[str, Any] = {"hosts": every}
    if known is not None:
        values = {name: getattr(known, name) for name in ("hosts", "compute_seconds", *NEEDED)}
    if named is not None:
        values["hosts"] = _hosts(named, every)
    if known is not None and known.hosts == values["hosts"] and file is None:
        values |= {"circuits": known.circuits, "plan": known.plan}
    switch = OpticalSwitch(cluster=cluster, **values | given)
    if file is not None:
        switch = _with_circuits(switch, file)
    registry.optical.save(switch)


def _known(registry: Registry, cluster: str, given: dict[str, Any]) -> OpticalSwitch | None:
    """The switch of a cluster; None where nothing is known of one, and enough is told."""
    from registry.errors import UnknownName

    try:
        return registry.optical.read(cluster)
    except UnknownName:
        missing = [name for name in NEEDED if name not in given]
    if missing:
        told = option_names(missing)
        raise click.UsageError(f"nothing is known of an optical switch of {cluster}: give {told}")
    return None


def _hosts(text: str, every: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts that are named, all of the cluster."""
    from registry.errors import UnknownName

    hosts = read_hosts(text)
    if unknown := sorted(set(hosts) - set(every)):
        raise UnknownName("host", unknown[0], every)
    return hosts


def _with_circuits(switch: OpticalSwitch, file: str) -> OpticalSwitch:
    """The switch, set as a file says: circuits that join all hosts, within its limits."""
    from mapping.service import machine_of

    topology = circuits.read_circuits(file, len(switch.hosts), switch.hosts)
    topology.require(machine_of(switch))
    pairs = tuple(zip(topology.source.tolist(), topology.target.tolist(), strict=True))
    return replace(switch, circuits=pairs)


def _apply(registry: Registry, cluster: str, plan: str) -> None:
    """Mark a plan of this cluster as applied.

    Raises
    ------
    UnknownName, InvalidValue
    """
    from registry.errors import InvalidValue

    found = registry.circuit_plans.read(plan)
    if found.cluster != cluster:
        of = f"is of {found.cluster}" if found.cluster else "is of no cluster"
        raise InvalidValue("applied", f"{found.id} {of}, not of {cluster}")
    registry.circuit_plans.apply(found.id)


def _told(switch: OpticalSwitch) -> dict[str, Any]:
    """The documented JSON keys."""
    return {
        "cluster": switch.cluster,
        "hosts": list(switch.hosts),
        "max_degree": switch.max_degree,
        "max_edges": switch.max_edges,
        "link_speed": switch.link_speed,
        "compute_seconds": switch.compute_seconds,
        "circuits": circuits.named(switch.circuits, switch.hosts) if switch.circuits else None,
        "configuration": switch.plan or None,
        "told_at": switch.at,
    }


def _show(switch: OpticalSwitch) -> None:
    rows = [
        ["hosts", f"{len(switch.hosts)}, from {switch.hosts[0]} to {switch.hosts[-1]}"],
        ["circuits at a host", f"at most {switch.max_degree}"],
        ["circuits", f"at most {switch.max_edges}, {len(switch.circuits) or 'unknown which'} now"],
        ["speed of a circuit", f"{units.text(switch.link_speed, units.RATE)}, both directions together"],
        ["a rank computes", units.text(switch.compute_seconds, units.SECONDS)],
        ["set by plan", switch.plan or "unknown"],
        ["told", "" if switch.at is None else units.moment_text(switch.at)],
    ]
    print_table("", ["", f"optical switch of {switch.cluster}"], rows)
    for one, other in circuits.named(switch.circuits, switch.hosts)[:SHOWN]:
        click.echo(f"{one} - {other}")
    if len(switch.circuits) > SHOWN:
        click.echo(f"and {len(switch.circuits) - SHOWN} more: --output FILE writes all")
