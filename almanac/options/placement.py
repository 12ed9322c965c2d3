"""Options of commands that search or evaluate placements, gathered in a `PlacementRequest`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from almanac.options.common import ROUTING_OPTIONS, Time, add_options, seed_option
from almanac.options.files import read_distance

if TYPE_CHECKING:
    from mapping.placement.search import SearchOptions
    from mapping.questions.place import PlacementRequest

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
