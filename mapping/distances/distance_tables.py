"""A user's own table of distances by host name, and its checks.

The file is CSV: a first row ``host,NAME,NAME,...`` and one row ``NAME,0,2,...`` for each sending host, as
many rows as columns, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mapping.routing.path_table import read_number, read_rows
from registry.errors import InputError, InvalidValue, UnknownName
from registry.model import Floats
from registry.model.host_names import same_hosts
from registry.model.views import one_line

SAME = 1e-9
"""Relative difference of a pair's two directions that is ignored, since tables have few digits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistanceTable:
    """Distances by host name.

    Attributes
    ----------
    names : tuple of str
        Host names, unique; hosts that are not in use are allowed.
    values : float64[n, n]
        Distance from the host of the row to that of the column.
    path : str
        File of the table; empty if there is none.
    """

    names: tuple[str, ...]
    values: Floats
    path: str = ""

    __repr__ = one_line

    def __post_init__(self) -> None:
        values = np.array(self.values, np.float64)
        if values.shape != (len(self.names), len(self.names)):
            raise InvalidValue(
                "DistanceTable.values", f"has shape {values.shape} for {len(self.names)} hosts"
            )
        if len(set(self.names)) != len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise InvalidValue("DistanceTable.names", f"host {twice!r} occurs twice")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def between(self, hosts: Sequence[str]) -> Floats:
        """Return the part of the table (float64[h, h]) for these hosts, in this order.

        A host that is not in the table is an `UnknownName`.
        """
        index = {name: i for i, name in enumerate(self.names)}
        same = same_hosts(hosts, self.names)
        for host in hosts:
            if host not in same:
                raise UnknownName("host in the table of distances", host, self.names, path=self.path or None)
        rows = np.array([index[same[host]] for host in hosts], np.int64)
        return np.asarray(self.values[np.ix_(rows, rows)], np.float64)


def read_distance_table(path: str | Path) -> DistanceTable:
    """Read a CSV table of distances.

    Raises
    ------
    InputError
        The file cannot be read or a line is invalid; names file, line and text.
    """
    rows = read_rows(path, "table of distances")
    if not rows:
        raise InputError("the table of distances is empty", path=path)
    names = tuple(name.strip() for name in rows[0][1][1:])
    index = {name: i for i, name in enumerate(names)}
    if len(index) != len(names) or "" in index:
        raise InputError("every column of hosts needs a name of its own", path=path, line=rows[0][0])
    values = np.full((len(names), len(names)), np.nan)
    for line, row in rows[1:]:
        _read_row(values, index, row, str(path), line)
    missing = [name for name in names if np.isnan(values[index[name]]).all()]
    if missing:
        raise InputError(f"the table of distances has no row for host {missing[0]!r}", path=path)
    return DistanceTable(names=names, values=values, path=str(path))


def check_distances(values: Any, names: Sequence[str], *, one_way: bool = False) -> Floats:
    """Return the distances as float64[h, h], or raise an error that names the hosts of the first fault.

    Parameters
    ----------
    names : sequence of str
        Names of the hosts, for the error.
    one_way : bool
        Allow the two directions of a pair to differ.
    """
    hosts = len(names)
    given = np.asarray(values)
    if given.dtype.kind not in "fiu" or given.shape != (hosts, hosts):
        raise InvalidValue(
            "distances.table", f"must be numbers of shape ({hosts}, {hosts}), is {given.shape}"
        )
    table = given.astype(np.float64)
    _refuse(np.isnan(table), table, names, "is not a number")
    _refuse(~np.isfinite(table), table, names, "is not finite")
    _refuse(table < 0, table, names, "is below zero")
    _refuse((table != 0) & np.eye(hosts, dtype=bool), table, names, "is within one host and not zero")
    if not one_way:
        asymmetric = ~np.isclose(table, table.T, rtol=SAME, atol=0.0)
        _refuse(asymmetric, table, names, "differs from that of the other direction")
    return table


def _refuse(fault: Any, values: Floats, names: Sequence[str], why: str) -> None:
    if fault.any():
        i, j = divmod(int(np.argmax(fault)), len(names))
        raise InvalidValue(
            "distances.table", f"the distance from {names[i]!r} to {names[j]!r}, {values[i, j]:g}, {why}"
        )


def _read_row(values: Floats, index: dict[str, int], row: list[str], path: str, line: int) -> None:
    """Read one line of the file into its row of `values`."""
    name = row[0].strip()
    if name not in index:
        raise UnknownName("column of distances", name, index, path=path, line=line)
    if len(row) != len(index) + 1:
        raise InputError(f"{len(row) - 1} distances for {len(index)} hosts", path=path, line=line, text=name)
    if not np.isnan(values[index[name]]).all():
        raise InputError("a second row for this host", path=path, line=line, text=name)
    for column, text in enumerate(row[1:]):
        values[index[name], column] = read_number(text, "a distance", path, line)
        if np.isnan(values[index[name], column]):
            raise InputError("is not a distance", path=path, line=line, text=text)
