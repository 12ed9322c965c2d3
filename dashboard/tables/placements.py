"""What the pages show, as plain tables made from fabrics, loads and profiles. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from registry import units
from registry.model import Floats, Metrics, Profile
from registry.records.placements.placements import StoredPlacementInfo


class Metric(NamedTuple):
    """What a placement is judged by.

    Attributes
    ----------
    title : str
    base : str
        Its unit, of `registry.units`.
    about : str
    """

    title: str
    base: str
    about: str


METRICS = {
    "congestion_seconds": Metric(
        "Worst link", units.SECONDS, "Bytes over capacity of the link that needs longest."
    ),
    "network_congestion_seconds": Metric(
        "Worst link between switches", units.SECONDS, "The same without the hosts' own cables."
    ),
    "hop_bytes": Metric("Hop-bytes", units.BYTES, "Bytes that all links carry together."),
    "average_dilation": Metric(
        "Average dilation", units.HOPS, "Links that a byte crosses; ranks on one host are at distance 0."
    ),
}
"""Fields of an evaluation."""

IN_ORDER, RANDOM_MEAN, PLACED, LOWER_BOUND = "in order", "random mean", "placed", "lower bound"
SERIES = (IN_ORDER, RANDOM_MEAN, PLACED, LOWER_BOUND)
"""A placement and what it is compared with."""

MATRIX_BINS = 512


def in_units(table: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """The table with some columns in a unit that suits, which their new names tell; four digits.

    Parameters
    ----------
    columns : mapping of str to str
        Column and its base unit, such as `registry.units.SECONDS`.
    """
    scaled = table.copy()
    for name, base in columns.items():
        unit = units.unit_for(table[name].dropna().tolist(), base)
        scaled[name] = [float(f"{value / unit.size:.4g}") for value in table[name]]
        scaled = scaled.rename(columns={name: f"{name} ({unit.name})"})
    return scaled


def communication(profile: Profile, bins: int = MATRIX_BINS) -> Floats:
    """float64[k, k]: bytes from rank (row) to rank (column), neighbours summed where there are too many."""
    k = min(profile.ranks, bins)
    bin_of = np.arange(profile.ranks, dtype=np.int64) * k // profile.ranks
    cell = bin_of[profile.sender] * k + bin_of[profile.partner]
    sums: Floats = np.bincount(cell, weights=profile.bytes, minlength=k * k).astype(np.float64)
    return sums.reshape(k, k)


def comparison(
    metric: str,
    placed: float | None,
    in_order: Metrics | None,
    random: Metrics | None,
    bound: float | None,
) -> dict[str, float]:
    """What is known of a metric (of `METRICS`), by series."""
    values = {
        IN_ORDER: None if in_order is None else getattr(in_order, metric),
        RANDOM_MEAN: None if random is None else getattr(random, metric),
        PLACED: placed,
        LOWER_BOUND: bound,
    }
    return {series: float(value) for series, value in values.items() if value is not None}


def change(value: float, before: float | None, name: str = IN_ORDER) -> tuple[str | None, bool | None]:
    """How a value differs from a named one, in words, and whether it is better; None for no difference."""
    if not before:
        return None, None
    percent = 100 * (value / before - 1)
    if abs(percent) < 0.05:
        return f"as {name}", None
    return f"{percent:+.1f} % against {name}", percent < 0


def placement_text(info: StoredPlacementInfo) -> str:
    """A placement in a list."""
    cost = "" if info.congestion_seconds is None else units.text(info.congestion_seconds, units.SECONDS)
    job = "" if info.job is None else f"job {info.job}"
    parts = (info.profile or "", job, cost, info.strategy, units.moment_text(info.recorded_at), info.id)
    return " · ".join(part for part in parts if part)


def ranks_per_host(hosts: Sequence[str], columns: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Ranks of each host, one row a host.

    Parameters
    ----------
    hosts : sequence of str
        In the allocation's order.
    columns : mapping of str to sequence of str
        For each column the host of every rank.
    """
    table = pd.DataFrame({"host": list(hosts)})
    for name, host_of_rank in columns.items():
        ranks: dict[str, list[int]] = {host: [] for host in hosts}
        for rank, host in enumerate(host_of_rank):
            ranks[host].append(rank)
        table[name] = [folded(ranks[host]) for host in hosts]
        table["ranks"] = [len(ranks[host]) for host in hosts]
    return table[["host", "ranks", *columns]]


def folded(numbers: Sequence[int]) -> str:
    """Ascending numbers with runs folded: ``0-3, 7``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
