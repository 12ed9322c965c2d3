"""Options that commands which search or judge placements share, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from almanac.commands.common import Moment, seed_option

if TYPE_CHECKING:
    from mapping.distances.distance_tables import DistanceTable
    from mapping.placement.case import PlacementCase
    from mapping.service import PlacementRequest
    from registry.model import Fabric, HostOrder, IntendedWiring, Profile
    from registry.model.host_layout import HostLayout

F = TypeVar("F", bound=Callable[..., Any])
SECONDS = 10.0
"""Time to search unless told."""


def _objective(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """The text, or a usage error that says what is wrong with it."""
    from mapping.placement.problem.objective import check_objective
    from registry.errors import AlmanacError

    try:
        check_objective(value)
    except AlmanacError as error:
        raise click.BadParameter(error.reason) from error
    return value


MEASURING = (
    click.option("--routing", help="Routes: docs/mapping/routing.md (default: tables where complete)."),
    click.option(
        "--rails", default="all-connected", show_default=True, help="Or same-rail: docs/congestion.md."
    ),
    click.option(
        "--distance", metavar="NAME|FILE", help="links, switches, equivalent, equivalent+2, or a CSV."
    ),
    click.option(
        "--background",
        metavar="ID[/SECONDS]",
        multiple=True,
        help="Another job's placement: its load is there too.",
    ),
    click.option("--at", type=Moment(), help="On the fabric as of this time (default: now)."),
)
"""How placements are measured."""
SEARCHING = (
    click.option(
        "--objective",
        default="congestion",
        show_default=True,
        callback=_objective,
        help="Others: docs/mapping/objectives.md.",
    ),
    click.option("--pin", "pins", metavar="RANK=HOST", multiple=True, help="A rank that must sit on a host."),
    click.option(
        "--seconds", type=click.FloatRange(min=0.0, min_open=True), help="Time to search [default: 10]."
    ),
    click.option(
        "--steps", type=click.IntRange(min=1), help="Proposals instead of seconds: repeatable bytes."
    ),
    seed_option,
    click.option("--workers", type=click.IntRange(min=1), help="Threads (default: all; 2 with --steps)."),
)
"""How placements are searched."""


def measuring(function: F) -> F:
    """Add `MEASURING` to a command, which gets them as one argument: ``request``."""

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
        from mapping.service import PlacementRequest

        convention, table = read_distance(distance)
        costs = CostModel(routing=routing, rails=rails, distance=convention, table=table)
        request = PlacementRequest(costs=costs, background=read_background(background), at=at)
        return function(request=request, **others)

    return cast(F, _with_options(command, MEASURING))


def searching(function: F) -> F:
    """Add `SEARCHING` and `MEASURING` to a command, which gets them as one argument: ``request``."""

    @wraps(function)
    def command(
        request: PlacementRequest,
        objective: str,
        pins: tuple[str, ...],
        seconds: float | None,
        steps: int | None,
        seed: int,
        workers: int | None,
        **others: Any,
    ) -> Any:
        from mapping.placement.search.options import SearchOptions

        if seconds is not None and steps is not None:
            raise click.UsageError("give either --seconds or --steps")
        limit = SECONDS if seconds is None else seconds
        options = SearchOptions(objective=objective, seconds=limit, steps=steps, seed=seed, workers=workers)
        return function(request=replace(request, options=options, pins=read_pins(pins)), **others)

    return cast(F, _with_options(measuring(command), SEARCHING))


def with_default_seconds(request: PlacementRequest, seconds: float) -> PlacementRequest:
    """Return the request with another time to search, if ``--seconds`` was not given."""
    if click.get_current_context().params.get("seconds") is not None:
        return request
    return replace(request, options=replace(request.options, seconds=seconds))


def _with_options(command: Any, options: tuple[Callable[[Any], Any], ...]) -> Any:
    for option in reversed(options):
        command = option(command)
    return command


def read_layouts(items: tuple[str, ...]) -> dict[str, HostLayout]:
    """Layouts by host of ``HOST=FILE`` or ``FILE``, also a folder or archive; one FILE alone is all hosts'.

    Raises
    ------
    InputError
    """
    from ingest.formats.hosts.hwloc_xml import read_layout
    from ingest.reading.source import read_paths

    read: list[tuple[str, str, HostLayout]] = []
    for item in items:
        host, equals, path = ("", "", item) if Path(item).exists() else item.partition("=")
        for group in read_paths([path if equals else item]):
            read += [(host if equals else "", file.path, read_layout(file)) for file in group.files]
    found: dict[str, HostLayout] = {}
    for host, path, layout in read:
        name = host or ("" if len(read) == 1 else layout.name)
        if not name and len(read) > 1:
            raise click.BadParameter(f"{path} does not name its host: HOST=FILE", param_hint="--layout")
        if name in found:
            raise click.BadParameter(f"host {name} has two layouts", param_hint="--layout")
        found[name] = layout
    return found


def read_pins(items: tuple[str, ...]) -> dict[int, str]:
    """Rank -> host of ``RANK=HOST``; a usage error where one is not, or a rank comes twice."""
    pins: dict[int, str] = {}
    for item in items:
        rank, equals, host = item.partition("=")
        if not (equals and host and rank.isdigit()):
            raise click.BadParameter(f"{item!r} is not RANK=HOST", param_hint="--pin")
        if int(rank) in pins:
            raise click.BadParameter(f"rank {int(rank)} is pinned twice", param_hint="--pin")
        pins[int(rank)] = host
    return pins


def read_background(items: tuple[str, ...]) -> tuple[tuple[str, float | None], ...]:
    """Placement and seconds of ``ID`` or ``ID/SECONDS``."""
    found: list[tuple[str, float | None]] = []
    for item in items:
        name, slash, seconds = item.partition("/")
        try:
            found.append((name, float(seconds) if slash else None))
        except ValueError:
            raise click.BadParameter(f"{item!r} is not ID/SECONDS", param_hint="--background") from None
    return tuple(found)


def read_distance(text: str | None) -> tuple[str | None, DistanceTable | None]:
    """A convention, or the table of a CSV file."""
    if text is None:
        return None, None
    from mapping.distances.distances import CONVENTIONS, TABLE

    if text in CONVENTIONS or not Path(text).exists():
        return text, None
    from mapping.distances.distance_tables import read_distance_table

    return TABLE, read_distance_table(text)


def read_order(placement: str, cluster: str) -> HostOrder | None:
    """The hosts of each rank where the argument is a launcher's file; None where it is an id.

    Raises
    ------
    InputError
    """
    if not Path(placement).exists():
        return None
    from ingest.options import Options
    from ingest.pipeline import plan
    from registry.errors import InputError

    intake = plan([placement], Options(cluster=cluster))
    if len(intake.placements) != 1:
        raise InputError("holds no placement: a rankfile, hostfile or machinefile is needed", path=placement)
    return replace(intake.placements[0], name=placement)


def read_profile(path: str) -> Profile:
    """The one profile of a file, or of a folder of them.

    Raises
    ------
    InputError
    """
    from ingest.options import Options
    from ingest.pipeline import plan
    from registry.errors import InputError

    found = plan([path], Options(name=Path(path).name)).profiles
    if len(found) != 1:
        raise InputError(f"holds {len(found)} profiles, one is needed", path=path)
    return found[0]


def read_fabric(paths: tuple[str, ...], cluster: str) -> Fabric:
    """The fabric of a scan's files, with its forwarding tables where they are among them.

    Raises
    ------
    InputError
    """
    return read_wiring(paths, cluster)[0]


def read_wiring(paths: tuple[str, ...], cluster: str) -> tuple[Fabric, IntendedWiring | None]:
    """The same, and the intended wiring where it is among the files.

    Raises
    ------
    InputError
    """
    from ingest.options import Options
    from ingest.pipeline import plan
    from registry.errors import InputError

    intake = plan(list(paths), Options(cluster=cluster))
    if intake.fabric is None:
        raise InputError("no file of the fabric holds links", path=paths[0])
    return replace(intake.fabric, tables=intake.tables), intake.intended


def case_from_files(request: PlacementRequest, paths: tuple[str, ...]) -> PlacementCase:
    """Resolve a request without a database, on the hosts of the request, of the present placement, or all.

    Parameters
    ----------
    paths : tuple of str
        Files of the fabric.

    Raises
    ------
    InputError, UnknownName
    """
    from mapping.placement.case import PlacementCase
    from registry.model import Allocation, HostOrder

    if request.background:
        raise click.UsageError("--background needs the database: not with --fabric")
    if request.keep is not None and not isinstance(request.keep, HostOrder):
        raise click.BadParameter(f"there is no file {request.keep!r}", param_hint="--keep")
    cluster = request.cluster or Path(paths[0]).name
    fabric, profile = read_fabric(paths, cluster), read_profile(request.profile)
    present = None if request.keep is None else request.keep.on(fabric)
    if request.hosts is not None:
        slots = 1 if request.slots is None else request.slots
        allocation = Allocation.of(fabric, request.hosts, slots)
    elif present is not None:
        allocation = present.allocation
    else:
        each = fabric.slots[fabric.hosts] if request.slots is None else request.slots
        allocation = Allocation.of(fabric, fabric.hosts.tolist(), each)
    return PlacementCase(
        profile=profile,
        fabric=fabric,
        allocation=allocation,
        costs=request.costs,
        default_distance=request.options.default_distance,
        present=present,
        pins=request.pins,
        layouts=request.layouts,
        cluster=cluster,
    )
