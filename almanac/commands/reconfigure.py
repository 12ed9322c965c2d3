"""``almanac reconfigure``: circuits of an optical switch for an application, or for the jobs that run now."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from almanac.commands import circuits, running
from almanac.commands.common import Moment, json_option, open_registry, option_names, seed_option
from almanac.output import note, print_json, progress_bars, write_text
from registry import units

if TYPE_CHECKING:
    from mapping.reconfiguration.model.problem import Machine
    from mapping.reconfiguration.model.topology import Topology
    from mapping.service import OnSwitch
    from mapping.service.answers.circuits import CircuitPlanReport, CircuitSearchOptions
    from registry.model import Floats
    from registry.progress import Progress
    from registry.records.optical_switches import OpticalSwitch
    from registry.registry import Registry

MACHINE = ("nodes", "max_degree", "max_edges", "link_speed")
"""Options that a cluster's switch tells."""
OF_PROFILES = ("weights", "start", "patience", "skip", "paper")
"""Options of searches that place ranks."""


@click.command("reconfigure")
@click.argument("profile", required=False)
@click.option("--cluster", help="For its optical switch: `almanac cluster optical` tells of it.")
@click.option("--at", type=Moment(), help="The jobs that ran then (default: now).")
@click.option("--nodes", type=int, help="Nodes on the switch; ranks share them.")
@click.option("--max-degree", type=int, help="Circuits that may end at a node.")
@click.option("--max-edges", type=int, help="Circuits that the switch can hold.")
@click.option("--link-speed", type=float, help="Bytes/s of a circuit, both directions together.")
@click.option(
    "--compute-seconds",
    type=float,
    help="That each rank computes while it sends what the profile holds, the ranks of a node one after the "
    "other (default: as told of the cluster's switch; else 1, and nothing for running jobs).",
)
@click.option(
    "--weights",
    type=click.Path(exists=True, dir_okay=False),
    help="CSV with the columns rank,weight: a rank computes its weight times --compute-seconds (default: 1).",
)
@click.option(
    "--start",
    metavar="NAME|FILE",
    help="First topology: condensed, torus, ring, chordal-ring-Q, or a CSV with the columns a,b.",
)
@click.option(
    "--present",
    metavar="FILE",
    help="The circuits that there are: which of them to move (default: as known of the cluster's switch).",
)
@click.option("--reconfiguration-seconds", type=click.FloatRange(min=0.0), help="That moving circuits takes.")
@click.option("--paper", is_flag=True, help="The loop of the paper alone, without our own search after it.")
@click.option("--patience", type=int, help="With --paper: iterations without gain after which to stop.")
@click.option("--skip", type=float, help="With --paper: probability of passing over a pair of circuits.")
@click.option("--trials", type=click.IntRange(min=0), help="Changes of circuits to try (default: 1000).")
@click.option(
    "--seconds", type=click.FloatRange(min=0.0), help="To search, about (default: until it is done)."
)
@seed_option
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="CSV of the circuits that were found.")
@click.option(
    "--routes", type=click.Path(dir_okay=False), help="CSV of the way of all that crosses circuits."
)
@json_option
def command(
    profile: str | None,
    cluster: str | None,
    at: datetime | None,
    output: str | None,
    routes: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Find circuits of an optical switch that let its nodes send most often what they have to.

    For PROFILE: circuits, a node for each rank and routes. With --cluster and without PROFILE: circuits for
    all jobs that run now, whose ranks stay where they are; which circuits to move, and when that has paid.

    Throughput is profiles a second: each rank computes and sends all that its profile holds once. What is
    found is saved; after Ctrl-C the best so far, marked incomplete.
    """
    ask = Ask(**asked)
    ask.check(profile, cluster, at)
    with open_registry() as registry, progress_bars() as progress:
        if profile is not None:
            found = _for_profile(registry, profile, cluster, ask, progress)
        else:
            assert cluster is not None
            found = _for_jobs(registry, cluster, at, ask, progress)
    if output is not None:
        write_text(output, circuits.circuit_rows(found.planned.plan.circuits, found.hosts))
        note(f"circuits written to {output}")
    if routes is not None:
        write_text(routes, circuits.route_rows(found.planned.plan, found.hosts))
        note(f"routes written to {routes}")
    if as_json:
        print_json(found.told)
    else:
        circuits.show_plan(found.title, found.told)
    if not found.planned.plan.complete:
        click.get_current_context().exit(130)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The machine, and how to search, as the options say."""

    nodes: int | None
    max_degree: int | None
    max_edges: int | None
    link_speed: float | None
    compute_seconds: float | None
    weights: str | None
    start: str | None
    present: str | None
    reconfiguration_seconds: float | None
    paper: bool
    patience: int | None
    skip: float | None
    trials: int | None
    seconds: float | None
    seed: int

    def check(self, profile: str | None, cluster: str | None, at: datetime | None) -> None:
        """Raise a usage error where options do not go together."""
        every = {name: getattr(self, name) for name in (*MACHINE, *OF_PROFILES)}
        given = {name for name, value in every.items() if value is not None and value is not False}
        if profile is None and cluster is None:
            raise click.UsageError("give PROFILE, --cluster, or both")
        if cluster is None and (missing := [name for name in MACHINE if name not in given]):
            raise click.UsageError(f"without --cluster give {option_names(missing)}")
        if cluster is not None and (told := [name for name in MACHINE if name in given]):
            raise click.UsageError(f"{option_names(told)}: `almanac cluster optical` tells that of a cluster")
        if profile is None and (placing := [name for name in OF_PROFILES if name in given]):
            raise click.UsageError(f"{option_names(placing)}: only with PROFILE, for running ranks stay")
        if at is not None and profile is not None:
            raise click.UsageError("--at is for running jobs: without PROFILE")
        if not self.paper and (self.patience is not None or self.skip is not None):
            raise click.UsageError("--patience and --skip go with --paper")
        if self.paper and self.trials is not None:
            raise click.UsageError("--trials is of our own search, not of --paper")
        if self.reconfiguration_seconds is not None and self.present is None and cluster is None:
            raise click.UsageError("--reconfiguration-seconds goes with --present or --cluster")

    def search(self, start: str | Topology | None, weight: Floats | None = None) -> CircuitSearchOptions:
        """How to search, from a first topology; weights of ranks, where there are any, by their digest."""
        from mapping.service.answers.circuits import CircuitSearchOptions
        from registry.model.circuit_plan import BEST, PAPER

        return CircuitSearchOptions(
            method=PAPER if self.paper else BEST,
            start=start,
            patience=self.patience,
            skip=self.skip,
            trials=self.trials,
            seconds=self.seconds,
            seed=self.seed,
            reconfiguration_seconds=self.reconfiguration_seconds,
            weights=None if weight is None else sha256(weight.tobytes()).hexdigest()[:12],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found and saved.

    Attributes
    ----------
    planned : Planned
    hosts : tuple of str
        Names of the nodes; empty where they have none.
    title : str
        Of the table.
    told : dict
        The JSON document.
    """

    planned: CircuitPlanReport
    hosts: tuple[str, ...]
    title: str
    told: dict[str, Any]


def _for_profile(
    registry: Registry, profile: str, cluster: str | None, ask: Ask, progress: Progress
) -> Found:
    from mapping.reconfiguration.model.problem import Application
    from mapping.service import save_circuits, topology_of
    from mapping.service.answers.circuits import plan_circuits

    stored = registry.profiles.read(profile)
    switch = None if cluster is None else registry.optical.read(cluster)
    hosts = () if switch is None else switch.hosts
    seconds = _compute_seconds(ask, switch)
    machine = _machine(ask, switch, seconds)
    present = None if switch is None else topology_of(switch)
    if ask.present is not None:
        present = circuits.read_circuits(ask.present, machine.nodes, hosts)
    start: str | Topology | None = ask.start
    if ask.start is not None and Path(ask.start).is_file():
        start = circuits.read_circuits(ask.start, machine.nodes, hosts)
    ranks = stored.profile.ranks
    weight = None if ask.weights is None else circuits.read_weights(ask.weights, ranks)
    planned = plan_circuits(
        Application.of_profile(stored.profile, weight),
        machine,
        ask.search(start, weight),
        present=present,
        progress=progress,
    )
    if ask.compute_seconds is None:
        _tell_limit(planned, seconds)
    identity = save_circuits(registry, planned, [stored.id], [ranks], switch=switch)
    told = {
        "profile": stored.profile.name,
        "cluster": cluster,
        "ranks": ranks,
        "compute_seconds": seconds,
        "weights": ask.weights,
        **circuits.plan_told(planned, hosts, identity),
        "start": ask.start,
    }
    where = "" if cluster is None else f" of {cluster}"
    title = f"{stored.profile.name}: {ranks} ranks on {machine.nodes} nodes{where}"
    return Found(planned=planned, hosts=hosts, title=title, told=told)


def _for_jobs(registry: Registry, cluster: str, at: datetime | None, ask: Ask, progress: Progress) -> Found:
    from mapping.service import next_circuits, on_switch, save_next_circuits

    on = on_switch(registry, cluster, at)
    running.tell_left_out(on)
    switch, hosts = on.switch, on.switch.hosts
    present = None
    if ask.present is not None:
        present = circuits.read_circuits(ask.present, len(hosts), hosts)
    if present is None and not switch.circuits:
        note(
            f"the present circuits of {cluster} are not known, so that no gain can be told: give --present, "
            f"or tell them once: almanac cluster optical {cluster} --circuits FILE"
        )
    planned = next_circuits(
        on, ask.search(None), present=present, compute_seconds=ask.compute_seconds, progress=progress
    )
    identity = save_next_circuits(registry, planned, on)
    told = {
        **_heading(on),
        "compute_seconds": switch.compute_seconds if ask.compute_seconds is None else ask.compute_seconds,
        **circuits.plan_told(planned, hosts, identity),
    }
    when = units.moment_text(on.running.at)
    title = f"{cluster} at {when}: {len(on.jobs)} of {len(on.running.jobs)} running jobs, their ranks stay"
    return Found(planned=planned, hosts=hosts, title=title, told=told)


def _heading(on: OnSwitch) -> dict[str, Any]:
    """What runs, as JSON."""
    return {
        **running.fabric_told(on),
        **running.left_out_told(on),
        "jobs": [
            {
                "job": job.stored.job.id,
                "user": job.stored.job.user,
                "application": job.application,
                "profile": profile.name,
                "ranks": ranks,
            }
            for job, profile, ranks in zip(on.jobs, on.profiles, on.ranks, strict=True)
        ],
    }


def _tell_limit(planned: CircuitPlanReport, seconds: float) -> None:
    """Say that computing is the limit, of which nothing was told."""
    plan = planned.plan
    if plan.compute_throughput < plan.communication_throughput:
        note(
            f"computing is the limit, at {seconds:g} s a rank; circuits allow "
            f"{plan.communication_throughput:.4g} profiles a second: give --compute-seconds"
        )


def _compute_seconds(ask: Ask, switch: OpticalSwitch | None) -> float:
    """That each rank of a profile computes: without any, all ranks were best on one node.

    Raises
    ------
    InvalidValue
    """
    from registry.errors import InvalidValue

    told = ask.compute_seconds
    if told is None:
        return switch.compute_seconds if switch is not None and switch.compute_seconds > 0.0 else 1.0
    if not (math.isfinite(told) and told > 0.0):
        raise InvalidValue("compute_seconds", f"is {told}, must be finite and above zero")
    return told


def _machine(ask: Ask, switch: OpticalSwitch | None, seconds: float) -> Machine:
    from mapping.reconfiguration.model.problem import Machine
    from mapping.service import machine_of

    if switch is not None:
        return machine_of(switch, seconds)
    assert ask.nodes is not None
    assert ask.max_degree is not None
    assert ask.max_edges is not None
    assert ask.link_speed is not None
    return Machine(
        nodes=ask.nodes,
        max_degree=ask.max_degree,
        max_edges=ask.max_edges,
        compute_speed=1.0 / seconds,
        link_speed=ask.link_speed,
    )
