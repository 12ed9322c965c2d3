"""Options that most commands share: the registry to open, JSON, seed, times and lists of hosts.

Option of commands that can run on the machines of a Dask cluster.

The spelling of exports: ``FORMAT=FILE``, as option ``--export`` or as argument of ``export``.

Read the files that commands accept: fabrics, profiles, placements, host layouts, distances.

Options of commands that delete or move stored data: rehearsal, confirmation and JSON.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from almanac.output.printing import note, print_json, progress_bars, say
from almanac.output.stored_data import deletion_lines, deletion_to_json, move_lines, move_to_json
from almanac.settings import Settings, load_settings

if TYPE_CHECKING:
    from almanac.spool import Spool
    from mapping.cluster import Cluster
    from mapping.distances.distances import DistanceTable
    from mapping.placement.case import PlacementCase
    from mapping.questions.place import PlacementRequest
    from registry.model import Fabric, HostOrder, IntendedWiring, Profile
    from registry.model.hosts import HostLayout
    from registry.registry import Registry
    from registry.upkeep.clusters import Move
    from registry.upkeep.deletion import Deletion


def scheduler_option(what: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--scheduler`` to a command; `what` runs on the cluster."""
    help = f"Run {what} on this Dask cluster, tcp://HOST:PORT: see docs/how-to/several-machines.md."
    return click.option("--scheduler", metavar="ADDRESS", help=help)


@contextlib.contextmanager
def optional_cluster(scheduler: str | None) -> Iterator[Cluster | None]:
    """Connect to the cluster of ``--scheduler``; None if the option was not given.

    Raises:
        ClusterError, MissingExtra
    """
    if scheduler is None:
        yield None
        return
    from mapping.cluster import open_cluster

    with open_cluster(scheduler) as cluster:
        note(f"{cluster.machines} workers with {cluster.threads} threads at {scheduler}")
        yield cluster


class Export(click.ParamType[tuple[str, str | None]]):
    """Type of an export: ``FORMAT=FILE``, or ``FORMAT`` alone for standard output.

    Args:
        names: Returns the names of the formats.
        needs_file: Whether ``FORMAT`` alone is an error.
    """

    name = "FORMAT=FILE"

    def __init__(self, names: Callable[[], Sequence[str]], *, needs_file: bool) -> None:
        self.names = names
        self.needs_file = needs_file

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str | None]:
        """Return the format and the file, or raise a usage error."""
        if isinstance(value, tuple):
            return value
        from registry.errors import UnknownName

        name, equals, path = str(value).partition("=")
        if name not in self.names():
            self.fail(UnknownName("format", name, self.names()).reason, param, ctx)
        if bool(equals) != bool(path) or (self.needs_file and not path):
            self.fail(f"{value!r} is not of the form FORMAT=FILE", param, ctx)
        return name, path or None


def export_option(names: Callable[[], Sequence[str]], help: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--export FORMAT=FILE`` to a command, which gets ``exports``."""
    kind = Export(names, needs_file=True)
    return click.option("--export", "exports", type=kind, metavar="FORMAT=FILE", multiple=True, help=help)


def export_argument(names: Callable[[], Sequence[str]], default: str | None = None) -> Callable[[F], F]:
    """Return a decorator that adds arguments ``FORMAT[=FILE]`` to a command, which gets ``exports``."""
    shown = "FORMAT[=FILE]..." if default is None else "[FORMAT[=FILE]...]"
    kind = Export(names, needs_file=False)
    options: dict[str, Any] = {"required": True} if default is None else {"default": ((default, None),)}
    return click.argument("exports", type=kind, nargs=-1, metavar=shown, **options)


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

    Raises:
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

    Raises:
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

    Raises:
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

    Raises:
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

    Raises:
        InputError
    """
    return read_wiring(paths)[0]


def read_wiring(paths: tuple[str, ...]) -> tuple[Fabric, IntendedWiring | None]:
    """Read the fabric and forwarding tables of files, and the intended wiring if they have it.

    Raises:
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

    Args:
        paths: Files of the fabric.

    Raises:
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


F = TypeVar("F", bound=Callable[..., Any])
MAX_SEED = (1 << 53) - 1
"""Largest seed that every JSON reader and the database store exactly."""
ROUTING_OPTIONS = (
    click.option(
        "--routing", help="Routing, see docs/explanation/routing.md (default: forwarding tables if complete)."
    ),
    click.option(
        "--rails",
        default="all-connected",
        show_default=True,
        help="How rails are used: all-connected or same-rail, see docs/explanation/congestion.md.",
    ),
)
"""Options ``--routing`` and ``--rails``."""
OUTPUT = click.Path(dir_okay=False)
"""Type of an option that names a file to write."""


def current_settings(**options: str | None) -> Settings:
    """Return the settings of the running command, with its ``--db``.

    Args:
        **options: Values of further options, by the key of their setting.

    Raises:
        ConfigError
    """
    return load_settings(click.get_current_context().find_root().obj, os.environ, **options)


@contextlib.contextmanager
def open_registry() -> Iterator[Registry]:
    """Open the registry named by the settings; start the embedded server if needed."""
    from registry.database.embedded_files import damage_text

    settings = current_settings()
    with progress_bars() as progress, settings.open_registry(progress) as registry:
        damaged = damage_text(registry.database.folder)
        if damaged:
            note(f"warning: {damaged}")
        yield registry


def current_spool() -> Spool:
    """Return the spool of the settings.

    Raises:
        ConfigError
    """
    from almanac.spool import Spool

    settings = current_settings()
    return Spool(settings.spool, int(settings.spool_megabytes * 1e6))


def require_cluster(registry: Registry, cluster: str | None) -> None:
    """Raise an error if a cluster does not exist, so that a typo is not reported as an empty list.

    Raises:
        UnknownName: There is no such cluster.
    """
    from registry.errors import UnknownName

    if cluster is None:
        return
    known = [info.name for info in registry.fabrics.clusters()]
    if cluster not in known:
        raise UnknownName("cluster", cluster, known)


def require_names(registry: Registry, cluster: str | None, application: str | None, job: str | None) -> None:
    """Raise an error if no stored data have the cluster, the application or the job; see `require_cluster`.

    Raises:
        UnknownName
    """
    from registry.errors import UnknownName

    require_cluster(registry, cluster)
    if application is not None:
        applications = {info.application for info in registry.profiles.list()}
        if application not in applications:  # a measured run has the name of its program
            applications |= {run.application for run in registry.measured_runs.list(cluster)}
        if application not in applications:
            raise UnknownName("application", application, sorted(applications))
    if job is None:
        return
    try:
        registry.jobs.read(job, cluster)
    except UnknownName:  # a job that ran with `almanac run` need not be ingested
        if all(run.job != job for run in registry.measured_runs.list(cluster)):
            raise


class DefaultGroup(click.Group):
    """A command group that runs a default subcommand if the first word names none."""

    def __init__(self, *words: Any, default: str, **settings: Any) -> None:
        super().__init__(*words, **settings)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default subcommand before words that are neither a subcommand nor ``--help``."""
        known = (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, args if args and args[0] in known else [self.default, *args])


def top_option(
    default: int | None = None, help: str = "Rows of each table.", least: int = 1
) -> Callable[[F], F]:
    """Return a decorator that adds ``--top`` to a command: how many rows to show, at least `least`."""
    rows = click.IntRange(min=least)
    return click.option("--top", type=rows, default=default, show_default=default is not None, help=help)


def add_options(command: Any, options: Iterable[Callable[[Any], Any]]) -> Any:
    """Add options to a command, so that its help lists them in this order."""
    for option in reversed(tuple(options)):
        command = option(command)
    return command


def json_option(function: F) -> F:
    """Add ``--json`` to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")(
        function
    )


def running_jobs_options(function: F) -> F:
    """Add ``--at``, ``--routing`` and ``--rails`` to a command, which gets ``at`` and ``costs``."""

    @wraps(function)
    def command(routing: str | None, rails: str, **others: Any) -> Any:
        from mapping.distances.cost_model import CostModel

        return function(costs=CostModel(routing=routing, rails=rails), **others)

    at = click.option("--at", type=Time(), help="Jobs and fabric at this time (default: now).")
    return cast(F, add_options(command, (at, *ROUTING_OPTIONS)))


def option_names(names: Iterable[str]) -> str:
    """Return parameter names as options: ``--max-degree, --max-edges``."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def seed_option(function: F) -> F:
    """Add ``--seed`` to a command."""
    seeds = click.IntRange(min=0, max=MAX_SEED)
    help = "Seed of the random numbers."
    return click.option("--seed", type=seeds, default=0, show_default=True, help=help)(function)


def option_of(field: str, options: Iterable[str]) -> str:
    """Return the option, among these, that gives a field its value; empty if none does."""
    option = f"--{field.rpartition('.')[2].replace('_', '-')}"
    return option if option in options else ""


class Time(click.ParamType[datetime]):
    """Type of an option that takes a time, as `registry.units.moment_of`: ISO 8601, ``7d``, ``yesterday``."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time, or raise a usage error if the text is none."""
        if isinstance(value, datetime):
            return value
        from registry.units import MOMENTS, moment_of

        try:
            return moment_of(str(value), datetime.now(UTC))
        except ValueError:
            self.fail(f"{value!r} is not a time such as {MOMENTS}", param, ctx)


def read_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of an expression such as ``node[01-04]``, or of ``@FILE`` with one per line.

    Raises:
        InputError
    """
    from ingest.formats.hostlists import expand
    from registry.errors import InputError

    if not text.startswith("@"):
        return expand(text)
    path = text[1:]
    hosts: list[str] = []
    for number, line in enumerate(read_lines(path), start=1):
        words = line.split("#", 1)[0].strip()
        if words:
            try:
                hosts.extend(expand(words))
            except InputError as error:
                raise InputError(error.reason, path=path, line=number, text=line) from error
    if not hosts:
        raise InputError("contains no host names", path=path)
    return tuple(hosts)


T = TypeVar("T")

DEPENDENTS = click.option(
    "--with-dependents", is_flag=True, help="Delete what depends on it too: placements, simulations, ..."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destructive:
    """Choices of the user of a command that deletes."""

    dry_run: bool
    """True to change nothing."""
    yes: bool
    """True to ask nothing."""
    as_json: bool
    """True to print JSON."""

    def carry_out(self, what: str, act: Callable[[bool], T], lines: Callable[[T], Iterable[str]]) -> T:
        """Return the result of a change, or of its rehearsal; ask before the change.

        Args:
            what: The change as a question: ``Delete cluster hpc1``.
            act: Does it, or only returns what would be done if its argument is True.
            lines: Returns a description of the result.
        """
        if self.dry_run or self.yes:
            return act(self.dry_run)
        if not sys.stdin.isatty():
            raise click.UsageError(
                "no terminal to ask for confirmation: add --yes, or --dry-run to list what would change"
            )
        for line in lines(act(True)):
            note(line)
        if not click.confirm(f"{what}?", err=True):
            note("nothing was changed")
            click.get_current_context().exit(1)
        return act(False)


def destructive_options(function: F) -> F:
    """Add ``--dry-run``, ``--yes`` and ``--json`` to a command, which gets them as `Destructive`."""

    @wraps(function)
    def command(dry_run: bool, yes: bool, as_json: bool, **others: Any) -> Any:
        return function(how=Destructive(dry_run=dry_run, yes=yes, as_json=as_json), **others)

    options = (
        click.option("--dry-run", is_flag=True, help="Change nothing, print what would be changed."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation."),
        json_option,
    )
    return cast(F, add_options(command, options))


def print_deletion(deletion: Deletion, how: Destructive) -> None:
    """Print what was deleted, or would be."""
    if how.as_json:
        print_json(deletion_to_json(deletion, how.dry_run))
        return
    first, *others = deletion_lines(deletion)
    say(f"{'would delete' if how.dry_run else 'deleted'}: {first}")
    for line in others:
        say(line)


def print_move(move: Move, how: Destructive) -> None:
    """Print what was renamed or merged, or would be."""
    if how.as_json:
        print_json(move_to_json(move, how.dry_run))
        return
    first, *others = move_lines(move)
    say(f"{'would move' if how.dry_run else 'moved'}: {first}")
    for line in others:
        say(line)


DAY = timedelta(days=1)


REGULAR = ("fabric", "tables", "counters", "jobs")
"""Kinds of data that are collected again and again, so that old ones are a problem."""


def is_rare(format: str) -> bool:
    """Return True if no new files of a format are expected every day."""
    from ingest.catalog import FORMATS

    return format in FORMATS and FORMATS.find(format).kind not in REGULAR
