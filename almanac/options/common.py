"""Options that most commands share: the registry to open, JSON, seed, times and lists of hosts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from almanac.options.files import read_lines
from almanac.output.printing import note, progress_bars
from almanac.settings import Settings, load_settings

if TYPE_CHECKING:
    from almanac.service.spool import Spool
    from registry.registry import Registry

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

    Parameters
    ----------
    **options : str or None
        Values of further options, by the key of their setting.

    Raises
    ------
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

    Raises
    ------
    ConfigError
    """
    from almanac.service.spool import Spool

    settings = current_settings()
    return Spool(settings.spool, int(settings.spool_megabytes * 1e6))


def require_cluster(registry: Registry, cluster: str | None) -> None:
    """Raise an error if a cluster does not exist, so that a typo is not reported as an empty list.

    Raises
    ------
    UnknownName
        There is no such cluster.
    """
    from registry.errors import UnknownName

    if cluster is None:
        return
    known = [info.name for info in registry.fabrics.clusters()]
    if cluster not in known:
        raise UnknownName("cluster", cluster, known)


def require_names(registry: Registry, cluster: str | None, application: str | None, job: str | None) -> None:
    """Raise an error if no stored data have the cluster, the application or the job; see `require_cluster`.

    Raises
    ------
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

    Raises
    ------
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
