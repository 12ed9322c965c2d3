"""Options of the commands on running jobs: time, routing and rails."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from almanac.options.common import ROUTING_OPTIONS, Time, add_options

if TYPE_CHECKING:
    from mapping.service.live import Live
    from registry.progress import Progress
    from registry.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--at", type=Time(), help="Jobs and fabric at this time (default: now)."),
    *ROUTING_OPTIONS,
)


def running_jobs_options(function: F) -> F:
    """Add ``--at``, ``--routing`` and ``--rails`` to a command."""
    return cast(F, add_options(function, _OPTIONS))


def read_live(
    registry: Registry,
    cluster: str,
    at: datetime | None,
    routing: str | None,
    rails: str,
    progress: Progress,
) -> Live:
    """Return the jobs that run on a cluster and their load on the links.

    Raises
    ------
    UnknownName, InvalidValue
    """
    from mapping.service.live import traffic

    return traffic(registry, cluster, at, routing=routing, rails=rails, progress=progress)
