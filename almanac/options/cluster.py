"""Option of commands that can run on the machines of a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from almanac.output.printing import note

if TYPE_CHECKING:
    from mapping.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])


def scheduler_option(what: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--scheduler`` to a command; `what` runs on the cluster."""
    help = f"Run {what} on this Dask cluster, tcp://HOST:PORT: see docs/how-to/several-machines.md."
    return click.option("--scheduler", metavar="ADDRESS", help=help)


@contextlib.contextmanager
def optional_cluster(scheduler: str | None) -> Iterator[Cluster | None]:
    """Connect to the cluster of ``--scheduler``; None if the option was not given.

    Raises
    ------
    ClusterError, MissingExtra
    """
    if scheduler is None:
        yield None
        return
    from mapping.cluster import open_cluster

    with open_cluster(scheduler) as cluster:
        note(f"{cluster.machines} workers with {cluster.threads} threads at {scheduler}")
        yield cluster
