"""Options that name what to place and on which hosts, and the request that they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from almanac.options.common import add_options, read_hosts
from almanac.options.files import fabric_option, read_layouts, read_order
from almanac.options.placement import SECONDS, with_default_seconds
from almanac.output.printing import note

if TYPE_CHECKING:
    from almanac.job_environment import JobEnvironment
    from mapping.questions.place import PlacementRequest

F = TypeVar("F", bound=Callable[..., Any])
SECONDS_IN_JOB = 5.0
"""Default time to search inside a job script: the whole command must take less than 15 s there."""
_DATA = (
    click.argument("profile"),
    click.option("--job", help="Use the hosts and slots of this job."),
    click.option(
        "--cluster", help="Cluster of --hosts, or of --job if two clusters have a job with this id."
    ),
    click.option(
        "--hosts",
        metavar="HOSTLIST|@FILE",
        help="Hosts in launch order: node[01-16], or @FILE with one per line.",
    ),
    click.option(
        "--slots", type=click.IntRange(min=1), help="Ranks per host (default: those of the job, else 1)."
    ),
    click.option(
        "--here", "in_job", is_flag=True, help="Use the hosts and slots of the allocation of this process."
    ),
    fabric_option,
    click.option(
        "--keep", type=click.Path(), metavar="ID|FILE", help="Improve this placement by moving few ranks."
    ),
    click.option("--moves", type=click.IntRange(min=0), help="With --keep: maximum number of ranks to move."),
    click.option(
        "--consecutive",
        is_flag=True,
        help="Fill hosts with consecutive ranks, as torchrun and DeepSpeed do: search their order only.",
    ),
    click.option(
        "--strategy",
        "strategies",
        multiple=True,
        help="Use only this strategy (repeat); a+b refines the result of a with b.",
    ),
    click.option(
        "--seeds",
        type=click.IntRange(min=1),
        help="Times to run each strategy, with other random numbers [default: 1; see --scheduler].",
    ),
)


def placement_options(function: F) -> F:
    """Add the options of `DataOptions`, and ``--strategy``, to a command."""
    return cast(F, add_options(function, _DATA))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """Options that name what to place and on which hosts."""

    profile: str
    job: str | None
    cluster: str | None
    hosts: str | None
    slots: int | None
    in_job: bool
    fabric_files: tuple[str, ...]
    keep: str | None
    moves: int | None
    consecutive: bool
    seeds: int | None

    def check(self) -> None:
        """Raise a usage error if options are missing or exclude each other."""
        given = sum((self.job is not None, self.hosts is not None, self.in_job))
        if given > 1:
            raise click.UsageError("give only one of --job, --hosts and --here")
        if self.fabric_files and self.job is not None:
            raise click.UsageError("--job needs the database: not with --fabric")
        if not self.fabric_files and not self.in_job:
            if given == 0 and self.keep is None:
                raise click.UsageError("give --job, or --cluster with --hosts, or --here")
            if self.job is None and self.cluster is None:
                option = "--hosts needs --cluster" if self.hosts else "--keep needs --cluster, or --job"
                raise click.UsageError(option)
        if self.moves is not None and self.keep is None:
            raise click.UsageError("--moves goes with --keep")
        if self.consecutive and self.keep is not None:
            raise click.UsageError("give either --consecutive or --keep")

    def complete(
        self, request: PlacementRequest, strategies: tuple[str, ...], layouts: tuple[str, ...]
    ) -> PlacementRequest:
        """Return the request with these options; read their files, except the fabric and the profile."""
        environment = _read_environment() if self.in_job else None
        cluster = self.cluster or (None if environment is None else environment.cluster)
        named = None if self.hosts is None else read_hosts(self.hosts)
        keep = None if self.keep is None else read_order(self.keep)
        options = with_default_seconds(request.options, SECONDS_IN_JOB if self.in_job else SECONDS)
        return replace(
            request,
            profile=self.profile,
            job=self.job,
            cluster=cluster,
            hosts=named if environment is None else environment.hosts,
            slots=self.slots if environment is None else environment.slots,
            keep=keep or self.keep,
            options=replace(
                options,
                moves=self.moves,
                strategies=strategies or None,
                consecutive=self.consecutive,
                seeds=self.seeds,
            ),
            layouts=read_layouts(layouts),
        )


def _read_environment() -> JobEnvironment:
    from almanac.job_environment import read_environment

    environment = read_environment()
    slots, hosts = sum(environment.slots), len(environment.hosts)
    note(f"{slots} slots on {hosts} hosts, from {environment.source}")
    return environment
