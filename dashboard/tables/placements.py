"""Tables of one placement: its costs beside others, its ranks, its communication. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from dashboard.tables.columns import folded, in_utc
from registry import units
from registry.model import Floats, Profile
from registry.store.placement_rows import PRESENT, PROPOSED, StoredPlacement, StoredPlacementInfo


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

WORST = "congestion_seconds"
"""Field of the cost of the worst link."""

MATRIX_BINS = 512


def communication(profile: Profile, bins: int = MATRIX_BINS) -> Floats:
    """Return float64[k, k]: bytes from rank (row) to rank (column), summed over neighbours above `bins`."""
    k = min(profile.ranks, bins)
    bin_of = np.arange(profile.ranks, dtype=np.int64) * k // profile.ranks
    cell = bin_of[profile.sender] * k + bin_of[profile.partner]
    sums: Floats = np.bincount(cell, weights=profile.bytes, minlength=k * k).astype(np.float64)
    return sums.reshape(k, k)


def relative_change(
    value: float, before: float | None, name: str = "in order"
) -> tuple[str | None, bool | None]:
    """Return the difference from a named value as text, and True if it is better; None if there is none."""
    if not before:
        return None, None
    percent = 100 * (value / before - 1)
    if abs(percent) < 0.05:
        return f"as {name}", None
    return f"{percent:+.1f} % against {name}", percent < 0


class JobCosts(NamedTuple):
    """Time of a job's worst link with its placements, in seconds; None if it is not known.

    Attributes
    ----------
    now : float or None
        With the placement that the job runs with, or with ranks in order if that is not known.
    assumed : bool
        True if `now` is that of ranks in order.
    better : float or None
        With the proposed placement.
    best : float or None
        Certified lower bound: no placement on the job's hosts is better.
    random : float or None
        Mean of random placements.
    """

    now: float | None
    assumed: bool
    better: float | None
    best: float | None
    random: float | None

    @property
    def change(self) -> float | None:
        """Relative change from now to the proposed placement: below zero if it is better."""
        return None if not self.now or self.better is None else self.better / self.now - 1

    def points(self) -> dict[str, float]:
        """Return the known values by name, for a figure."""
        named = {"best possible": self.best, "found": self.better, "random": self.random}
        values = {**named, "in order" if self.assumed else "now": self.now}
        return {name: value for name, value in values.items() if value is not None}


def job_costs(shown: StoredPlacement, beside: StoredPlacement | None) -> JobCosts:
    """Return where a job stands, from the placement that is shown and the one it is compared with.

    Parameters
    ----------
    beside : StoredPlacement or None
        None for ranks in order.
    """
    both = [one for one in (shown, beside) if one is not None and one.evaluation is not None]
    values = {one.role: one.evaluation.congestion_seconds for one in reversed(both) if one.evaluation}
    bounds = [
        one.evaluation.bounds[WORST].value
        for one in both
        if one.evaluation and WORST in one.evaluation.bounds
    ]
    in_order = next((one.in_order.congestion_seconds for one in both if one.in_order is not None), None)
    random = next((one.random.congestion_seconds for one in both if one.random is not None), None)
    return JobCosts(
        now=values.get(PRESENT, in_order),
        assumed=PRESENT not in values,
        better=values.get(PROPOSED),
        best=max(bounds, default=None),
        random=random,
    )


def cost_table(shown: StoredPlacement, beside: StoredPlacement | None, name: str) -> pd.DataFrame:
    """Return the costs of a placement beside those of the compared one, of random ones, and the lower bounds.

    Parameters
    ----------
    name : str
        Name of the compared placement.
    """
    assert shown.evaluation is not None
    compared = shown.in_order if beside is None else beside.evaluation
    columns = {"found": shown.evaluation, name: compared, "random mean": shown.random}
    rows = []
    for metric, about in METRICS.items():
        bound = shown.evaluation.bounds.get(metric)
        values = [None if one is None else getattr(one, metric) for one in columns.values()]
        values.append(None if bound is None else bound.value)
        texts = ["" if value is None else units.short(float(value), about.base) for value in values]
        rows.append((about.title, *texts, "" if bound is None else bound.proof))
    return pd.DataFrame(rows, columns=["cost", *columns, "best possible", "proof of the best possible"])


def placements_table(placements: Sequence[StoredPlacementInfo]) -> pd.DataFrame:
    """Return the placements of a job, one row each."""
    seconds = [one.congestion_seconds for one in placements]
    return pd.DataFrame(
        {
            "saved (UTC)": in_utc(one.recorded_at for one in placements),
            "what": ["ran with" if one.role == PRESENT else "proposed" for one in placements],
            "worst link": ["" if one is None else units.short(one, units.SECONDS) for one in seconds],
            "strategy": [one.strategy for one in placements],
            "placement": [one.id for one in placements],
        }
    )


def placement_text(info: StoredPlacementInfo) -> str:
    """Return the text of a placement in a list to choose from."""
    cost = "" if info.congestion_seconds is None else units.short(info.congestion_seconds, units.SECONDS)
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
