"""Comparison of a source without ports with the stored fabric, which has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ingest.merging.fabrics import STAND_INS, SourceFabric, differences
from registry.errors import InputError, PoorerSource
from registry.model import Fabric
from registry.units import moment_text

_ACTION = re.compile(r": (it is (kept|added|left out)|the first is taken)$")
"""End of a line: what merging does about a disagreement. A comparison merges nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Disagreements between a source without ports and the stored fabric.

    Attributes
    ----------
    time : datetime
        Time of the stored fabric's observation, UTC.
    disagreements : tuple of str
        One line per disagreement, naming both sides; empty if the two agree.
    """

    time: datetime
    disagreements: tuple[str, ...]


def compare_with_stored(
    cluster: str, source: str, sources: Sequence[SourceFabric], stored: Fabric, time: datetime
) -> Comparison:
    """Compare sources without ports with a stored fabric.

    Parameters
    ----------
    cluster, source : str
        Names of the cluster and of the sources' formats, for the error.
    sources : sequence of SourceFabric
        At least one.
    stored : Fabric
        Last observed fabric of the cluster.
    time : datetime
        Time of that observation.

    Raises
    ------
    PoorerSource
        They have no host or switch in common, so that nothing can be compared.
    """
    known = SourceFabric(path=f"{cluster} as seen at {moment_text(time)}", fabric=stored)
    lines: list[str] = []
    for one in sources:
        try:
            found = differences(known, one).lines(without=STAND_INS)
        except InputError as error:
            raise PoorerSource(cluster, source) from error
        lines.extend(_ACTION.sub("", line) for line in found)
    return Comparison(time=time, disagreements=tuple(lines))
