"""Where a job's ranks sit, host by host and switch by switch: pure functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dashboard.layouts.order import natural_order, running
from dashboard.tables.placements import folded
from mapping.traffic.fragmentation import Neighbours
from registry.model import Fabric, Ints, Longs

FLOW = 32
"""Cells of a row where hosts hang on no common switch."""
NAMED = 2
"""Switches of a group that are named; of more only the number is told."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostCells:
    """The hosts near a job's as cells: a row for each switch that the job has hosts on.

    Attributes
    ----------
    rows : tuple of str
        Names of the rows, from the top.
    cells : DataFrame
        Columns ``row``, ``place`` (within the row, from 0), ``host``, ``mine`` (whether it is one of them).
    """

    rows: tuple[str, ...]
    cells: pd.DataFrame


def host_cells(fabric: Fabric, neighbours: Neighbours, hosts: Ints | Longs) -> HostCells:
    """Every host on the switches that some hosts hang on; rows and places in natural order.

    Parameters
    ----------
    hosts : int[h]
        Vertices: those of a job.
    """
    rank = natural_order(fabric.names)
    groups = np.unique(neighbours.group[hosts])
    near = fabric.hosts[np.isin(neighbours.group[fabric.hosts], groups)].astype(np.int32)
    near = near[np.argsort(rank[near], kind="stable")]
    alone = len(near) == len(groups)
    rows, row, place = _flow(len(near)) if alone else _by_switch(fabric, near, neighbours.group[near])
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
    """The cells with the ranks that sit there.

    Returns
    -------
    DataFrame
        Columns of `HostCells.cells` and ``ranks`` (text), ``count`` and ``middle`` (median rank;
        NaN where none).
    """
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
    """The switches that a host hangs on."""
    links = fabric.links
    found = np.unique(links.target[(links.source == host) & fabric.forwards[links.target]]).tolist()
    if len(found) > NAMED:
        return f"{fabric.names[found[0]]} and {len(found) - 1} more"
    return " + ".join(fabric.names[v] for v in found)


def _flow(count: int) -> tuple[tuple[str, ...], Longs, Longs]:
    """Rows of hosts that hang on no common switch: their names, and row and place of each host."""
    number = np.arange(count)
    starts = range(0, count, FLOW)
    rows = tuple(f"hosts {start + 1:,} to {min(start + FLOW, count):,}" for start in starts)
    return rows, number // FLOW, number % FLOW


def _by_switch(fabric: Fabric, near: Ints, group: Ints) -> tuple[tuple[str, ...], Longs, Longs]:
    """A row a group of neighbouring hosts: their names, and row and place of each host."""
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    titles = _told_apart([_switches(fabric, int(host)) for host in near[first].tolist()])
    rank = natural_order(titles)
    rows = tuple(titles[k] for k in np.argsort(rank, kind="stable").tolist())
    return rows, rank[number].astype(np.int64), running(number.astype(np.int64))


def _told_apart(titles: list[str]) -> list[str]:
    """Titles with a number behind those that came before."""
    seen: dict[str, int] = {}
    told = []
    for text in titles:
        seen[text] = seen.get(text, 0) + 1
        told.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return told
