"""The most loaded links of placements, with the names of their ends, and differences between placements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from registry.errors import InvalidValue
from registry.model import Evaluation, Fabric, format_guid
from registry.model.fabric import End, end_columns, end_name


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEnd:
    """One end of a link: device, its GUID (a host's: the adapter's), port; and both as a text."""

    name: str
    guid: str
    port: int | None
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLink:
    """A link direction with its load."""

    source: LinkEnd
    target: LinkEnd
    bytes: float
    capacity: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


def link(fabric: Fabric, evaluation: Evaluation, row: int) -> LoadedLink:
    """Return a row of ``fabric.links`` with its load, by names."""
    return link_with(fabric, row, float(evaluation.link_bytes[row]))


def link_with(fabric: Fabric, row: int, carried: float) -> LoadedLink:
    """Return a row of ``fabric.links`` with a number of bytes, by names."""
    links = fabric.links
    capacity = float(links.capacity[row])
    return LoadedLink(
        source=_end(fabric, row, "source"),
        target=_end(fabric, row, "target"),
        bytes=carried,
        capacity=capacity,
        seconds=carried / capacity,
    )


def worst_link(fabric: Fabric, evaluation: Evaluation, *, network: bool = False) -> LoadedLink | None:
    """Return the link with the largest load / capacity, of all or of the network; None without load."""
    seconds = evaluation.link_bytes / fabric.links.capacity
    if network:
        seconds = np.where(fabric.network_link, seconds, 0.0)
    if not seconds.any():
        return None
    return link(fabric, evaluation, int(np.argmax(seconds)))


def _end(fabric: Fabric, row: int, end: End) -> LinkEnd:
    vertex, port, adapter = (int(column[row]) for column in end_columns(fabric, end))
    guid = int(fabric.adapters.guid[adapter]) if adapter >= 0 else int(fabric.guid[vertex])
    return LinkEnd(
        name=fabric.names[vertex],
        guid=format_guid(guid),
        port=port if port >= 0 else None,
        text=end_name(fabric, row, end),
    )


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
