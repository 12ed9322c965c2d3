"""Where a benchmark writes: below ``build/bench``, or with ``--record`` the records of the repository."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import bench.documented
from bench.documented.passage import Passage, record, table_rows
from bench.support import paths
from registry.installation import install_command


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where records go."""
    parser.add_argument(
        "--record", action="store_true", help="write the records, page and plots of the repository"
    )
    parser.add_argument("--output", type=Path, help="folder of records [default: one below build/bench]")


def output_folder(parser: argparse.ArgumentParser, given: argparse.Namespace, results: Path) -> Path:
    """Return the folder of records that the options name; `results` is that of the repository.

    Plots need matplotlib: without it the repository's records are not written, and for others a line says
    which command installs it.
    """
    if given.record and (given.output or given.small):
        parser.error("--record: not with --output or --small")
    if given.page_only and not (given.record or given.output):
        parser.error("--page-only: needs --record or --output")
    if not has_plots():
        command = install_command("bench")
        if given.record:
            parser.error(f"--record draws plots, which need matplotlib: {command}")
        print(f"without plots, since matplotlib is not installed: {command}", file=sys.stderr, flush=True)
    if given.record:
        return results
    own = results.name + ("-small" if given.small else "")
    folder: Path = given.output or build() / own
    return folder


def build() -> Path:
    """Return the folder of records that are not kept in the repository."""
    return paths.ROOT / "build" / "bench"


def has_plots() -> bool:
    """Return True if plots can be drawn."""
    return find_spec("matplotlib") is not None


def known(results: Path, name: str) -> None:
    """Read a record of the repository, if there is one, before a run may replace it: see `print_table`."""
    if (results / f"{name}.json").exists():
        record(f"{results.name}/{name}.json")


def print_table(results: Path, name: str, folder: Path, otherwise: Sequence[str]) -> None:
    """Print the tables of the documentation that show a record, with the values of a new one.

    Parameters
    ----------
    results : Path
        Folder of the repository with the record that the documentation shows.
    name : str
        Name of the record.
    folder : Path
        Folder with the new record.
    otherwise : sequence of str
        Printed if no page has a table of this record, or the new one lacks a value of it.
    """
    lines = []
    for page, passages in _passages(f"{results.name}/{name}.json").items():
        rows = table_rows((paths.ROOT / page).read_text("utf-8"), passages, folder / f"{name}.json")
        lines += ["", f"{page}, with the values of this run:", "", *rows] if rows else []
    print("\n".join(lines or ["", *otherwise]), flush=True)


def _passages(path: str) -> dict[str, list[Passage]]:
    """Return the passages with values of a record, by page."""
    found: dict[str, list[Passage]] = {}
    for one in pkgutil.iter_modules(bench.documented.__path__):
        module = importlib.import_module(f"bench.documented.{one.name}")
        for passage in getattr(module, "PASSAGES", ()):
            if passage.record == path:
                found.setdefault(module.PAGE, []).append(passage)
    return found
