"""Read the files that commands accept: fabrics, profiles, placements, host layouts, distances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from mapping.distances.distances import DistanceTable
    from mapping.placement.case import PlacementCase
    from mapping.questions.place import PlacementRequest
    from registry.model import Fabric, HostOrder, IntendedWiring, Profile
    from registry.model.hosts import HostLayout

F = TypeVar("F", bound=Callable[..., Any])
FILES = "files"
"""Name of the cluster of files that are read without the database; those of files need not be plain."""


def fabric_option(function: F) -> F:
    """Add ``--fabric`` to a command, which then reads all its data from files instead of the database."""
    return click.option(
        "--fabric",
        "fabric_files",
        type=click.Path(),
        metavar="FILE",
        multiple=True,
        help="Read the fabric from a scan and forwarding tables instead of the database (repeat); PROFILE is "
        "then a file, too.",
    )(function)


def read_lines(path: str, what: str = "") -> list[str]:
    """Return the lines of a small text file; `what` names its purpose in the error.

    Raises
    ------
    InputError
    """
    from registry.errors import InputError

    try:
        return Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"not UTF-8 text: {error}"
        raise InputError(f"{what} cannot be read: {reason}".strip(), path=path) from error


def read_layouts(items: tuple[str, ...]) -> dict[str, HostLayout]:
    """Read host layouts from texts ``HOST=FILE`` or ``FILE``, which may be a folder or archive.

    A single FILE is the layout of all hosts.

    Raises
    ------
    InputError
    """
    from ingest.formats.hwloc_xml import read_layout
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
            raise click.BadParameter(f"{path} does not name its host: give HOST=FILE", param_hint="--layout")
        if name in found:
            raise click.BadParameter(f"host {name} has more than one layout", param_hint="--layout")
        found[name] = layout
    return found


def read_distance(text: str | None) -> tuple[str | None, DistanceTable | None]:
    """Return the name of a distance convention, or the table of a CSV file."""
    if text is None:
        return None, None
    from mapping.distances.distances import CONVENTIONS, TABLE

    if text in CONVENTIONS or not Path(text).exists():
        return text, None
    from mapping.distances.distances import read_distance_table

    return TABLE, read_distance_table(text)


def read_order(placement: str) -> HostOrder | None:
    """Read the host of each rank from a launcher's file, or return None if the text is not a file but an id.

    Raises
    ------
    InputError
    """
    if not Path(placement).exists():
        return None
    from ingest.options import Options
    from ingest.pipeline import plan
    from registry.errors import InputError

    intake = plan([placement], Options(cluster=FILES))
    if len(intake.placements) != 1:
        raise InputError(
            "contains no placement: expected a rankfile, hostfile or machinefile", path=placement
        )
    return replace(intake.placements[0], name=placement)


def read_profile(path: str) -> Profile:
    """Read the profile of a file or folder.

    Raises
    ------
    InputError
    """
    from ingest.options import Options
    from ingest.pipeline import plan
    from registry.errors import InputError

    found = plan([path], Options(name=Path(path).name)).profiles
    if len(found) != 1:
        raise InputError(f"contains {len(found)} profiles, expected one", path=path)
    return found[0]


def read_fabric(paths: tuple[str, ...]) -> Fabric:
    """Read the fabric of a scan's files, with its forwarding tables if the files have them.

    Raises
    ------
    InputError
    """
    return read_wiring(paths)[0]


def read_wiring(paths: tuple[str, ...]) -> tuple[Fabric, IntendedWiring | None]:
    """Read the fabric and forwarding tables of files, and the intended wiring if they have it.

    Raises
    ------
    InputError
    """
    from ingest.options import Options
    from ingest.pipeline import plan
    from registry.errors import InputError

    intake = plan(list(paths), Options(cluster=FILES))
    if intake.fabric is None:
        raise InputError(
            "no links found: expected an ibnetdiscover file or another scan of a fabric", path=paths[0]
        )
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
    fabric, profile = read_fabric(paths), read_profile(str(request.profile))
    present = None if request.keep is None else request.keep.on(fabric)
    if request.hosts is not None:
        slots = 1 if request.slots is None else request.slots
        allocation = Allocation.of(fabric, request.hosts, slots)
    elif present is not None:
        allocation = present.allocation
    else:
        each = fabric.slots[fabric.hosts] if request.slots is None else request.slots
        allocation = Allocation.of(fabric, fabric.hosts, each)
    return PlacementCase(
        profile=profile,
        fabric=fabric,
        allocation=allocation,
        costs=request.costs,
        options=request.options,
        present=present,
        pins=request.pins,
        layouts=request.layouts,
        cluster=cluster,
    )
