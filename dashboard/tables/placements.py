"""Tables of one placement: its costs beside others, its ranks, its communication. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from dashboard.tables.columns import folded
from registry import units
from registry.model import Floats, Metrics, Profile
from registry.records.placements.records import StoredPlacementInfo


class Metric(NamedTuple):
    """A cost of placements.

    Attributes
    ----------
    title : str
    base : str
        Unit of the cost, of `registry.units`.
    about : str
        One-line definition.
    """

    title: str
    base: str
    about: str


METRICS = {
    "congestion_seconds": Metric(
        "Worst link", units.SECONDS, "Bytes over capacity of the link that takes longest."
    ),
    "network_congestion_seconds": Metric(
        "Worst link between switches",
        units.SECONDS,
        "Bytes over capacity of the slowest link between switches.",
    ),
    "hop_bytes": Metric("Hop-bytes", units.BYTES, "Sum of the bytes carried by all links."),
    "average_dilation": Metric(
        "Average dilation", units.HOPS, "Mean number of links that a byte crosses; 0 within a host."
    ),
}
"""Costs by their field of an evaluation."""

IN_ORDER, RANDOM_MEAN, PLACED, LOWER_BOUND = "in order", "random mean", "placed", "lower bound"
SERIES = (IN_ORDER, RANDOM_MEAN, PLACED, LOWER_BOUND)
"""Names of the placement and of its comparisons, in the order of the bars."""

MATRIX_BINS = 512


def communication(profile: Profile, bins: int = MATRIX_BINS) -> Floats:
    """Return float64[k, k]: bytes from rank (row) to rank (column), summed over neighbours above `bins`."""
    k = min(profile.ranks, bins)
    bin_of = np.arange(profile.ranks, dtype=np.int64) * k // profile.ranks
    cell = bin_of[profile.sender] * k + bin_of[profile.partner]
    sums: Floats = np.bincount(cell, weights=profile.bytes, minlength=k * k).astype(np.float64)
    return sums.reshape(k, k)


def comparison(
    metric: str, placed: float | None, in_order: Metrics | None, random: Metrics | None, bound: float | None
) -> dict[str, float]:
    """Return the known values of a cost (of `METRICS`) by series."""
    values = {
        IN_ORDER: None if in_order is None else getattr(in_order, metric),
        RANDOM_MEAN: None if random is None else getattr(random, metric),
        PLACED: placed,
        LOWER_BOUND: bound,
    }
    return {series: float(value) for series, value in values.items() if value is not None}


def relative_change(
    value: float, before: float | None, name: str = IN_ORDER
) -> tuple[str | None, bool | None]:
    """Return the difference from a named value as text, and True if it is better; None if there is none."""
    if not before:
        return None, None
    percent = 100 * (value / before - 1)
    if abs(percent) < 0.05:
        return f"as {name}", None
    return f"{percent:+.1f} % against {name}", percent < 0


def placement_text(info: StoredPlacementInfo) -> str:
    """Return the text of a placement in a list to choose from."""
    cost = "" if info.congestion_seconds is None else units.text(info.congestion_seconds, units.SECONDS)
    job = "" if info.job is None else f"job {info.job}"
    parts = (info.profile or "", job, cost, info.strategy, units.moment_text(info.recorded_at), info.id)
    return " · ".join(part for part in parts if part)


def ranks_per_host(hosts: Sequence[str], columns: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the ranks of each host, one row per host.

    Parameters
    ----------
    hosts : sequence of str
        Hosts in the order of the allocation.
    columns : mapping of str to sequence of str
        Title of each column, and the host of every rank.
    """
    table = pd.DataFrame({"host": list(hosts)})
    for name, host_of_rank in columns.items():
        ranks: dict[str, list[int]] = {host: [] for host in hosts}
        for rank, host in enumerate(host_of_rank):
            ranks[host].append(rank)
        table[name] = [folded(ranks[host]) for host in hosts]
        table["ranks"] = [len(ranks[host]) for host in hosts]
    return table[["host", "ranks", *columns]]
