"""Options of the commands on running jobs: time, routing and rails."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from almanac.options.common import ROUTING_OPTIONS, Time, add_options

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--at", type=Time(), help="Jobs and fabric at this time (default: now)."),
    *ROUTING_OPTIONS,
)


def running_jobs_options(function: F) -> F:
    """Add ``--at``, ``--routing`` and ``--rails`` to a command, which gets ``at`` and ``costs``."""

    @wraps(function)
    def command(routing: str | None, rails: str, **others: Any) -> Any:
        from mapping.distances.cost_model import CostModel

        return function(costs=CostModel(routing=routing, rails=rails), **others)

    return cast(F, add_options(command, _OPTIONS))
