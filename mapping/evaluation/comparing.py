"""Comparison of placements link by link, by the difference of their loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mapping.evaluation.loaded_links import LoadedLink, link
from registry.errors import InvalidValue
from registry.model import Evaluation, Fabric


class Difference(NamedTuple):
    """A link direction that placements load differently.

    Attributes
    ----------
    row : int
        Row of ``fabric.links``.
    loads : tuple of LoadedLink
        Load of each placement.
    seconds : float
        Difference between the largest and the smallest time.
    """

    row: int
    loads: tuple[LoadedLink, ...]
    seconds: float


def differences(
    fabric: Fabric, evaluations: Sequence[Evaluation], *, most: int | None = None
) -> list[Difference]:
    """Return link directions by the difference of their times, largest first; ties by row.

    Parameters
    ----------
    evaluations : sequence of Evaluation
        Evaluations of at least two placements on this fabric.
    most : int, optional
        Most links to return; default: all that differ.

    Raises
    ------
    InvalidValue
        Fewer than two evaluations, or one of another fabric.
    """
    if len(evaluations) < 2:
        raise InvalidValue("differences.evaluations", "at least two are needed")
    if any(len(one.link_bytes) != len(fabric.links) for one in evaluations):
        raise InvalidValue("differences.evaluations", "one is of a fabric with another number of links")
    seconds = np.stack([one.link_bytes for one in evaluations]) / fabric.links.capacity
    spread = seconds.max(axis=0) - seconds.min(axis=0)
    rows = np.argsort(-spread, kind="stable")[: int((spread > 0).sum())][:most]
    return [
        Difference(row, tuple(link(fabric, one, row) for one in evaluations), float(spread[row]))
        for row in rows.tolist()
    ]
