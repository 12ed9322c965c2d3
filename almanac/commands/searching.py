"""Options that commands which search or judge placements share, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from almanac.commands.common import Moment, seed_option

if TYPE_CHECKING:
    from mapping.distances.distance_tables import DistanceTable
    from mapping.service.answers.case import Case
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the options of `MEASURING` say."""

    routing: str | None
    rails: str
    distance: str | None
    background: tuple[str, ...]
    at: datetime | None

    def measures(self) -> dict[str, Any]:
        """Those of a `mapping.service.answers.case.Search`; files are read.

        Raises
        ------
        InputError
        """
        convention, table = read_distance(self.distance)
        return {"routing": self.routing, "rails": self.rails, "distance": convention, "table": table}

    def others(self) -> tuple[tuple[str, float | None], ...]:
        """Placements of other jobs, and their seconds."""
        return read_background(self.background)


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched(Measured):
    """What the options of `SEARCHING` and `MEASURING` say."""

    objective: str
    pins: tuple[str, ...]
    seconds: float | None
    steps: int | None
    seed: int
    workers: int | None

    def check(self) -> None:
        """A usage error where options exclude each other."""
        if self.seconds is not None and self.steps is not None:
            raise click.UsageError("give either --seconds or --steps")

    def asks(self, seconds: float = SECONDS) -> dict[str, Any]:
        """Those of a `mapping.service.Question`; files are read.

        Parameters
        ----------
        seconds : float
            Time to search unless told.

        Raises
        ------
        InputError
        """
        return {
            **self.measures(),
            "objective": self.objective,
            "pins": read_pins(self.pins),
            "seconds": seconds if self.seconds is None else self.seconds,
            "steps": self.steps,
            "seed": self.seed,
            "workers": self.workers,
            "background": self.others(),
            "at": self.at,
        }


def measuring(function: F) -> F:
    """Add `MEASURING` to a command, which gets them as one argument: ``measured``."""
    return _together("measured", Measured, MEASURING, function)


def searching(function: F) -> F:
    """Add `SEARCHING` and `MEASURING` to a command, which gets them as one argument: ``searched``."""
    return _together("searched", Searched, SEARCHING + MEASURING, function)


def _together(name: str, kind: type[Measured], options: tuple[Callable[[Any], Any], ...], function: F) -> F:
    names = [one.name for one in fields(kind)]

    @wraps(function)
    def taken(**given: Any) -> Any:
        return function(**{name: kind(**{one: given.pop(one) for one in names})}, **given)

    command: Any = taken
    for option in reversed(options):
        command = option(command)
    return cast(F, command)


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


def case_from_files(
    fabric: Fabric,
    profile: Profile,
    hosts: tuple[str, ...] | None,
    slots: int | tuple[int, ...] | None,
    present: HostOrder | None,
    cluster: str,
) -> Case:
    """A case without any database: on the hosts named, else those of the present placement, else on all."""
    from mapping.service.answers.case import Case
    from registry.model import Allocation

    sits = None if present is None else present.on(fabric)
    if hosts is not None:
        allocation = Allocation.of(fabric, hosts, 1 if slots is None else slots)
    elif sits is not None:
        allocation = sits.allocation
    else:
        each = fabric.slots[fabric.hosts] if slots is None else slots
        allocation = Allocation.of(fabric, fabric.hosts.tolist(), each)
    return Case(profile=profile, fabric=fabric, allocation=allocation, present=sits, cluster=cluster)
