"""Topologies to begin with: condensed graph, chordal ring, 2-D torus, or any that is given (section 5)."""

from __future__ import annotations

import math

import numpy as np

from mapping.reconfiguration.fitting import LoadedTopology, connect, satisfy_max_degree
from mapping.reconfiguration.initial import initial_topology
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.topology import Topology
from registry.errors import InvalidValue, UnknownName

CONDENSED, TORUS, RING, CHORDAL_RING = "condensed", "torus", "ring", "chordal-ring"
SEEDS = (CONDENSED, TORUS, RING, f"{CHORDAL_RING}-Q")
"""Names of seed topologies; Q is the length of the chords, such as ``chordal-ring-6``."""


def chordal_ring(nodes: int, chord: int) -> Topology:
    """The ring C(n; q): node i is joined to i + 1 and to i + q, modulo n; every node has four links.

    Parameters
    ----------
    nodes : int
        n, at least 4.
    chord : int
        q, from 2 to n / 2; nodes have three links where it is n / 2.

    Raises
    ------
    InvalidValue
    """
    if not 2 <= chord <= nodes // 2:
        reason = f"is {chord}, not within 2 .. {nodes // 2} for {nodes} nodes"
        raise InvalidValue("chordal_ring.chord", reason)
    node = np.arange(nodes)
    steps = [np.stack((node, (node + step) % nodes), axis=1) for step in (1, chord)]
    return Topology.of(nodes, np.concatenate(steps))


def ring(nodes: int) -> Topology:
    """Every node joined to the next, the last to the first; two nodes by one link, one by none."""
    node = np.arange(nodes)
    pairs = np.stack((node, (node + 1) % nodes), axis=1)
    return Topology.of(nodes, pairs[pairs[:, 0] != pairs[:, 1]])


def torus(rows: int, columns: int) -> Topology:
    """A 2-D torus: each node joined to the next of its row and of its column, around the ends.

    Raises
    ------
    InvalidValue
        A side below 1.
    """
    if rows < 1 or columns < 1:
        raise InvalidValue("torus.sides", f"are {rows} x {columns}, must be at least 1")
    node = np.arange(rows * columns)
    row, column = np.divmod(node, columns)
    right, below = row * columns + (column + 1) % columns, (row + 1) % rows * columns + column
    pairs = np.concatenate((np.stack((node, right), axis=1), np.stack((node, below), axis=1)))
    return Topology.of(len(node), pairs[pairs[:, 0] != pairs[:, 1]])


def squarest(nodes: int) -> tuple[int, int]:
    """Rows and columns of the 2-D torus of so many nodes that is nearest to a square."""
    rows = next(side for side in range(math.isqrt(nodes), 0, -1) if nodes % side == 0)
    return rows, nodes // rows


def fitted(topology: Topology, machine: Machine, generator: np.random.Generator) -> Topology:
    """A topology cut to the machine's limits (section 5).

    Components are joined as those of a condensed graph are (section 3.1.2); nodes of too many links lose
    some as there (section 3.1.3); links above max-edges are removed at random, none that joins two parts.

    Parameters
    ----------
    generator : numpy.random.Generator
        Draws the links to remove; the same state gives the same topology.

    Raises
    ------
    InvalidValue
        Not as many nodes as the machine has.
    """
    if topology.nodes != machine.nodes:
        raise InvalidValue("fitted.topology", f"has {topology.nodes} nodes, the machine has {machine.nodes}")
    loaded = LoadedTopology(connect(topology), (), (), ())
    satisfy_max_degree(loaded, machine)
    kept = loaded.topology
    gone: list[int] = []
    for link in generator.permutation(kept.links).tolist():
        if kept.links - len(gone) <= machine.max_edges:
            break
        if not kept.components([*gone, link]).any():
            gone.append(link)
    return kept.without(gone)


def seed_topology(
    seed: str | Topology, application: Application, machine: Machine, generator: np.random.Generator
) -> Topology:
    """The topology to begin with, within the machine's limits.

    Parameters
    ----------
    seed : str or Topology
        One of `SEEDS`, or any topology with the machine's nodes.
    generator : numpy.random.Generator
        As for `initial_topology` and `fitted`.

    Raises
    ------
    UnknownName
        No such seed.
    InvalidValue
        A chord that the ring cannot have; a topology of another size.
    """
    if isinstance(seed, Topology):
        return fitted(seed, machine, generator)
    if seed == CONDENSED:
        return initial_topology(application, machine, generator)
    return fitted(_by_name(seed, machine.nodes), machine, generator)


def _by_name(name: str, nodes: int) -> Topology:
    if name == TORUS:
        return torus(*squarest(nodes))
    if name == RING:
        return ring(nodes)
    start, _, chord = name.rpartition("-")
    if start != CHORDAL_RING or not chord.isdecimal():
        raise UnknownName("seed topology", name, SEEDS)
    return chordal_ring(nodes, int(chord[:9]))
