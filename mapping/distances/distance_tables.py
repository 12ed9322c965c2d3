"""A user's own table of distances by host name, and the checks that it must pass.

The file is CSV: a first row ``host,NAME,NAME,...`` and a row ``NAME,0,2,...`` for each sending host, as
many as there are columns, in any order.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from registry.errors import InputError, InvalidValue, UnknownName
from registry.model import Floats

SAME = 1e-9
"""Relative difference of a pair's two directions that counts as none: tables have few digits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistanceTable:
    """Distances by host name.

    Attributes
    ----------
    names : tuple of str
        Without repeats; may hold more hosts than are asked for.
    values : float64[n, n]
        From the host of the row to that of the column.
    path : str
        File it was read from; empty where there is none.
    """

    names: tuple[str, ...]
    values: Floats
    path: str = ""

    def __post_init__(self) -> None:
        values = np.array(self.values, np.float64)
        if values.shape != (len(self.names), len(self.names)):
            raise InvalidValue(
                "DistanceTable.values", f"has shape {values.shape} for {len(self.names)} hosts"
            )
        if len(set(self.names)) != len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise InvalidValue("DistanceTable.names", f"host {twice!r} stands twice")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def between(self, hosts: Sequence[str]) -> Floats:
        """float64[h, h]: the part of the table for these hosts, in this order.

        Raises
        ------
        UnknownName
            A host that the table lacks.
        """
        place = {name: at for at, name in enumerate(self.names)}
        for host in hosts:
            if host not in place:
                raise UnknownName("host in the table of distances", host, self.names, path=self.path or None)
        rows = np.array([place[host] for host in hosts], np.int64)
        return np.asarray(self.values[np.ix_(rows, rows)], np.float64)


def read_distance_table(path: str | Path) -> DistanceTable:
    """Read a CSV table of distances.

    Raises
    ------
    InputError
        The file cannot be read, or a line is not as stated; names file, line and offender.
    """
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the table of distances cannot be read: {error}", path=path) from error
    rows = [(at, row) for at, row in enumerate(csv.reader(io.StringIO(text)), 1) if any(map(str.strip, row))]
    if not rows:
        raise InputError("the table of distances is empty", path=path)
    names = tuple(name.strip() for name in rows[0][1][1:])
    place = {name: at for at, name in enumerate(names)}
    if len(place) != len(names) or "" in place:
        raise InputError("a host's column has no name, or the name of another", path=path, line=rows[0][0])
    values = np.full((len(names), len(names)), np.nan)
    for line, row in rows[1:]:
        _take_row(values, place, row, str(path), line)
    missing = [name for name in names if np.isnan(values[place[name]]).all()]
    if missing:
        raise InputError(f"the table of distances has a column but no row for host {missing[0]!r}", path=path)
    return DistanceTable(names=names, values=values, path=str(path))


def check_distances(values: Any, names: Sequence[str], *, one_way: bool = False) -> Floats:
    """The distances as float64[h, h], or the error that names the hosts of the first fault.

    Parameters
    ----------
    names : sequence of str
        Of the hosts, for the error.
    one_way : bool
        Both directions of a pair may differ.

    Raises
    ------
    InvalidValue
    """
    hosts = len(names)
    given = np.asarray(values)
    if given.dtype.kind not in "fiu" or given.shape != (hosts, hosts):
        raise InvalidValue(
            "distances.table", f"must be numbers of shape ({hosts}, {hosts}), is {given.shape}"
        )
    found = given.astype(np.float64)
    _refuse(np.isnan(found), found, names, "is not a number")
    _refuse(~np.isfinite(found), found, names, "is not finite")
    _refuse(found < 0, found, names, "is below zero")
    _refuse((found != 0) & np.eye(hosts, dtype=bool), found, names, "is within one host and not zero")
    if not one_way:
        _refuse(
            ~np.isclose(found, found.T, rtol=SAME, atol=0.0),
            found,
            names,
            "differs from that of the other direction",
        )
    return found


def _refuse(fault: Any, values: Floats, names: Sequence[str], why: str) -> None:
    if fault.any():
        i, j = divmod(int(np.argmax(fault)), len(names))
        raise InvalidValue(
            "distances.table", f"the distance from {names[i]!r} to {names[j]!r}, {values[i, j]:g}, {why}"
        )


def _take_row(values: Floats, place: dict[str, int], row: list[str], path: str, line: int) -> None:
    name = row[0].strip()
    if name not in place:
        raise UnknownName("column of distances", name, place, path=path, line=line)
    if len(row) != len(place) + 1:
        raise InputError(f"{len(row) - 1} distances for {len(place)} hosts", path=path, line=line, text=name)
    if not np.isnan(values[place[name]]).all():
        raise InputError("a second row for this host", path=path, line=line, text=name)
    for at, text in enumerate(row[1:]):
        try:
            values[place[name], at] = float(text)
        except ValueError as error:
            raise InputError("is no distance", path=path, line=line, text=text) from error
        if np.isnan(values[place[name], at]):
            raise InputError("is no distance", path=path, line=line, text=text)
