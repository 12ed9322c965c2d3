"""Define the result of a part, and save and load records."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.papers.circuits.trial import Parameters
from bench.support import paths
from bench.support.machine import machine, now
from bench.support.plots import Panel

RESULTS = paths.RESULTS / "reconfigure"
CALIBRATION = "calibration"
"""Name of the part whose record holds the parameters of the others."""

Cell = str | float | int | bool | None
"""Value of a cell; None if the paper does not give it or it was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Limits of a run.

    Attributes
    ----------
    seconds : float
        Of an experiment: no batch of trials begins later.
    calibration_seconds : float
        Of the calibration.
    fewest, most, batch : int
        Trials of an experiment, and between two looks at its imprecision; most of the paper's numbers of
        trials are multiples of 12.
    pairs : int
        Trials of an experiment on which the best of ours and the bound are computed too.
    workers : int
        Processes.
    small : bool
        Few cases, to try that everything works.
    """

    seconds: float = 180.0
    calibration_seconds: float = 1500.0
    fewest: int = 36
    most: int = 2400
    batch: int = 12
    pairs: int = 16
    workers: int = 2
    small: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with its notes."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the reproduction.

    Attributes
    ----------
    title, setting : str
        What it is, and what was run.
    tables : tuple of Table
    panels : tuple of Panel
    claims : tuple of str
        Keys of sentences of the paper that are compared with.
    data : dict
        More numbers.
    """

    title: str
    setting: str
    tables: tuple[Table, ...]
    panels: tuple[Panel, ...] = ()
    claims: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)


def save(name: str, part: Part, parameters: Parameters, effort: Effort, folder: Path) -> Path:
    """Write the record of a part."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"name": name, "date": now(), "machine": machine(), "effort": asdict(effort)}
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**about, "parameters": asdict(parameters), **asdict(part)}, indent=1) + "\n")
    return path


def load(folder: Path, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the existing records, in the order of these names."""
    paths = [folder / f"{name}.json" for name in names]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def calibrated(folder: Path) -> Parameters | None:
    """Return the parameters chosen by a folder's calibration, or None if it has not run."""
    found = load(folder, (CALIBRATION,))
    return Parameters(**found[0]["data"]["chosen"]) if found else None
