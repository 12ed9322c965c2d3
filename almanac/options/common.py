"""What several subcommands share: opening the registry, reading options."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from almanac.output.printing import progress_bars
from almanac.settings import load_settings

if TYPE_CHECKING:
    from registry.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])
MOST_SEED = (1 << 53) - 1
"""Largest seed: what every reader of JSON takes as a whole number, and the database holds."""


@contextlib.contextmanager
def open_registry() -> Iterator[Registry]:
    """The registry that the settings name; the embedded server is started on demand."""
    settings = load_settings(click.get_current_context().find_root().obj)
    with progress_bars() as progress, settings.open_registry(progress) as registry:
        yield registry


def must_know(registry: Registry, cluster: str | None) -> None:
    """For a list that is empty: a wrong name must not read like a good answer.

    Raises
    ------
    UnknownName
        No such cluster.
    """
    from registry.errors import UnknownName

    known = [info.name for info in registry.fabrics.clusters()]
    if cluster is not None and cluster not in known:
        raise UnknownName("cluster", cluster, known)


def json_option(function: F) -> F:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")(
        function
    )


def option_names(names: Iterable[str]) -> str:
    """Options as they are given: ``--max-degree, --max-edges``."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def seed_option(function: F) -> F:
    """Add ``--seed``."""
    seeds = click.IntRange(min=0, max=MOST_SEED)
    return click.option("--seed", type=seeds, default=0, show_default=True)(function)


class Moment(click.ParamType[datetime]):
    """A time: ISO 8601; UTC where it names no zone."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parse; a usage error where it cannot be."""
        if isinstance(value, datetime):
            return value
        from registry.model import as_utc

        try:
            return as_utc(datetime.fromisoformat(str(value)))
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time such as 2026-11-21T08:00:00Z", param, ctx)


def read_hosts(text: str) -> tuple[str, ...]:
    """Hosts of a hostlist expression such as ``node[01-04]``, or of ``@FILE`` with one a line.

    Raises
    ------
    InputError
    """
    from ingest.formats.jobs.hostlists import expand
    from registry.errors import InputError

    if not text.startswith("@"):
        return expand(text)
    path = Path(text[1:])
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=path) from error
    hosts: list[str] = []
    for number, line in enumerate(lines, start=1):
        words = line.split("#", 1)[0].strip()
        if words:
            try:
                hosts.extend(expand(words))
            except InputError as error:
                raise InputError(error.reason, path=path, line=number, text=line) from error
    if not hosts:
        raise InputError("names no host", path=path)
    return tuple(hosts)
