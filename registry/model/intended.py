"""Intended wiring: the cables that a plan of the machine lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from registry.errors import InvalidValue
from registry.model.views import one_line
from registry.units import counted

_SHOWN = 3
End = tuple[str, str]
"""A device and its port, as a plan writes them."""


@dataclass(frozen=True, kw_only=True)
class IntendedWiring:
    """Cables that a machine should have, with the names used by its plan.

    Attributes
    ----------
    source, target : tuple of str
        Names of the devices at the two ends of each cable; length c. A cable is listed once.
    source_port, target_port : tuple of str
        Port names of the plan, such as ``Port 9`` or ``mlx5_0``.
    kind : tuple of str
        Purpose of the cable in the plan, such as ``Data``; may be empty.
    speed : tuple of float
        Nominal bytes/s of each cable; 0 if the plan does not contain it. An empty tuple means 0 for all.
    declared_at : datetime or None
        Time from which the plan is valid, with a time zone.
    """

    source: tuple[str, ...]
    source_port: tuple[str, ...]
    target: tuple[str, ...]
    target_port: tuple[str, ...]
    kind: tuple[str, ...]
    speed: tuple[float, ...] = ()
    declared_at: datetime | None = None

    __repr__ = one_line

    def __post_init__(self) -> None:
        if not any(self.speed):
            object.__setattr__(self, "speed", (0.0,) * len(self.source))
        columns = (self.source, self.source_port, self.target, self.target_port, self.kind, self.speed)
        if len({len(column) for column in columns}) != 1 or not self.source:
            raise InvalidValue("IntendedWiring.source", "needs at least one cable, and columns of one length")
        if not all(self.source) or not all(self.target):
            raise InvalidValue("IntendedWiring.source", "a device has no name")
        if self.declared_at is not None and self.declared_at.tzinfo is None:
            raise InvalidValue("IntendedWiring.declared_at", "needs a time zone")

    def __len__(self) -> int:
        return len(self.source)

    def ends(self) -> Iterator[tuple[End, End]]:
        """Yield the two ends of each cable, each a device and a port."""
        near = zip(self.source, self.source_port, strict=True)
        far = zip(self.target, self.target_port, strict=True)
        yield from zip(near, far, strict=True)

    @cached_property
    def conflicts(self) -> dict[End, tuple[int, ...]]:
        """Ports with several cables, by device and port in the first spelling, each with its cables' rows."""
        rows: dict[End, list[int]] = {}
        first: dict[End, End] = {}
        for row, ends in enumerate(self.ends()):
            for end in ends:
                key = end[0].casefold(), end[1].casefold()
                rows.setdefault(first.setdefault(key, end), []).append(row)
        return {end: tuple(of_end) for end, of_end in rows.items() if len(of_end) > 1}

    def conflict_lines(self) -> list[str]:
        """Return a line about the ports with several cables, with the first ones; empty without conflicts."""
        if not self.conflicts:
            return []
        names = [f"{device} {port} ({len(rows)} cables)" for (device, port), rows in self.conflicts.items()]
        shown, ports = ", ".join(names[:_SHOWN]), counted(len(names), "port has", "ports have")
        return [f"{ports} several cables in the intended wiring, for example {shown}"]


def cable_key(one: End, other: End) -> frozenset[End]:
    """Return what identifies a cable of a plan: its ends, whatever their order, without upper case."""
    return frozenset((device.casefold(), port.casefold()) for device, port in (one, other))


def join_wiring(plans: Sequence[IntendedWiring]) -> IntendedWiring:
    """Return one plan with the cables of all plans, valid from the latest of their times.

    A cable that several plans list, in either direction, is kept once.
    """
    rows: dict[frozenset[End], tuple[End, End, str, float]] = {}
    for plan in plans:
        for (near, far), kind, speed in zip(plan.ends(), plan.kind, plan.speed, strict=True):
            rows.setdefault(cable_key(near, far), (near, far, kind, speed))
    near_ends, far_ends, kinds, speeds = zip(*rows.values(), strict=True)
    times = [plan.declared_at for plan in plans if plan.declared_at is not None]
    return IntendedWiring(
        source=tuple(device for device, _ in near_ends),
        source_port=tuple(port for _, port in near_ends),
        target=tuple(device for device, _ in far_ends),
        target_port=tuple(port for _, port in far_ends),
        kind=kinds,
        speed=speeds,
        declared_at=max(times, default=None),
    )
