"""Options of optical switches, and CSV files of circuits and of weights of ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from almanac.options.common import add_options
from almanac.options.files import read_lines
from almanac.output.circuits import CIRCUIT_COLUMNS

if TYPE_CHECKING:
    from mapping.circuits.problem import Topology
    from registry.model import Floats

WEIGHT_COLUMNS = ("rank", "weight")


def switch_options(end: str, *, compute_default: str) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of an optical switch to a command.

    Parameters
    ----------
    end : str
        Word for an end of a circuit: ``host`` or ``node``.
    compute_default : str
        Default of ``--compute-seconds``, as text.
    """
    compute = (
        f"Time that each rank computes while it sends its profile; the ranks of a {end} compute one after "
        f"the other (default: {compute_default})."
    )
    speed = "Bytes/s of a circuit, both directions together."
    options = (
        click.option("--max-degree", type=int, help=f"Maximum number of circuits at a {end}."),
        click.option("--max-edges", type=int, help="Maximum number of circuits in all."),
        click.option("--link-speed", type=float, help=speed),
        click.option("--compute-seconds", type=float, help=compute),
    )
    return lambda command: add_options(command, options)


def read_circuits(path: str, nodes: int, hosts: Sequence[str] = ()) -> Topology:
    """Read the topology of a CSV file with the columns ``a,b`` and a row per circuit.

    Parameters
    ----------
    hosts : sequence of str
        Names of the nodes in their order, which rows may use instead of numbers.

    Raises
    ------
    InputError
    """
    from mapping.circuits.problem import Topology
    from registry.errors import InputError, InvalidValue

    number = {host: node for node, host in enumerate(hosts)}
    pairs: list[tuple[int, int]] = []
    for row in _rows(path, CIRCUIT_COLUMNS):
        ends = [_node(cell, number) for cell in row.cells]
        if len(ends) != 2 or -1 in ends:
            raise InputError(
                "expected two nodes: numbers from 0, or names of hosts",
                path=path,
                line=row.line,
                text=row.text,
            )
        pairs.append((ends[0], ends[1]))
    try:
        return Topology.of(nodes, pairs)
    except InvalidValue as error:
        raise InputError(error.named(), path=path) from error


def read_weights(path: str, ranks: int) -> Floats:
    """Read the weight of each rank from a CSV file with the columns ``rank,weight`` as float64[ranks].

    Raises
    ------
    InputError
        A rank that does not exist, is repeated or has no weight; a weight that is negative or not finite.
    """
    import numpy as np

    from registry.errors import InputError

    weight = np.full(ranks, np.nan)
    for row in _rows(path, WEIGHT_COLUMNS):
        rank, value = _weight(row.cells)
        if not (0 <= rank < ranks and math.isfinite(value) and value >= 0.0):
            reason = f"expected a rank from 0 to {ranks - 1} and a weight that is finite and not negative"
            raise InputError(reason, path=path, line=row.line, text=row.text)
        if not math.isnan(weight[rank]):
            raise InputError(f"rank {rank} is repeated", path=path, line=row.line, text=row.text)
        weight[rank] = value
    if np.isnan(weight).any():
        raise InputError(f"rank {int(np.argmax(np.isnan(weight)))} has no weight", path=path)
    return weight


class _Row(NamedTuple):
    """A row of a CSV file."""

    line: int
    cells: list[str]
    text: str


def _rows(path: str, columns: tuple[str, ...]) -> Iterator[_Row]:
    """Return the non-empty rows below a first line with these columns.

    Raises
    ------
    InputError
    """
    from registry.errors import InputError

    lines = read_lines(path)
    if not lines or tuple(cell.strip() for cell in lines[0].split(",")) != columns:
        raise InputError(f"the first line must name the columns {','.join(columns)}", path=path, line=1)
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield _Row(number, [cell.strip() for cell in line.split(",")], line)


def _weight(cells: Sequence[str]) -> tuple[int, float]:
    """Return a rank and its weight, or rank -1 if the cells are invalid."""
    if len(cells) != 2:
        return -1, 0.0
    try:
        return _node(cells[0], {}), float(cells[1])
    except ValueError:
        return -1, 0.0


def _node(cell: str, number: dict[str, int]) -> int:
    """Return the number of the node in a cell, or -1 if it is none."""
    if cell in number:
        return number[cell]
    return int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 9 else -1
