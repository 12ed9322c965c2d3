"""Options of commands that search or evaluate placements, gathered in a `PlacementRequest`.

Options of optical switches, and CSV files of circuits and of weights of ranks.

Options that name what to place and on which hosts, and the request that they make.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from almanac.options import (
    ROUTING_OPTIONS,
    Time,
    add_options,
    fabric_option,
    read_distance,
    read_hosts,
    read_layouts,
    read_lines,
    read_order,
    seed_option,
)
from almanac.output.circuits import CIRCUIT_COLUMNS
from almanac.output.printing import note

if TYPE_CHECKING:
    from almanac.job_environment import JobEnvironment
    from mapping.circuits.problem import Topology
    from mapping.placement.search import SearchOptions
    from mapping.questions.place import PlacementRequest
    from registry.model import Floats


F = TypeVar("F", bound=Callable[..., Any])
SECONDS = 10.0
"""Default time to search."""


def _objective(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Return the objective, or raise a usage error with the reason why it is invalid."""
    from mapping.placement.objective import parse_objective
    from registry.errors import AlmanacError

    try:
        parse_objective(value)
    except AlmanacError as error:
        raise click.BadParameter(error.reason) from error
    return value


_COSTS = (
    *ROUTING_OPTIONS,
    click.option(
        "--distance",
        type=click.Path(),
        metavar="NAME|FILE",
        help="Distances for hop-bytes: links, switches, equivalent, equivalent+2, or a CSV file.",
    ),
    click.option(
        "--background",
        metavar="ID[/SECONDS]",
        multiple=True,
        help="Add the load of another job's placement, sent once in SECONDS (repeat).",
    ),
    click.option("--at", type=Time(), help="Fabric at this time (default: now)."),
)
_SEARCH = (
    click.option(
        "--objective",
        default="congestion",
        show_default=True,
        callback=_objective,
        help="What to minimise, see docs/explanation/objectives.md.",
    ),
    click.option("--pin", "pins", metavar="RANK=HOST", multiple=True, help="Put a rank on a host (repeat)."),
)
_LIMITS = (
    click.option(
        "--seconds",
        type=click.FloatRange(min=0.0, min_open=True),
        help="Time to search [default: 10; 5 with --here and for each job of `advise jobs`].",
    ),
    click.option(
        "--steps",
        type=click.IntRange(min=1),
        help="Search steps instead of a time: the result is reproducible.",
    ),
    seed_option,
    click.option("--workers", type=click.IntRange(min=1), help="Threads (default: all; 2 with --steps)."),
)


def cost_options(function: F) -> F:
    """Add the options of the cost model to a command, which gets them as one argument: ``request``."""

    @wraps(function)
    def command(
        routing: str | None,
        rails: str,
        distance: str | None,
        background: tuple[str, ...],
        at: datetime | None,
        **others: Any,
    ) -> Any:
        from mapping.distances.cost_model import CostModel
        from mapping.questions.place import PlacementRequest

        convention, table = read_distance(distance)
        costs = CostModel(routing=routing, rails=rails, distance=convention, table=table)
        request = PlacementRequest(costs=costs, background=read_background(background), at=at)
        return function(request=request, **others)

    return cast(F, add_options(command, _COSTS))


def search_options(function: F) -> F:
    """Add the options of the search and the cost model to a command, as one argument: ``request``."""

    @wraps(function)
    def command(
        request: PlacementRequest,
        limits: SearchOptions,
        objective: str,
        pins: tuple[str, ...],
        **others: Any,
    ) -> Any:
        options = replace(limits, objective=objective)
        return function(request=replace(request, options=options, pins=read_pins(pins)), **others)

    return cast(F, add_options(limit_options(cost_options(command)), _SEARCH))


def limit_options(function: F) -> F:
    """Add the options that end a search to a command, which gets them as one argument: ``limits``."""

    @wraps(function)
    def command(
        seconds: float | None, steps: int | None, seed: int, workers: int | None, **others: Any
    ) -> Any:
        from mapping.placement.search import SearchOptions

        if seconds is not None and steps is not None:
            raise click.UsageError("give either --seconds or --steps")
        limit = SECONDS if seconds is None else seconds
        return function(
            limits=SearchOptions(seconds=limit, steps=steps, seed=seed, workers=workers), **others
        )

    return cast(F, add_options(command, _LIMITS))


def with_default_seconds(options: SearchOptions, seconds: float) -> SearchOptions:
    """Return the options with another default time to search, for use if ``--seconds`` was not given."""
    if click.get_current_context().params.get("seconds") is not None:
        return options
    return replace(options, seconds=seconds)


def read_pins(items: tuple[str, ...]) -> dict[int, str]:
    """Return the host of each rank from texts ``RANK=HOST``, or raise a usage error."""
    pins: dict[int, str] = {}
    for item in items:
        rank, equals, host = item.partition("=")
        if not (equals and host and rank.isdigit()):
            raise click.BadParameter(f"{item!r} is not of the form RANK=HOST", param_hint="--pin")
        if int(rank) in pins:
            raise click.BadParameter(f"rank {int(rank)} is pinned twice", param_hint="--pin")
        pins[int(rank)] = host
    return pins


def read_background(items: tuple[str, ...]) -> tuple[tuple[str, float | None], ...]:
    """Return placements and seconds from texts ``ID`` or ``ID/SECONDS``."""
    found: list[tuple[str, float | None]] = []
    for item in items:
        name, slash, seconds = item.partition("/")
        try:
            found.append((name, float(seconds) if slash else None))
        except ValueError:
            raise click.BadParameter(
                f"{item!r} is not of the form ID or ID/SECONDS", param_hint="--background"
            ) from None
    return tuple(found)


WEIGHT_COLUMNS = ("rank", "weight")


def switch_options(end: str, *, compute_default: str) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of an optical switch to a command.

    Args:
        end: Word for an end of a circuit: ``host`` or ``node``.
        compute_default: Default of ``--compute-seconds``, as text.
    """
    compute = (
        f"Time that each rank computes while it sends its profile; the ranks of a {end} compute one after "
        f"the other (default: {compute_default})."
    )
    speed = "Bytes/s of a circuit, both directions together."
    options = (
        click.option("--max-degree", type=int, help=f"Maximum number of circuits at a {end}."),
        click.option("--max-edges", type=int, help="Maximum number of circuits in all."),
        click.option("--link-speed", type=float, help=speed),
        click.option("--compute-seconds", type=float, help=compute),
    )
    return lambda command: add_options(command, options)


def read_circuits(path: str, nodes: int, hosts: Sequence[str] = ()) -> Topology:
    """Read the topology of a CSV file with the columns ``a,b`` and a row per circuit.

    Args:
        hosts: Names of the nodes in their order, which rows may use instead of numbers.

    Raises:
        InputError
    """
    from mapping.circuits.problem import Topology
    from registry.errors import InputError, InvalidValue

    number = {host: node for node, host in enumerate(hosts)}
    pairs: list[tuple[int, int]] = []
    for row in _rows(path, CIRCUIT_COLUMNS):
        ends = [_node(cell, number) for cell in row.cells]
        if len(ends) != 2 or -1 in ends:
            raise InputError(
                "expected two nodes: numbers from 0, or names of hosts",
                path=path,
                line=row.line,
                text=row.text,
            )
        pairs.append((ends[0], ends[1]))
    try:
        return Topology.of(nodes, pairs)
    except InvalidValue as error:
        raise InputError(error.named(), path=path) from error


def read_weights(path: str, ranks: int) -> Floats:
    """Read the weight of each rank from a CSV file with the columns ``rank,weight`` as float64[ranks].

    Raises:
        InputError: A rank that does not exist, is repeated or has no weight; a weight that is negative or not
            finite.
    """
    import numpy as np

    from registry.errors import InputError

    weight = np.full(ranks, np.nan)
    for row in _rows(path, WEIGHT_COLUMNS):
        rank, value = _weight(row.cells)
        if not (0 <= rank < ranks and math.isfinite(value) and value >= 0.0):
            reason = f"expected a rank from 0 to {ranks - 1} and a weight that is finite and not negative"
            raise InputError(reason, path=path, line=row.line, text=row.text)
        if not math.isnan(weight[rank]):
            raise InputError(f"rank {rank} is repeated", path=path, line=row.line, text=row.text)
        weight[rank] = value
    if np.isnan(weight).any():
        raise InputError(f"rank {int(np.argmax(np.isnan(weight)))} has no weight", path=path)
    return weight


class _Row(NamedTuple):
    """A row of a CSV file."""

    line: int
    cells: list[str]
    text: str


def _rows(path: str, columns: tuple[str, ...]) -> Iterator[_Row]:
    """Return the non-empty rows below a first line with these columns.

    Raises:
        InputError
    """
    from registry.errors import InputError

    lines = read_lines(path)
    if not lines or tuple(cell.strip() for cell in lines[0].split(",")) != columns:
        raise InputError(f"the first line must name the columns {','.join(columns)}", path=path, line=1)
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield _Row(number, [cell.strip() for cell in line.split(",")], line)


def _weight(cells: Sequence[str]) -> tuple[int, float]:
    """Return a rank and its weight, or rank -1 if the cells are invalid."""
    if len(cells) != 2:
        return -1, 0.0
    try:
        return _node(cells[0], {}), float(cells[1])
    except ValueError:
        return -1, 0.0


def _node(cell: str, number: dict[str, int]) -> int:
    """Return the number of the node in a cell, or -1 if it is none."""
    if cell in number:
        return number[cell]
    return int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 9 else -1


SECONDS_IN_JOB = 5.0
"""Default time to search inside a job script: the whole command must take less than 15 s there."""
_DATA = (
    click.argument("profile"),
    click.option("--job", help="Use the hosts and slots of this job."),
    click.option(
        "--cluster", help="Cluster of --hosts, or of --job if two clusters have a job with this id."
    ),
    click.option(
        "--hosts",
        metavar="HOSTLIST|@FILE",
        help="Hosts in launch order: node[01-16], or @FILE with one per line.",
    ),
    click.option(
        "--slots", type=click.IntRange(min=1), help="Ranks per host (default: those of the job, else 1)."
    ),
    click.option(
        "--here", "in_job", is_flag=True, help="Use the hosts and slots of the allocation of this process."
    ),
    fabric_option,
    click.option(
        "--keep", type=click.Path(), metavar="ID|FILE", help="Improve this placement by moving few ranks."
    ),
    click.option("--moves", type=click.IntRange(min=0), help="With --keep: maximum number of ranks to move."),
    click.option(
        "--consecutive",
        is_flag=True,
        help="Fill hosts with consecutive ranks, as torchrun and DeepSpeed do: search their order only.",
    ),
    click.option(
        "--strategy",
        "strategies",
        multiple=True,
        help="Use only this strategy (repeat); a+b refines the result of a with b.",
    ),
    click.option(
        "--seeds",
        type=click.IntRange(min=1),
        help="Times to run each strategy, with other random numbers [default: 1; see --scheduler].",
    ),
)


def placement_options(function: F) -> F:
    """Add the options of `DataOptions`, and ``--strategy``, to a command."""
    return cast(F, add_options(function, _DATA))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """Options that name what to place and on which hosts."""

    profile: str
    job: str | None
    cluster: str | None
    hosts: str | None
    slots: int | None
    in_job: bool
    fabric_files: tuple[str, ...]
    keep: str | None
    moves: int | None
    consecutive: bool
    seeds: int | None

    def check(self) -> None:
        """Raise a usage error if options are missing or exclude each other."""
        given = sum((self.job is not None, self.hosts is not None, self.in_job))
        if given > 1:
            raise click.UsageError("give only one of --job, --hosts and --here")
        if self.fabric_files and self.job is not None:
            raise click.UsageError("--job needs the database: not with --fabric")
        if not self.fabric_files and not self.in_job:
            if given == 0 and self.keep is None:
                raise click.UsageError("give --job, or --cluster with --hosts, or --here")
            if self.job is None and self.cluster is None:
                option = "--hosts needs --cluster" if self.hosts else "--keep needs --cluster, or --job"
                raise click.UsageError(option)
        if self.moves is not None and self.keep is None:
            raise click.UsageError("--moves goes with --keep")
        if self.consecutive and self.keep is not None:
            raise click.UsageError("give either --consecutive or --keep")

    def complete(
        self, request: PlacementRequest, strategies: tuple[str, ...], layouts: tuple[str, ...]
    ) -> PlacementRequest:
        """Return the request with these options; read their files, except the fabric and the profile."""
        environment = _read_environment() if self.in_job else None
        cluster = self.cluster or (None if environment is None else environment.cluster)
        named = None if self.hosts is None else read_hosts(self.hosts)
        keep = None if self.keep is None else read_order(self.keep)
        options = with_default_seconds(request.options, SECONDS_IN_JOB if self.in_job else SECONDS)
        return replace(
            request,
            profile=self.profile,
            job=self.job,
            cluster=cluster,
            hosts=named if environment is None else environment.hosts,
            slots=self.slots if environment is None else environment.slots,
            keep=keep or self.keep,
            options=replace(
                options,
                moves=self.moves,
                strategies=strategies or None,
                consecutive=self.consecutive,
                seeds=self.seeds,
            ),
            layouts=read_layouts(layouts),
        )


def _read_environment() -> JobEnvironment:
    from almanac.job_environment import read_environment

    environment = read_environment()
    slots, hosts = sum(environment.slots), len(environment.hosts)
    note(f"{slots} slots on {hosts} hosts, from {environment.source}")
    return environment
