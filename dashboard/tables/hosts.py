"""Tables of the hosts of a job and the ranks on them, switch by switch. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dashboard.layouts.order import natural_order, repeat_number
from dashboard.tables.columns import folded
from mapping.traffic.job_loads import Neighbours
from mapping.traffic.names import short_name
from registry.model import Fabric, Ints, Longs

FLOW = 32
"""Cells per row if no hosts share a switch."""
NAMED = 2
"""Maximum number of switches named in a title; further ones are counted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostCells:
    """The hosts of a job and their neighbours as cells: a row for each switch of the job's hosts.

    Attributes
    ----------
    rows : tuple of str
        Names of the rows, top to bottom.
    cells : DataFrame
        Columns ``row``, ``place`` (within the row, from 0), ``host``, ``mine`` (True for hosts of the job).
    """

    rows: tuple[str, ...]
    cells: pd.DataFrame


def host_cells(fabric: Fabric, neighbours: Neighbours, hosts: Ints | Longs) -> HostCells:
    """Return all hosts on the switches of the given hosts; rows and cells in natural order of names.

    Parameters
    ----------
    hosts : int[h]
        Vertices of a job's hosts.
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
