"""What ``almanac simulate`` replays, on which fabric, from which placements: of the registry or of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from almanac.options import files as searching

if TYPE_CHECKING:
    from registry.fabrics.fabrics import Snapshot
    from registry.model import Fabric, HostOrder, Placement, Profile, Trace
    from registry.profiles import StoredProfile
    from registry.registry import Registry

EVERY = 10_000
"""Messages between two points of the traffic over time, unless told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is to be simulated, as the options say."""

    profile: str | None = None
    cluster: str | None = None
    fabric_files: tuple[str, ...] = ()
    profile_file: str | None = None
    trace_file: str | None = None
    placements: tuple[str, ...]
    routing: str | None = None
    mode: str = "packets"
    trace: str | None = None
    scale: float | str | None = None
    first: int | None = None
    rounds: int | None = None
    network: Mapping[str, Any] = field(default_factory=dict)
    every: int = EVERY
    seed: int = 0
    at: datetime | None = None

    def check(self) -> None:
        """A usage error where options lack each other, or exclude each other."""
        given = sum(one is not None for one in (self.profile, self.profile_file, self.trace_file))
        if given != 1:
            raise click.UsageError("give one of PROFILE, --profile FILE and --trace-file FILE")
        if self.fabric_files:
            self._check_files()
        elif self.profile is None:
            raise click.UsageError(
                "--profile FILE and --trace-file FILE go with --fabric FILE; a saved profile is the argument "
                "PROFILE"
            )
        elif self.cluster is None:
            raise click.UsageError("give --cluster, or --fabric FILE")
        of_trace = {"--trace": self.trace, "--scale": self.scale, "--first": self.first}
        for name, value in {**of_trace, "--trace-file": self.trace_file}.items():
            if self.rounds is not None and value is not None:
                raise click.UsageError(f"{name} is of a trace: not with --rounds")
        if len(set(self.placements)) != len(self.placements):
            raise click.UsageError("a --placement is given twice")

    def _check_files(self) -> None:
        """A usage error where what stands in the database is asked for."""
        if self.profile is not None:
            raise click.UsageError("a saved PROFILE needs the database: not with --fabric")
        for name, value in {"--trace": self.trace, "--at": self.at}.items():
            if value is not None:
                raise click.UsageError(f"{name} needs the database: not with --fabric")
        if self.profile_file is not None:
            for name, told in {"--scale": self.scale, "--first": self.first}.items():
                if told is not None:
                    raise click.UsageError(f"{name} is of a trace: give --trace-file, not --profile")
        for path in self.placements:
            if not Path(path).exists():
                raise click.BadParameter(f"there is no file {path!r}", param_hint="--placement")


class Placed(NamedTuple):
    """A placement on the fabric, by its id or file, and whether it is saved."""

    name: str
    placement: Placement
    saved: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ground:
    """What is simulated.

    Attributes
    ----------
    cluster : str
        Of the fabric, or the name of its first file.
    fabric : Fabric
    snapshot : Snapshot or None
        Of the fabric; None where it came from files.
    profile : Profile
    profile_id : str or None
        None where it came from a file.
    trace : Trace or None
        The messages to replay; None: the profile is sent in rounds.
    trace_name : str or None
        Its id or file.
    placed : tuple of Placed
    """

    cluster: str
    fabric: Fabric
    snapshot: Snapshot | None = None
    profile: Profile
    profile_id: str | None = None
    trace: Trace | None
    trace_name: str | None
    placed: tuple[Placed, ...]


def from_files(ask: Ask) -> Ground:
    """What the files say; no database is asked.

    Raises
    ------
    InputError, InvalidPlacement, UnknownName
    """
    cluster = ask.cluster or Path(ask.fabric_files[0]).name
    fabric = searching.read_fabric(ask.fabric_files, cluster)
    trace: Trace | None = None
    if ask.trace_file is not None:
        profile, trace = _read_trace(ask.trace_file)
    else:
        assert ask.profile_file is not None
        profile = searching.read_profile(ask.profile_file)
    placed: list[Placed] = []
    for path in ask.placements:
        order = searching.read_order(path, cluster)
        assert order is not None
        placement = order.on(fabric)
        _check_ranks(placement, profile, path)
        placed.append(Placed(path, placement, saved=False))
    return Ground(
        cluster=cluster,
        fabric=fabric,
        profile=profile,
        trace=trace,
        trace_name=ask.trace_file,
        placed=tuple(placed),
    )


def from_registry(registry: Registry, ask: Ask) -> Ground:
    """What the registry holds, and placements of files.

    Raises
    ------
    InputError, InvalidPlacement, UnknownName
    """
    assert ask.profile is not None
    assert ask.cluster is not None
    stored = registry.profiles.read(ask.profile)
    snapshot = registry.fabrics.read(ask.cluster, ask.at)
    placed = tuple(_placed(registry, ask, ask.cluster, snapshot, stored.profile))
    identity = None if ask.rounds is not None else _trace_id(registry, ask, stored)
    return Ground(
        cluster=snapshot.cluster,
        fabric=snapshot.fabric,
        snapshot=snapshot,
        profile=stored.profile,
        profile_id=stored.id,
        trace=None if identity is None else registry.traces.read(identity).trace,
        trace_name=identity,
        placed=placed,
    )


def _placed(
    registry: Registry, ask: Ask, cluster: str, snapshot: Snapshot, profile: Profile
) -> Iterator[Placed]:
    from mapping.service import placement_on

    for text in ask.placements:
        given: HostOrder | str = searching.read_order(text, cluster) or text
        placement, name = placement_on(registry, given, snapshot)
        saved = given is text
        _check_ranks(placement, profile, None if saved else text)
        yield Placed(name, placement, saved)


def _check_ranks(placement: Placement, profile: Profile, path: str | None) -> None:
    from registry.errors import InvalidPlacement

    if placement.ranks != profile.ranks:
        reason = f"{placement.ranks} ranks are placed, the profile has {profile.ranks}"
        raise InvalidPlacement(reason, path=path)


def _trace_id(registry: Registry, ask: Ask, stored: StoredProfile) -> str | None:
    """Of the trace to replay: the one that is asked for, else the newest.

    None where the profile has none and nothing is asked of one.
    """
    from registry.errors import UnknownName

    known = [info.id for info in registry.traces.list(stored.id)]
    if ask.trace is None:
        if not known and (ask.scale is not None or ask.first is not None):
            raise UnknownName("trace", ask.profile or "", remedy="the profile has none: ingest its messages")
        return known[0] if known else None
    identity = registry.traces.read(ask.trace).id
    if identity not in known:
        raise UnknownName("trace", identity, known, remedy=f"it is not of {ask.profile}")
    return identity


def _read_trace(path: str) -> tuple[Profile, Trace]:
    """The one trace of a file, and its profile."""
    from ingest.options import Options
    from ingest.pipeline import plan
    from registry.errors import InputError

    intake = plan([path], Options(name=Path(path).name))
    trace = intake.traces[0] if len(intake.traces) == 1 else None
    if trace is None:
        raise InputError(
            "holds no messages with their times; a profile is sent in rounds: --profile", path=path
        )
    return intake.profiles[0], trace
