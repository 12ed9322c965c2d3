"""Intended wiring: the cables that a plan of the machine lists."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from registry.errors import InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
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
    declared_at : datetime or None
        Time from which the plan is valid, with a time zone.
    """

    source: tuple[str, ...]
    source_port: tuple[str, ...]
    target: tuple[str, ...]
    target_port: tuple[str, ...]
    kind: tuple[str, ...]
    declared_at: datetime | None = None

    def __post_init__(self) -> None:
        columns = (self.source, self.source_port, self.target, self.target_port, self.kind)
        if len({len(column) for column in columns}) != 1 or not self.source:
            raise InvalidValue("IntendedWiring.source", "needs at least one cable, and columns of one length")
        if not all(self.source) or not all(self.target):
            raise InvalidValue("IntendedWiring.source", "a device has no name")
        ends = [
            *zip(self.source, self.source_port, strict=True),
            *zip(self.target, self.target_port, strict=True),
        ]
        if len(set(ends)) != len(ends):
            raise InvalidValue("IntendedWiring.source", "a port has two cables")
        if self.declared_at is not None and self.declared_at.tzinfo is None:
            raise InvalidValue("IntendedWiring.declared_at", "needs a time zone")

    def __len__(self) -> int:
        return len(self.source)
