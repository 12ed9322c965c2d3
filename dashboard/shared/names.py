"""Tables of one placement, of its hosts and of links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from dashboard.map.layout import Cables, natural_order, repeat_number
from dashboard.shared.traffic import folded, in_utc
from mapping.traffic.job_loads import Neighbours
from mapping.traffic.names import short_name
from registry import units
from registry.model import Bools, Fabric, Floats, Ints, Links, Longs, Profile
from registry.model.fabric import port_names
from registry.model.links import LINK_COLUMNS
from registry.store.placement_rows import PRESENT, PROPOSED, StoredPlacement, StoredPlacementInfo


class Metric(NamedTuple):
    """A cost of placements."""

    title: str
    base: str
    """Unit of the cost, of `registry.units`."""
    about: str
    """One-line definition."""


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
    """Time of a job's worst link with its placements, in seconds; None if it is not known."""

    now: float | None
    """With the placement that the job runs with, or with ranks in order if that is not known."""
    assumed: bool
    """True if `now` is that of ranks in order."""
    better: float | None
    """With the proposed placement."""
    best: float | None
    """Certified lower bound: no placement on the job's hosts is better."""
    random: float | None
    """Mean of random placements."""

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

    Args:
        beside: None for ranks in order.
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

    Args:
        name: Name of the compared placement.
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

    Args:
        hosts: Hosts in the order of the allocation.
        columns: Title of each column, and the host of every rank.
    """
    table = pd.DataFrame({"host": list(hosts)})
    for name, host_of_rank in columns.items():
        ranks: dict[str, list[int]] = {host: [] for host in hosts}
        for rank, host in enumerate(host_of_rank):
            ranks[host].append(rank)
        table[name] = [folded(ranks[host]) for host in hosts]
        table["ranks"] = [len(ranks[host]) for host in hosts]
    return table[["host", "ranks", *columns]]


FLOW = 32
"""Cells per row if no hosts share a switch."""
NAMED = 2
"""Maximum number of switches named in a title; further ones are counted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostCells:
    """The hosts of a job and their neighbours as cells: a row for each switch of the job's hosts."""

    rows: tuple[str, ...]
    """Names of the rows, top to bottom."""
    cells: pd.DataFrame
    """Columns ``row``, ``place`` (within the row, from 0), ``host``, ``mine`` (True for hosts of the job)."""


def host_cells(fabric: Fabric, neighbours: Neighbours, hosts: Ints | Longs) -> HostCells:
    """Return all hosts on the switches of the given hosts; rows and cells in natural order of names.

    Args:
        hosts (int[h]): Vertices of a job's hosts.
    """
    rank = natural_order(fabric.names)
    groups = np.unique(neighbours.group[hosts])
    near = fabric.hosts[np.isin(neighbours.group[fabric.hosts], groups)].astype(np.int32)
    near = near[np.argsort(rank[near], kind="stable")]
    isolated = len(near) == len(groups)
    rows, row, place = _fill_rows(len(near)) if isolated else _by_switch(fabric, near, neighbours.group[near])
    cells = pd.DataFrame(
        {
            "row": [rows[k] for k in row.tolist()],
            "place": place,
            "host": [fabric.names[v] for v in near.tolist()],
            "mine": np.isin(near, hosts),
        }
    )
    return HostCells(rows=rows, cells=cells)


def with_ranks(cells: pd.DataFrame, fabric: Fabric, host_of_rank: Ints) -> pd.DataFrame:
    """Return the cells with the ranks on each host: as text, their count, and the median (``middle``)."""
    order = np.argsort(host_of_rank, kind="stable")
    hosts, first = np.unique(host_of_rank[order], return_index=True)
    by_host = dict(zip([fabric.names[v] for v in hosts.tolist()], np.split(order, first[1:]), strict=True))
    found = [by_host.get(host, np.zeros(0, np.int64)) for host in cells["host"]]
    return cells.assign(
        ranks=[folded(ranks.tolist()) for ranks in found],
        count=[len(ranks) for ranks in found],
        middle=[float(np.median(ranks)) if len(ranks) else np.nan for ranks in found],
    )


def _switches(fabric: Fabric, host: int) -> str:
    """Return the names of the switches that a host is connected to."""
    links = fabric.links
    found = np.unique(links.target[(links.source == host) & fabric.forwards[links.target]]).tolist()
    if len(found) > NAMED:
        return f"{short_name(fabric.names[found[0]])} and {len(found) - 1} more"
    return " + ".join(short_name(fabric.names[v]) for v in found)


def _fill_rows(count: int) -> tuple[tuple[str, ...], Longs, Longs]:
    """Return rows for hosts that share no switch: names of the rows, and row and place of each host."""
    number = np.arange(count)
    starts = range(0, count, FLOW)
    rows = tuple(f"hosts {start + 1:,} to {min(start + FLOW, count):,}" for start in starts)
    return rows, number // FLOW, number % FLOW


def _by_switch(fabric: Fabric, near: Ints, group: Ints) -> tuple[tuple[str, ...], Longs, Longs]:
    """Return a row for each group of hosts with the same switches: names, and row and place of each host."""
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    titles = _numbered([_switches(fabric, int(host)) for host in near[first].tolist()])
    rank = natural_order(titles)
    rows = tuple(titles[k] for k in np.argsort(rank, kind="stable").tolist())
    return rows, rank[number].astype(np.int64), repeat_number(number.astype(np.int64))


def _numbered(titles: list[str]) -> list[str]:
    """Return the titles with a number appended to repeated ones."""
    seen: dict[str, int] = {}
    unique = []
    for text in titles:
        seen[text] = seen.get(text, 0) + 1
        unique.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return unique


LOADS = {"load": units.BYTES, "capacity": units.RATE}
"""Base units of columns of tables of links."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bundles:
    """Lines of a map: one for all cables between two vertices."""

    cable: Longs
    """int64[l]: Row of `dashboard.map.layout.Cables` of the busiest cable of each line."""
    row: Longs
    """int64[l]: Busier direction of that cable, a row of ``fabric.links``."""
    value: Floats
    """float64[l]: Value of that link."""
    cables: Longs
    """int64[l]: Number of physical cables of each line."""

    def __len__(self) -> int:
        return len(self.cable)


def hottest_links(fabric: Fabric, link_bytes: Floats, count: int) -> tuple[Longs, pd.DataFrame]:
    """Return the links that take longest, worst first, without links that carry nothing.

    Returns:
        int64[k]: Rows of ``fabric.links``, and their ends, times (s), loads (bytes) and capacities (bytes/s).
    """
    links = fabric.links
    seconds = link_bytes / links.capacity
    order = np.argsort(-seconds, kind="stable")[:count]
    order = order[seconds[order] > 0]
    worst = float(seconds.max(initial=0.0))
    return order, pd.DataFrame(
        {
            **_ends(fabric, order),
            "time": seconds[order],
            "load": link_bytes[order],
            "capacity": links.capacity[order],
            "of the worst": seconds[order] / worst if worst > 0 else seconds[order],
            "kind": link_kinds(fabric, order),
        }
    )


def _ends(fabric: Fabric, rows: Longs) -> dict[str, list[str]]:
    """Return the columns that name the ports at both ends of some links."""
    names, links = port_names(fabric), fabric.links
    ends = {"from": (links.source, names.source), "to": (links.target, names.target)}
    return {
        column: [
            fabric.names[vertex] + names.texts[port]
            for vertex, port in zip(vertices[rows].tolist(), ports[rows].tolist(), strict=True)
        ]
        for column, (vertices, ports) in ends.items()
    }


def link_kinds(fabric: Fabric, rows: Longs) -> list[str]:
    """Return for each of some links whether it is between switches or a host's cable."""
    return ["network" if inner else "host cable" for inner in fabric.network_link[rows].tolist()]


def busier_direction(cables: Cables, values: Floats) -> tuple[Floats, Longs]:
    """Return the larger value of the two directions of each cable (NaN is smallest), and its link's row.

    Args:
        values (float64[m]): Value of each link.
    """
    padded = np.append(np.nan_to_num(values, nan=-np.inf), -np.inf)
    there, back = padded[cables.there], padded[cables.back]
    row = np.where(((there >= back) & (cables.there >= 0)) | (cables.back < 0), cables.there, cables.back)
    return values[row], row


def bundles(fabric: Fabric, cables: Cables, values: Floats, gone: Bools | None = None) -> Bundles:
    """Return one line for all cables between two vertices: its busiest link and its number of cables.

    Args:
        values (float64[m]): Value of each link.
        gone (bool[c]): Removed cables; those of two vertices are a separate line before the line of the
            remaining ones.
    """
    value, row = busier_direction(cables, values)
    left = np.ones(len(cables), np.bool_) if gone is None else ~gone
    order = np.lexsort((-np.nan_to_num(value, nan=-np.inf), left, cables.b, cables.a))
    keys = np.stack([cables.a, cables.b, left])[:, order]
    first = np.flatnonzero(np.r_[True, (np.diff(keys) != 0).any(axis=0)]) if len(order) else order
    count = fabric.links.cables[row[order]]
    total = np.add.reduceat(count, first) if len(first) else count
    hottest = order[first]
    return Bundles(cable=hottest, row=row[hottest], value=value[hottest], cables=total.astype(np.int64))


def with_removed(links: Links, older: Links, gone: Longs) -> Links:
    """Return links followed by some rows of the links of an earlier state."""
    columns = {name: np.r_[getattr(links, name), getattr(older, name)[gone]] for name in LINK_COLUMNS}
    return Links(**columns)


def loaded_links(
    fabric: Fabric, seconds: Mapping[str, Floats], link_bytes: Floats, count: int | None
) -> tuple[Longs, pd.DataFrame]:
    """Return the links that any of several placements loads, the longest time in any of them first.

    Args:
        seconds (mapping of str to float64[m]): Time of each link, for each placement.
        link_bytes (float64[m]): Loads of one placement, for the column ``load``.
        count: Maximum number of rows; None for all.

    Returns:
        int64[k]: Rows of ``fabric.links``; their ends, time for each placement (s), load (bytes), capacity
        (bytes/s).
    """
    links = fabric.links
    worst = np.max(list(seconds.values()), axis=0)
    order = np.argsort(-worst, kind="stable")[:count]
    order = order[worst[order] > 0]
    table = pd.DataFrame(
        {
            **_ends(fabric, order),
            "kind": link_kinds(fabric, order),
            **{name: values[order] for name, values in seconds.items()},
            "load": link_bytes[order],
            "capacity": links.capacity[order],
        }
    )
    return order, table
