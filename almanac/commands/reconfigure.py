"""``almanac reconfigure``: plan the circuits of an optical switch for an application or for running jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from almanac.options import (
    Time,
    export_option,
    json_option,
    open_registry,
    option_names,
    optional_cluster,
    scheduler_option,
    seed_option,
)
from almanac.output.circuits import (
    circuit_csv,
    circuit_plan_to_json,
    jobs_on_switch_to_json,
    route_csv,
    show_circuit_plan,
)
from almanac.output.printing import kernel_progress_bars, note, print_json, write_text
from almanac.output.running_jobs import note_omitted_jobs
from almanac.placing_options import read_circuits, read_weights, switch_options
from registry import units

if TYPE_CHECKING:
    from mapping.circuits.problem import Machine, Topology
    from mapping.questions.circuits import CircuitPlanReport, CircuitPlanRequest, CircuitSearchOptions
    from registry.model import Floats
    from registry.progress import Progress
    from registry.registry import Registry

MACHINE = ("nodes", "max_degree", "max_edges", "link_speed")
"""Options whose values are stored with a cluster's switch."""
PLACING = ("weights", "start", "patience", "skip", "steps", "expansion", "paper")
"""Options of searches that place ranks."""
OF_LOOP = ("patience", "skip", "steps", "expansion")
"""Options of the loop of the paper."""


@click.command("reconfigure")
@click.argument("profile", required=False)
@click.option("--cluster", help="Plan for the optical switch of this cluster: see `almanac cluster optical`.")
@click.option("--at", type=Time(), help="Jobs that ran at this time (default: now).")
@click.option("--nodes", type=int, help="Nodes on the switch; several ranks may share a node.")
@switch_options("node", compute_default="as stored for the cluster's switch; else 1, or 0 for running jobs")
@click.option(
    "--weights",
    type=click.Path(exists=True, dir_okay=False),
    help="CSV file with the columns rank,weight: each rank computes its weight times --compute-seconds "
    "(default: 1).",
)
@click.option(
    "--start",
    type=click.Path(),
    metavar="NAME|FILE",
    help="First topology: condensed, torus, ring, chordal-ring-Q (-Q-Q: chords of several lengths), or a CSV "
    "file with the columns a,b.",
)
@click.option(
    "--present",
    type=click.Path(),
    metavar="FILE",
    help="Present circuits, to report which of them to move (default: as stored for the cluster's switch).",
)
@click.option(
    "--reconfiguration-seconds", type=click.FloatRange(min=0.0), help="Time that moving circuits takes."
)
@click.option("--paper", is_flag=True, help="Run only the loop of the paper of 2013, without our own search.")
@click.option("--patience", type=int, help="With --paper: iterations without gain after which to stop.")
@click.option("--skip", type=float, help="With --paper: probability of skipping a pair of circuits.")
@click.option("--steps", type=click.IntRange(min=0), help="With --paper: most steps of each refinement.")
@click.option(
    "--expansion",
    type=click.Choice(["lowest", "highest"]),
    help="With --paper: match edges of the lowest or the highest expansion first [default: lowest].",
)
@click.option("--trials", type=click.IntRange(min=0), help="Changes of circuits to try [default: 1000].")
@click.option(
    "--seconds", type=click.FloatRange(min=0.0), help="Approximate time to search (default: no limit)."
)
@seed_option
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="Searches with this and the following seeds; the best is kept [default: 1; with --scheduler one for "
    "each thread there].",
)
@scheduler_option("the searches of several seeds")
@export_option(
    lambda: ["circuits", "routes"],
    "Write a CSV file: circuits=FILE has the planned circuits, routes=FILE the routes over them.",
)
@json_option
def command(
    profile: str | None,
    cluster: str | None,
    at: datetime | None,
    exports: tuple[tuple[str, str], ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Plan circuits of an optical switch that give its nodes the highest throughput.

    For PROFILE: find circuits, a node for each rank, and routes. With --cluster and without PROFILE: find
    circuits for all running jobs, whose ranks stay; report which circuits to move and when that pays off.

    Throughput is counted in profiles per second: each rank computes and sends its profile once. The plan is
    saved, after Ctrl-C the best one so far, marked as incomplete.
    """
    given = ReconfigureOptions(**options)
    given.check(profile, cluster, at)
    from mapping.questions.circuits import CircuitPlanRequest

    request = CircuitPlanRequest(
        profile=profile,
        cluster=cluster,
        at=at,
        compute_seconds=given.compute_seconds,
        machine=given.machine(),
    )
    with open_registry() as registry, kernel_progress_bars() as progress:
        planned = _plan(registry, request, given, progress)
    plan, hosts, fields = planned.plan, planned.case.hosts, _fields(planned, given)
    for name, path in exports:
        text = circuit_csv(plan.circuits, hosts) if name == "circuits" else route_csv(plan, hosts)
        write_text(path, text)
        note(f"{name} written to {path}")
    if as_json:
        print_json(fields)
    else:
        show_circuit_plan(_title(planned), fields)
    if not plan.complete:
        click.get_current_context().exit(130)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconfigureOptions:
    """Options of the switch and of the search."""

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
    steps: int | None
    expansion: str | None
    trials: int | None
    seconds: float | None
    seed: int
    seeds: int | None
    scheduler: str | None

    def check(self, profile: str | None, cluster: str | None, at: datetime | None) -> None:
        """Raise a usage error if options are missing or exclude each other."""
        every = {name: getattr(self, name) for name in (*MACHINE, *PLACING)}
        given = {name for name, value in every.items() if value is not None and value is not False}
        if profile is None and cluster is None:
            raise click.UsageError("give PROFILE, --cluster, or both")
        if cluster is None and (missing := [name for name in MACHINE if name not in given]):
            raise click.UsageError(f"without --cluster give {option_names(missing)}")
        if cluster is not None and (stored := [name for name in MACHINE if name in given]):
            names = option_names(stored)
            raise click.UsageError(f"{names}: stored with a cluster by `almanac cluster optical`")
        if profile is None and (placing := [name for name in PLACING if name in given]):
            raise click.UsageError(f"{option_names(placing)}: only with PROFILE, because running ranks stay")
        if at is not None and profile is not None:
            raise click.UsageError("--at is for running jobs: not with PROFILE")
        if not self.paper and (of_loop := [name for name in OF_LOOP if name in given]):
            raise click.UsageError(f"{option_names(of_loop)}: only with --paper")
        if self.paper and self.trials is not None:
            raise click.UsageError("--trials is an option of our own search: not with --paper")
        if self.reconfiguration_seconds is not None and self.present is None and cluster is None:
            raise click.UsageError("--reconfiguration-seconds goes with --present or --cluster")

    def machine(self) -> Machine | None:
        """Return the nodes and circuits of the options, or None if they are those of a cluster."""
        from mapping.circuits.problem import Machine

        if self.nodes is None or self.max_degree is None or self.max_edges is None or self.link_speed is None:
            return None
        return Machine(
            nodes=self.nodes,
            max_degree=self.max_degree,
            max_edges=self.max_edges,
            compute_speed=1.0,
            link_speed=self.link_speed,
        )

    def search(self, start: str | Topology | None, weight: Floats | None = None) -> CircuitSearchOptions:
        """Return the options of the search.

        Args:
            start: First topology.
            weight (float64[ranks]): Weights of ranks, which are stored with the plan by their digest.
        """
        from mapping.questions.circuits import CircuitSearchOptions
        from registry.model.circuit_plan import BEST, PAPER

        return CircuitSearchOptions(
            method=PAPER if self.paper else BEST,
            start=start,
            patience=self.patience,
            skip=self.skip,
            steps=self.steps,
            expansion=self.expansion,
            trials=self.trials,
            seconds=self.seconds,
            seed=self.seed,
            reconfiguration_seconds=self.reconfiguration_seconds,
            weights=None if weight is None else sha256(weight.tobytes()).hexdigest()[:12],
        )


def _plan(
    registry: Registry, request: CircuitPlanRequest, given: ReconfigureOptions, progress: Progress
) -> CircuitPlanReport:
    """Find and save circuits: for a profile with a node for each rank, or for the running jobs."""
    from mapping.circuits.problem import Application
    from mapping.questions.circuits import circuit_case, plan_circuits_of_seeds, save_circuits

    case = circuit_case(registry, request)
    nodes, hosts, jobs = case.machine.nodes, case.hosts, case.jobs
    if jobs is not None:
        note_omitted_jobs(jobs)
    if given.present is not None:
        case = replace(case, present=read_circuits(given.present, nodes, hosts))
    elif jobs is not None and case.present is None:
        note(
            f"the present circuits of {request.cluster} are unknown, so the gain is unknown: give --present "
            f"FILE, or store them with `almanac cluster optical {request.cluster} --circuits FILE`"
        )
    start: str | Topology | None = given.start
    if given.start is not None and Path(given.start).is_file():
        start = read_circuits(given.start, nodes, hosts)
    weight = None
    if given.weights is not None:
        profile = case.profiles[0].profile
        weight = read_weights(given.weights, profile.ranks)
        case = replace(case, application=Application.of_profile(profile, weight))
    with optional_cluster(given.scheduler) as machines:
        seeds = given.seeds or (1 if machines is None else machines.threads)
        planned = plan_circuits_of_seeds(case, given.search(start, weight), seeds, progress, machines)
    if jobs is None and given.compute_seconds is None:
        _note_compute_limit(planned)
    return save_circuits(registry, planned)


def _title(planned: CircuitPlanReport) -> str:
    """Return the title of the table: what was planned for."""
    case = planned.case
    if case.jobs is not None:
        running = case.jobs.running
        cluster, time = running.snapshot.cluster, units.moment_text(running.at)
        jobs = f"{len(case.jobs.jobs)} of {len(running.jobs)} running jobs"
        return f"{cluster} at {time}: {jobs}, whose ranks stay"
    profile, where = case.profiles[0].profile, "" if case.switch is None else f" of {case.switch.cluster}"
    return f"{profile.name}: {profile.ranks} ranks on {case.machine.nodes} nodes{where}"


def _fields(planned: CircuitPlanReport, given: ReconfigureOptions) -> dict[str, Any]:
    """Return the JSON document."""
    case, plan = planned.case, circuit_plan_to_json(planned)
    if case.jobs is not None:
        jobs = jobs_on_switch_to_json(case.jobs, case.profiles)
        return {**jobs, "compute_seconds": case.compute_seconds, **plan}
    profile = case.profiles[0].profile
    return {
        "profile": profile.name,
        "cluster": None if case.switch is None else case.switch.cluster,
        "ranks": profile.ranks,
        "compute_seconds": case.compute_seconds,
        "weights": given.weights,
        **plan,
        "start_topology": given.start,
    }


def _note_compute_limit(planned: CircuitPlanReport) -> None:
    """Print a note if the default computing time limits the throughput."""
    plan, seconds = planned.plan, planned.case.compute_seconds
    if plan.compute_throughput < plan.communication_throughput:
        note(
            f"computing limits the throughput, at the default of {seconds:g} s per rank; the circuits allow "
            f"{plan.communication_throughput:.4g} profiles/s: give --compute-seconds"
        )
