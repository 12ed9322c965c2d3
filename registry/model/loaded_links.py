"""Loads of the few links of a fabric that carry traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Floats, Ints, freeze_all
from registry.model.views import one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedLinks:
    """Loads of the links that carry traffic.

    Attributes
    ----------
    link : int32[k]
        Rows of ``fabric.links``, ascending.
    bytes : float64[k]
        Bytes on each link; > 0.
    links : int
        Number of all rows of ``fabric.links``.
    """

    link: Ints
    bytes: Floats
    links: int

    __repr__ = one_line

    def __post_init__(self) -> None:
        freeze_all(self, None, "link")
        freeze_all(self, len(self.link), "bytes")
        if len(self.link):
            if int(self.link[0]) < 0 or int(self.link[-1]) >= self.links:
                raise InvalidValue("LoadedLinks.link", f"outside 0 .. {self.links - 1}")
            if (np.diff(self.link) <= 0).any():
                raise InvalidValue("LoadedLinks.link", "must ascend")

    @classmethod
    def of(cls, link_bytes: Floats) -> Self:
        """Return the links with traffic, from the bytes ``float64[m]`` on all links."""
        loaded = np.flatnonzero(link_bytes)
        return cls(link=loaded.astype(np.int32), bytes=link_bytes[loaded], links=len(link_bytes))

    def dense(self) -> Floats:
        """Return the bytes on every link as float64[links], read-only."""
        link_bytes = np.zeros(self.links)
        link_bytes[self.link] = self.bytes
        link_bytes.flags.writeable = False
        return link_bytes
