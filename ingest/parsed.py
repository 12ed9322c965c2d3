"""Result of a parser: the data of one source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from registry.model import Bools
from registry.model.arrays import readonly
from registry.model.intake import IngestedData


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parsed(IngestedData):
    """Data of one source; `IngestedData` has an attribute for each kind.

    The fabric's `observed_at` is the time of the scan, or None if the source does not contain it. Counters
    and intended wiring carry the caller's time (default: the time of the file).

    Attributes
    ----------
    assumed : bool[m] or None
        True for links whose capacity is missing in the source, so that another source may supply it. None if
        no capacity is missing.
    incomplete : str
        Reason why the source alone is no fabric (it contains no links), and which files to add. Empty if it
        is complete.
    warnings : tuple of str
        Oddities that did not prevent reading, counted, one line each.
    """

    assumed: Bools | None = None
    incomplete: str = ""
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.assumed is not None:
            object.__setattr__(self, "assumed", readonly(self.assumed, np.bool_, "Parsed.assumed"))
        if self.profiles and not self.traces:
            object.__setattr__(self, "traces", (None,) * len(self.profiles))
