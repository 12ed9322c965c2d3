"""The links that something loads, and by how much: a few rows of a fabric's many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Floats, Ints, freeze


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedLinks:
    """Loads of the links that carry any.

    Attributes
    ----------
    link : int32[k]
        Rows of ``fabric.links``, ascending.
    bytes : float64[k]
        What each carries; > 0.
    links : int
        Rows that the fabric has in all.
    """

    link: Ints
    bytes: Floats
    links: int

    def __post_init__(self) -> None:
        freeze(self, "link", np.int32, None)
        freeze(self, "bytes", np.float64, len(self.link))
        if len(self.link):
            if int(self.link[0]) < 0 or int(self.link[-1]) >= self.links:
                raise InvalidValue("LoadedLinks.link", f"outside 0 .. {self.links - 1}")
            if (np.diff(self.link) <= 0).any():
                raise InvalidValue("LoadedLinks.link", "must ascend")

    @classmethod
    def of(cls, link_bytes: Floats) -> Self:
        """The links that carry something, of ``float64[m]`` bytes on all links."""
        loaded = np.flatnonzero(link_bytes)
        return cls(link=loaded.astype(np.int32), bytes=link_bytes[loaded], links=len(link_bytes))

    def dense(self) -> Floats:
        """float64[links]: bytes on every link, read-only."""
        link_bytes = np.zeros(self.links)
        link_bytes[self.link] = self.bytes
        link_bytes.flags.writeable = False
        return link_bytes
