"""Run one tool that has a Python interface: ``python -m bench.quality.peers.child FOLDER TOOL ...``.

Reads the instance from the folder and leaves ``answer.npy`` there: the terminal of the target (PyScotch) or
the host (Mt-KaHyPar) of each rank.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np

from registry.model import Longs


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
    """Run Steiner-tree mapping on the complete graph of host distances, with slots as block weights."""
    tool = import_module("mtkahypar")

    given = np.load(folder / "request.npz")
    ranks, hosts = len(given["indptr"]) - 1, len(given["slots"])
    context_maker = tool.initialize(2)
    tool.set_seed(1)
    context = context_maker.context_from_preset(getattr(tool.PresetType, preset))
    context.set_mapping_parameters(hosts, 0.0)
    context.set_individual_target_block_weights(given["slots"].tolist())
    context.logging = False
    one = np.repeat(np.arange(ranks), np.diff(given["indptr"]))
    once = one < given["indices"]
    edges = list(zip(one[once].tolist(), given["indices"][once].tolist(), strict=True))
    graph = context_maker.create_graph(
        context, ranks, len(edges), edges, [1] * ranks, given["weights"][once].tolist()
    )
    near, far = np.triu_indices(hosts, 1)
    pairs = list(zip(near.tolist(), far.tolist(), strict=True))
    cost = np.maximum(1, np.rint(given["distances"][near, far])).astype(int).tolist()
    target = context_maker.create_target_graph(context, hosts, len(pairs), pairs, cost)
    return np.asarray(graph.map_onto_graph(target, context).get_partition())


if __name__ == "__main__":
    main(sys.argv[1:])
