"""Run other tools for process mapping, each in its own process with a limit of processor time."""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bench.quality.peers.files import (
    Hierarchy,
    first_slots,
    guest_graph,
    hierarchies,
    host_graph,
    host_groups,
    native_target,
    write_graph,
    write_metis,
)
from bench.support.instances import Contest
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Ints, Longs

WAITING = 20
"""A process is ended after this many times its limit of processor time, however little it used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Result of one tool."""

    tool: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    slot_of_rank: Ints | None = None
    """int32[ranks]; slot of the allocation; None where it gave no result."""
    why: str = ""


def run_child(folder: Path, limit: float, *arguments: str) -> tuple[Answer, Path]:
    """Run a tool that has a Python interface in its own interpreter; return also the file of its answer."""
    out = folder / "answer.npy"
    out.unlink(missing_ok=True)
    return run([sys.executable, "-m", "bench.quality.peers.child", str(folder), *arguments], limit), out


def run(arguments: list[str], limit: float) -> Answer:
    """Run a process with one thread of OpenMP; `why` is the reason if it failed."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        done = subprocess.run(
            arguments,
            capture_output=True,
            text=True,
            timeout=WAITING * limit,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (ceil(limit), ceil(limit) + 1)),
        )
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        why = "" if done.returncode == 0 else f"exit {done.returncode}: {lines[-1] if lines else ''}"
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            why = f"not done in {limit:g} s"
    except subprocess.TimeoutExpired:
        why = f"not done in {limit:g} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Answer(tool="", seconds=time.perf_counter() - begin, cpu_seconds=cpu, why=why)


def read_answer(name: str, ran: Answer, reader: Callable[[], Ints]) -> Answer:
    """Return the answer of a successful process; more than one rank on a slot is a failure."""
    slot: Ints | None = None
    why = ran.why
    if not why:
        try:
            slot = reader()
        except (OSError, ValueError, IndexError) as error:
            why = f"no readable answer: {error}"
    if slot is not None and len(np.unique(slot)) < len(slot):
        why = f"{len(slot) - len(np.unique(slot))} ranks on a slot that another has"
        slot = None
    return Answer(tool=name, seconds=ran.seconds, cpu_seconds=ran.cpu_seconds, slot_of_rank=slot, why=why)


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
    """Run each installed tool on each tree of the slots."""
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


SCOTCH_OPTIONS = ((), ("-b0",), ("-cq", "-b0"))
SCOTCH_FLAGS = ("DEFAULT", "QUALITY")
SEEDS = (1, 2, 3)
PRESETS = ("DEFAULT", "QUALITY")
MOST_BLOCKS = 128
"""Most hosts onto which Mt-KaHyPar maps at once: its time grows with about the fourth power of them."""
GROUPS = 32
"""Groups of hosts onto which it maps first otherwise, then onto the parts of each, and so on."""
LARGEST_TARGET = 12_000
"""Most vertices of a machine that Scotch is given as a graph: its table of distances is quadratic."""


def missing() -> dict[str, str]:
    """Return the tools that are not installed, and how to install them."""
    found = {}
    if gmap() is None:
        found["Scotch gmap"] = "apt-get install scotch"
    for module, tool in (("pyscotch", "PyScotch"), ("mtkahypar", "Mt-KaHyPar")):
        if importlib.util.find_spec(module) is None:
            found[tool] = f"pip install {module}"
    for tool, (name, variable) in PROGRAMS.items():
        if program(tool) is None:
            found[tool] = f"no {name} on the path or in {variable}; see bench/quality/peers/__init__.py"
    return found


def limits_of_tools() -> dict[str, Any]:
    """Return the settings that limit what tools are asked and given, besides the time of a process."""
    return {
        "Scotch gmap": {"options": SCOTCH_OPTIONS, "largest_graph": LARGEST_TARGET},
        "PyScotch": {"flags": SCOTCH_FLAGS, "seeds": SEEDS, "largest_graph": LARGEST_TARGET},
        "Mt-KaHyPar": {"presets": PRESETS, "threads": 1, "hosts_at_once": MOST_BLOCKS, "groups": GROUPS},
        "TreeMatch": {"threads": 1},
        "VieM": {"presets": TREE_PRESETS["VieM"], "seeds": (1,)},
        "SharedMap": {"presets": TREE_PRESETS["SharedMap"], "seeds": (1,), "threads": 1, "imbalance": 0},
    }


def gmap() -> str | None:
    """Return Scotch's mapper, which Debian calls ``scotch_gmap``."""
    return shutil.which("scotch_gmap") or shutil.which("gmap")


def answers(contest: Contest, folder: Path, limit: float) -> Iterator[Answer]:
    """Run every installed tool in every variant, on all slots and, if more than ranks, on the first."""
    absent, ranks = missing(), contest.profile.ranks
    first = first_slots(contest.allocation, ranks)
    allocations = {"first slots": first}
    if int(contest.allocation.slots.sum()) > ranks:
        allocations["all slots"] = contest.allocation
    write_graph(folder / "guest.grf", guest_graph(contest))
    for label, allocation in allocations.items():
        where = "" if len(allocations) == 1 else f", {label}"
        for target in _targets(contest, allocation, folder, limit):
            kind = target.kind + where
            if target.why:
                yield Answer(tool=f"Scotch ({kind})", why=target.why)
                continue
            if "Scotch gmap" not in absent:
                yield from _scotch(kind, target, folder, limit)
            if "PyScotch" not in absent:
                yield from _pyscotch(kind, target, folder, limit)
        yield from tree_answers(contest, allocation, where, folder, limit)
        if "Mt-KaHyPar" not in absent:
            yield from _mtkahypar(contest, allocation, where, folder, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """A Scotch target: `terminal[s]` is its number of the allocation's slot s."""

    kind: str
    path: Path
    terminal: Longs
    why: str = ""

    def slots(self, terminals: Longs) -> Ints:
        """Return the allocation's slots for their numbers in the target."""
        order = np.argsort(self.terminal)
        at = np.searchsorted(self.terminal, terminals, sorter=order)
        slot = order[np.minimum(at, len(order) - 1)]
        if not np.array_equal(self.terminal[slot], terminals):
            raise ValueError("a terminal that the target does not have")
        return slot.astype(np.int32)


def _targets(contest: Contest, allocation: Allocation, folder: Path, limit: float) -> Iterator[_Target]:
    """Return Scotch's own description of the hosts, if it has one, and the machine as a graph."""
    native = native_target(contest) if len(allocation) == len(contest.allocation) else None
    if native is not None:
        (folder / "native.tgt").write_text(native)
        terminal = np.arange(int(allocation.slots.sum()))
        yield _Target(kind="native", path=folder / "native.tgt", terminal=terminal)
    maker, target = shutil.which("amk_grf"), folder / "graph.tgt"
    graph, vertex = host_graph(contest, allocation)
    if maker is None:
        why = "amk_grf is missing: apt-get install scotch"
    elif graph.shape[0] > LARGEST_TARGET:
        why = f"{graph.shape[0]} vertices, more than {LARGEST_TARGET}"
    else:
        write_graph(folder / "host.grf", graph)
        (folder / "slots.txt").write_text(" ".join(map(str, [len(vertex), *vertex.tolist()])) + "\n")
        arguments = [f"-l{folder / 'slots.txt'}", str(folder / "host.grf"), str(target)]
        why = run([maker, *arguments], limit).why
    yield _Target(kind="graph", path=target, terminal=vertex, why=why)


def _scotch(kind: str, target: _Target, folder: Path, limit: float) -> Iterator[Answer]:
    out = folder / "answer.map"
    for options in SCOTCH_OPTIONS:
        out.unlink(missing_ok=True)
        command = [gmap() or "", *options, str(folder / "guest.grf"), str(target.path), str(out)]
        ran = run(command, limit)
        yield read_answer(" ".join(("Scotch gmap", *options, f"({kind})")), ran, _Mapping(out, target))


def _pyscotch(kind: str, target: _Target, folder: Path, limit: float) -> Iterator[Answer]:
    for flags in SCOTCH_FLAGS:
        for seed in SEEDS:
            ran, out = run_child(folder, limit, "pyscotch", str(target.path), flags, str(seed))
            yield read_answer(f"PyScotch {flags.lower()} seed {seed} ({kind})", ran, _Mapping(out, target))


@dataclass(frozen=True, slots=True)
class _Mapping:
    """Reader of a tool's output: an array, or a Scotch file (a count, then vertex and terminal per line)."""

    path: Path
    target: _Target

    def __call__(self) -> Ints:
        if self.path.suffix == ".npy":
            return self.target.slots(np.load(self.path).astype(np.int64))
        rows = np.loadtxt(self.path, dtype=np.int64, skiprows=1, ndmin=2)
        return self.target.slots(rows[np.argsort(rows[:, 0]), 1])


def _mtkahypar(
    contest: Contest, allocation: Allocation, where: str, folder: Path, limit: float
) -> Iterator[Answer]:
    graph = guest_graph(contest)
    routes = build_routes("shortest-paths", contest.fabric, allocation.hosts)
    groups = np.zeros((0, len(allocation)), np.int64)
    if len(allocation) > MOST_BLOCKS:
        groups = host_groups(contest, allocation, GROUPS)
    np.savez(
        folder / "request.npz",
        indptr=graph.indptr,
        indices=graph.indices,
        weights=graph.data,
        distances=routes.distances,
        slots=allocation.slots,
        groups=groups,
    )
    how = f" in groups of {GROUPS}" if len(groups) else ""
    for preset in PRESETS:
        ran, out = run_child(folder, limit, "mtkahypar", preset)
        yield read_answer(
            f"Mt-KaHyPar {preset.lower()}{how}{where}", ran, partial(_load_slots, out, allocation)
        )


def _load_slots(path: Path, allocation: Allocation) -> Ints:
    return _slots_of_ranks(np.load(path), allocation)


def _slots_of_ranks(host_of_rank: Longs, allocation: Allocation) -> Ints:
    """Return the slots of ranks that a tool assigned to hosts; an overfull host repeats its last slot."""
    order = np.argsort(host_of_rank, kind="stable")
    hosts = host_of_rank[order]
    within = np.arange(len(order)) - np.searchsorted(hosts, hosts)
    first = np.r_[0, np.cumsum(allocation.slots)]
    slot = np.empty(len(order), np.int32)
    slot[order] = first[hosts] + np.minimum(within, allocation.slots[hosts] - 1)
    return slot
