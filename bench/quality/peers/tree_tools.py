"""Run TreeMatch, VieM and SharedMap, which map onto a tree of equal groups of slots."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from bench.quality.peers.files import guest_graph, write_metis
from bench.quality.peers.hierarchies import Hierarchy, hierarchies
from bench.quality.peers.process import Answer, read_answer, run
from bench.support.instances import Contest
from registry.model import Allocation, Ints

PROGRAMS = {
    "TreeMatch": ("treematch", "TREEMATCH"),
    "VieM": ("viem", "VIEM"),
    "SharedMap": ("SharedMap", "SHAREDMAP"),
}
"""Program and environment variable with its path, by tool."""
TREE_PRESETS = {"VieM": ("eco",), "SharedMap": ("eco", "strong")}
"""By tool. VieM's strong one takes up to ten times as long; on four instances it was never the best tool."""
LARGEST_SUM = (1 << 31) - 1
"""Of bytes times distances: VieM and KaHIP count in 32 bits."""


def program(tool: str) -> str | None:
    """Return the path of a tool's program: that of its environment variable, or one on the search path."""
    name, variable = PROGRAMS[tool]
    return shutil.which(os.environ.get(variable) or name)


def tree_answers(
    contest: Contest, allocation: Allocation, where: str, folder: Path, limit: float
) -> Iterator[Answer]:
    """Run each installed tool on each tree of the slots.

    Parameters
    ----------
    where : text to add to the names of tools
    folder : for files
    limit : processor seconds of a process
    """
    installed = [tool for tool in PROGRAMS if program(tool)]
    if not installed:
        return
    trees = list(hierarchies(contest, allocation))
    if not trees:
        why = f"{int(allocation.slots.sum())} slots form no equal groups"
        yield from (Answer(tool=tool + where, why=why) for tool in installed)
    for tree in trees:
        write_metis(folder / "guest.graph", _scaled(guest_graph(contest), tree))
        (folder / "tree.tgt").write_text(tree.tleaf)
        for tool in installed:
            for label, command in _commands(tool, tree, folder):
                out = folder / "answer.txt"
                out.unlink(missing_ok=True)
                ran = run(command, limit)
                name = f"{tool}{label} ({tree.kind}{where})"
                yield read_answer(name, ran, partial(_slots, out, tree, contest.profile.ranks))


def _commands(tool: str, tree: Hierarchy, folder: Path) -> Iterator[tuple[str, list[str]]]:
    path, graph, out = program(tool) or "", str(folder / "guest.graph"), str(folder / "answer.txt")
    arities, distances = tree.inside_out
    if tool == "TreeMatch":
        yield "", [path, graph, str(folder / "tree.tgt"), out]
        return
    for preset in TREE_PRESETS[tool]:
        if tool == "VieM":
            machine = [f"--hierarchy_parameter_string={arities}", f"--distance_parameter_string={distances}"]
            options = [f"--preconfiguration_mapping={preset}", "--seed=1", f"--output_filename={out}"]
            yield f" {preset}", [path, graph, *machine, *options]
        else:
            files = ["-g", graph, "-m", out, "-h", arities, "-d", distances]
            options = ["-e", "0", "-c", preset, "-t", "1", "-s", "nb_layer", "--seed", "1"]
            yield f" {preset}", [path, *files, *options]


def _scaled(graph: csr_array, tree: Hierarchy) -> csr_array:
    """Return the traffic with a vertex for each leaf, in weights whose sum these tools can count."""
    countable = LARGEST_SUM / tree.largest_distance - graph.nnz  # every weight may be rounded up to 1
    scale = min(1.0, countable / float(graph.data.sum()))
    weights = np.maximum(1, np.floor(graph.data * scale)).astype(np.int64)
    leaves = len(tree.slot)
    rows = np.r_[graph.indptr, np.full(leaves - graph.shape[0], graph.indptr[-1])]
    return csr_array((weights, graph.indices, rows), shape=(leaves, leaves))


def _slots(path: Path, tree: Hierarchy, ranks: int) -> Ints:
    leaf = np.loadtxt(path, dtype=np.int64, ndmin=1)
    if len(leaf) != len(tree.slot) or leaf.min() < 0:
        raise ValueError(f"{len(leaf)} places of {len(tree.slot)}")
    return tree.slot[leaf[:ranks]].astype(np.int32)
