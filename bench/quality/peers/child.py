"""Run one tool that has a Python interface: ``python -m bench.quality.peers.child FOLDER TOOL ...``.

Reads the instance from the folder and leaves ``answer.npy`` there: the terminal of the target (PyScotch) or
the host (Mt-KaHyPar) of each rank.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from bench.quality.peers.files import RESOLUTION
from registry.model import Floats, Longs


def main(arguments: list[str]) -> None:
    """Run one tool."""
    folder, tool, *options = arguments
    run = pyscotch if tool == "pyscotch" else mtkahypar
    answer = run(Path(folder), *options)
    np.save(Path(folder) / "answer.npy", answer)


def pyscotch(folder: Path, target: str, flags: str, seed: str) -> Longs:
    """Map the guest onto a target file, with a balance that allows at most one rank per slot."""
    scotch = import_module("pyscotch")

    graph = scotch.Graph()
    graph.load(str(folder / "guest.grf"))
    architecture = scotch.Architecture()
    architecture.load(target)
    strategy = scotch.Strategy()
    strategy.request_mapping(scotch.StrategyFlags[flags] | scotch.StrategyFlags.BALANCE, balance=0.0)
    scotch.random_seed(int(seed))
    scotch.random_reset()
    return np.asarray(graph.map(architecture, strategy))


def mtkahypar(folder: Path, preset: str) -> Longs:
    """Map onto groups of hosts, then onto the parts of each group, and so on down to hosts."""
    tool = import_module("mtkahypar")

    given = np.load(folder / "request.npz")
    ranks, hosts = len(given["indptr"]) - 1, len(given["slots"])
    levels = [*given["groups"], np.arange(hosts)]
    traffic = csr_array((given["weights"], given["indices"], given["indptr"]), shape=(ranks, ranks))
    context_maker = tool.initialize(1)
    tool.set_seed(1)
    parts = [(np.arange(ranks), np.arange(hosts))]
    for level in levels:
        finer = []
        for members, places in parts:
            group, index = np.unique(level[places], return_inverse=True)
            slots = np.bincount(index, given["slots"][places]).astype(np.int64)
            near = given["distances"][np.ix_(places, places)]
            block = _onto_blocks(
                tool, context_maker, preset, traffic[members][:, members], _means(near, index), slots
            )
            if (np.bincount(block, minlength=len(group)) > slots).any():
                raise SystemExit("more ranks on a group of hosts than it has slots")
            finer += [(members[block == one], places[index == one]) for one in range(len(group))]
        parts = finer
    host = np.empty(ranks, np.int64)
    for members, places in parts:
        host[members] = places[0]
    return host


def _means(distances: Floats, group: Longs) -> Longs:
    """Return the mean distances of hosts of two groups, in whole units from 1."""
    inside = np.eye(int(group.max()) + 1)[group]
    count = inside.sum(axis=0)
    mean = inside.T @ distances @ inside / np.outer(count, count)
    return np.maximum(1, np.rint(RESOLUTION * mean)).astype(np.int64)


def _onto_blocks(
    tool: Any, context_maker: Any, preset: str, traffic: csr_array, distances: Longs, slots: Longs
) -> Longs:
    """Run Steiner-tree mapping on the complete graph of distances, with slots as block weights."""
    ranks, blocks = traffic.shape[0], len(slots)
    pairs = coo_array(traffic)
    once = pairs.row < pairs.col
    if blocks == 1 or not once.any():
        return np.repeat(np.arange(blocks), slots)[:ranks]
    context = context_maker.context_from_preset(getattr(tool.PresetType, preset))
    context.set_mapping_parameters(blocks, 0.0)
    context.set_individual_target_block_weights(slots.tolist())
    context.logging = False
    edges = list(zip(pairs.row[once].tolist(), pairs.col[once].tolist(), strict=True))
    graph = context_maker.create_graph(
        context, ranks, len(edges), edges, [1] * ranks, pairs.data[once].tolist()
    )
    near, far = np.triu_indices(blocks, 1)
    links = list(zip(near.tolist(), far.tolist(), strict=True))
    target = context_maker.create_target_graph(
        context, blocks, len(links), links, distances[near, far].tolist()
    )
    return np.asarray(graph.map_onto_graph(target, context).get_partition(), np.int64)


if __name__ == "__main__":
    main(sys.argv[1:])
