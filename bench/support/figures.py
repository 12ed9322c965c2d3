"""Define reproduced figures and the papers' claims, and save and load them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from bench.support import paths
from bench.support.machine import machine, now
from bench.support.plots import Panel

VALUES = paths.ROOT / "bench" / "papers" / "mapping" / "values.toml"
RESULTS = paths.RESULTS / "papers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Limits of a run.

    Attributes
    ----------
    refine_seconds : float
        Time of threshold accepting after one strategy.
    search_seconds : float
        Time of our default search.
    small : bool
        Run few and small cases, as a trial.
    """

    refine_seconds: float = 5.0
    search_seconds: float = 10.0
    small: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Our value beside the paper's.

    Attributes
    ----------
    what : str
        Case and metric.
    ours : float or str
    baseline : str
        Baseline of a percentage, or a unit.
    paper : str
        Key in ``values.toml``, or empty if the text gives no value.
    why : str
        Reason of the difference.
    """

    what: str
    ours: float | str
    baseline: str = ""
    paper: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Values of all cases, besides the rows.

    Attributes
    ----------
    title : str
    head : tuple of str
        Names of columns; those of one that ends in ``(%)`` are printed as changes in percent.
    cells : tuple of tuple of str or float
    """

    title: str
    head: tuple[str, ...]
    cells: tuple[tuple[str | float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A reproduced figure or table.

    Attributes
    ----------
    title : str
    setting : str
        Description of the runs.
    rows : tuple of Row
    panels : tuple of Panel
    picture : bytes
        A PNG to keep beside the record instead of plots of panels; empty if there is none.
    tables : tuple of Table
    """

    title: str
    setting: str
    rows: tuple[Row, ...]
    panels: tuple[Panel, ...] = ()
    picture: bytes = b""
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A claim of a paper.

    Attributes
    ----------
    value : float or str
    where : str
        Section, figure or table.
    quote : str
        The sentence of the text.
    """

    value: float | str
    where: str
    quote: str


@cache
def said(values: Path = VALUES) -> dict[str, Said]:
    """Return all claims of ``values.toml``, or of another such file, by key."""
    return {key: Said(**entry) for key, entry in tomllib.loads(values.read_text()).items()}


def save(
    name: str,
    figure: Figure,
    effort: Effort | Mapping[str, Any],
    folder: Path = RESULTS,
    values: Path = VALUES,
) -> None:
    """Write a figure's record; every row's key must be in ``values.toml``, or in `values`."""
    for row in figure.rows:
        if row.paper and row.paper not in said(values):
            raise KeyError(f"{name}: {row.paper!r} is not in values.toml")
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "name": name,
        "date": now(),
        "machine": machine(),
        "effort": _effort_fields(effort),
        **asdict(replace(figure, picture=b"")),
        "picture": bool(figure.picture),
    }
    if figure.picture:
        (folder / f"{name}.png").write_bytes(figure.picture)
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def _effort_fields(effort: Effort | Mapping[str, Any]) -> dict[str, Any]:
    return asdict(effort) if isinstance(effort, Effort) else dict(effort)


def load(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Return all existing records, by name."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
