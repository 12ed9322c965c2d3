"""Figures in docs/reference/launchers.md."""

from __future__ import annotations

from bench.documented.passage import Passage, at

PAGE = "docs/reference/launchers.md"
RECORD = "launchers.json"
ROWS = {
    "Open MPI 4": "| {} | {} of {} |",
    "Open MPI 5": "| {} | {} of {} |",
    "MPICH": "| {} (hydra) | {} of {} |",
    "Intel MPI": "| {} (hydra; its wheels `impi-rt` and `impi-devel`) | {} of {} |",
    "Slurm": "| {}, with its own slots for uneven jobs | {} of {} |",
    "Slurm 24.11": "| {}, likewise | {} of {} |",
    "Slurm 26.05": "| {}, likewise | {} of {} |",
}

PASSAGES = tuple(
    Passage(text, RECORD, at(*(f"{name}/{key}" for key in ("version", "equal", "cases"))))
    for name, text in ROWS.items()
)
