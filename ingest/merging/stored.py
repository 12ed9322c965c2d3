"""A source without ports beside what is stored of a fabric with them: compared, told, and not kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ingest.merging.fabrics import STAND_INS, Told, differences
from registry.errors import InputError, PoorerSource
from registry.model import Fabric
from registry.units import moment_text

_TAKEN = re.compile(r": (it is (kept|added|left out)|the first is taken)$")
"""What merging does about a disagreement; here nothing is merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a source without ports and the stored fabric disagree on.

    Attributes
    ----------
    at : datetime
        When the stored fabric was seen, UTC.
    disagreements : tuple of str
        A line each, both named in it; none where the two agree.
    """

    at: datetime
    disagreements: tuple[str, ...]


def compare_with_stored(
    cluster: str, source: str, sources: Sequence[Told], stored: Fabric, at: datetime
) -> Comparison:
    """What sources that tell no ports and a stored fabric disagree on.

    Parameters
    ----------
    cluster, source : str
        Names of the cluster and of the sources' formats, for the error.
    sources : sequence of Told
        At least one.
    stored : Fabric
        What was seen of the cluster before.
    at : datetime
        When.

    Raises
    ------
    PoorerSource
        They have no host or switch in common: there is nothing to compare.
    """
    known = Told(path=f"{cluster} as seen at {moment_text(at)}", fabric=stored)
    lines: list[str] = []
    for told in sources:
        try:
            found = differences(known, told).lines(without=STAND_INS)
        except InputError as error:
            raise PoorerSource(cluster, source) from error
        lines.extend(_TAKEN.sub("", line) for line in found)
    return Comparison(at=at, disagreements=tuple(lines))
