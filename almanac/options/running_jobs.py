"""Options of the commands on running jobs: time, routing and rails."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from almanac.options.common import Time

if TYPE_CHECKING:
    from mapping.service import Live
    from registry.progress import Progress
    from registry.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--at", type=Time(), help="Jobs and fabric at this time (default: now)."),
    click.option(
        "--routing", help="Routing, see docs/mapping/routing.md (default: forwarding tables if complete)."
    ),
    click.option(
        "--rails",
        default="all-connected",
        show_default=True,
        help="How rails are used: all-connected or same-rail, see docs/congestion.md.",
    ),
)


def running_jobs_options(function: F) -> F:
    """Add ``--at``, ``--routing`` and ``--rails`` to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


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
    from mapping.service import traffic

    return traffic(registry, cluster, at, routing=routing, rails=rails, progress=progress)
