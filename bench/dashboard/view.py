"""A page in one state, as the benchmarks open it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A page in one state: its path and the parameters of its address."""

    name: str
    path: str
    address: Mapping[str, str] = field(default_factory=dict)
    draws_map: bool = False

    def url(self, base: str) -> str:
        """Return the whole address."""
        return f"{base}/{self.path}" + (f"?{urlencode(self.address)}" if self.address else "")
