"""Ranks sorted along eigenvectors of their graph, over a torus or mesh, or over a hierarchy of hosts.

The eigenvectors of the guest's Laplacian with the smallest eigenvalues are coordinates in which ranks that
communicate are near each other (Hall, "An r-dimensional quadratic placement algorithm", 1970). Ranks are
sorted along one, cut into as many slabs as the torus has along an axis, each slab along the next, and so on.
Several assignments of vectors to axes are tried; the fewest hop-bytes win. A search from here starts with a
global order, which annealing from another start would have to find first.

Other networks have no axes: there the levels of the hosts' hierarchy are used. METIS cuts each part
separately, with ragged borders. Here an eigenvector is chosen for each level, and ranks are sorted along it
in all branches of that level. A grid of ranks becomes straight blocks, which are aligned if switches connect
the same parts of several branches, such as rows and columns of cabinets.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
from scipy.sparse import csr_matrix, diags, identity
from scipy.sparse.linalg import eigsh

from mapping.placement.methods.bisection import hierarchy, levels_of, options_of, weighted_graph
from mapping.placement.methods.multicore import cut_into
from mapping.placement.problem import Problem
from mapping.routing.tori import torus_coordinates
from registry.model import Floats, Ints, Longs

VECTORS = 4
"""Number of eigenvectors that are tried as coordinates."""
MOST_TRIES, MOST_LEVEL_TRIES = 200, 100
"""Most assignments of vectors to axes, and to levels, that are tried."""
MANY_PARTNERS = 20
"""From this mean number of partners, factors of the Laplacian fill up, but its eigenvalues are far apart."""
MOST_RANKS = 3000
"""Most ranks whose eigenvectors are computed; more ranks are first combined into this number of parts."""
SMOOTHINGS = 20
"""Number of means over partners that smooth the vectors of combined ranks."""
FREE = 6
"""Number of levels whose vectors are chosen; further levels repeat them."""
ANGLES = 24
"""Number of angles of a quarter turn that are tried for two vectors."""
SWEEPS = 3
"""Number of times that all pairs of more than two vectors are rotated."""


def place_ranks(problem: Problem, generator: np.random.Generator, *, vectors: int = VECTORS) -> Ints:
    """Place ranks by eigenvectors; the generator gives the start of the solver.

    Args:
        vectors: Number of eigenvectors that are tried as coordinates.
    """
    if len(problem.bytes) == 0 or problem.ranks < 2:
        return problem.slot_host[: problem.ranks].copy()
    torus = torus_coordinates(problem.routes.fabric)
    graph = weighted_graph(problem.source, problem.target, problem.bytes, problem.ranks)
    if torus is None:
        return assign_by_hierarchy(problem, laplacian_eigenvectors(graph, vectors, generator))
    axes = torus.of_hosts(problem.routes.fabric, problem.routes.hosts)
    axes = axes[:, np.argsort(-np.ptp(axes, axis=0), kind="stable")]
    smooth = laplacian_eigenvectors(graph, max(vectors, axes.shape[1]), generator)
    ways = itertools.permutations(range(smooth.shape[1]), min(axes.shape[1], smooth.shape[1]))
    return _best(problem, (smooth, aligned(smooth, axes.shape[1])), ways, axes, MOST_TRIES)


def _best(
    problem: Problem, both: tuple[Floats, Floats], ways: Iterable[tuple[int, ...]], axes: Ints, most: int
) -> Ints:
    """Return the placement with the fewest hop-bytes, of the ranks in order and assignments of vectors.

    Args:
        both ((float64[ranks, k], float64[ranks, k])): Eigenvectors as computed, and aligned.
        ways: Number of the vector for each axis.
        axes (int32[h, d]): Coordinates of the hosts.
        most: Most ways to try.
    """
    found, lowest = problem.slot_host[: problem.ranks].copy(), np.inf
    for vectors, way in itertools.product(both, itertools.islice(ways, most)):
        hosts = assign_by_coordinates(vectors[:, list(way)], axes, problem.slot_host)
        value = problem.hop_bytes(hosts)
        if value < lowest:
            found, lowest = hosts, value
    return found


def laplacian_eigenvectors(graph: csr_matrix, count: int, generator: np.random.Generator) -> Floats:
    """Return float64[ranks, <= count]: eigenvectors of the Laplacian by eigenvalue, without the constant.

    With few partners for each rank the Laplacian is factored (shift and invert): its eigenvalues are close
    together. With many, Lanczos steps without factors take a hundredth of the time.
    """
    ranks = graph.shape[0]
    if ranks > MOST_RANKS:
        return _through_parts(graph, count, generator)
    degree = np.asarray(graph.sum(axis=1), np.float64).reshape(-1)
    scale = 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0))
    laplacian = diags((degree > 0).astype(np.float64)) - diags(scale) @ graph.astype(np.float64) @ diags(
        scale
    )
    wanted = min(count + 1, ranks)
    if ranks <= 64:
        vectors = np.linalg.eigh(laplacian.toarray())[1][:, :wanted]
    else:
        first = generator.standard_normal(ranks)
        if graph.nnz > MANY_PARTNERS * ranks:  # eigenvalues are at most 2, and come ascending
            vectors = eigsh(2 * identity(ranks) - laplacian, k=wanted, which="LA", v0=first)[1][:, ::-1]
        else:
            vectors = eigsh(laplacian.tocsc(), k=wanted, sigma=-1e-3, which="LM", v0=first)[1]
    return np.asarray(vectors[:, 1:] * scale[:, None])


def _through_parts(graph: csr_matrix, count: int, generator: np.random.Generator) -> Floats:
    """Return the eigenvectors of the graph of parts, given to their ranks and smoothed."""
    ranks = graph.shape[0]
    sizes: Longs = np.diff(np.arange(MOST_RANKS + 1) * ranks // MOST_RANKS)
    part = cut_into(graph, sizes, options_of(generator))
    member = csr_matrix((np.ones(ranks), (np.arange(ranks), part)), shape=(ranks, MOST_RANKS))
    between = (member.T @ graph @ member).tolil()
    between.setdiag(0)
    vectors = laplacian_eigenvectors(between.tocsr(), count, generator)[part]
    degree = np.asarray(graph.sum(axis=1), np.float64).reshape(-1, 1)
    for _ in range(SMOOTHINGS):
        vectors = (vectors + (graph @ vectors) / np.where(degree > 0, degree, 1.0)) / 2
    return np.asarray(vectors)


def assign_by_hierarchy(problem: Problem, smooth: Floats) -> Ints:
    """Return int32[ranks]: the host index of each rank, by the assignment with the fewest hop-bytes.

    Args:
        smooth (float64[ranks, k]): Eigenvectors of the guest graph by eigenvalue; k >= 1.
    """
    levels = levels_of(hierarchy(problem), problem.allocation.slots.astype(np.int64))
    depth = levels.shape[1]
    if depth == 0:
        return problem.slot_host[: problem.ranks].copy()
    free = min(depth, FREE)
    vectors = min(max(int(MOST_LEVEL_TRIES ** (1 / free) + 1e-9), 2), smooth.shape[1])
    chosen = itertools.product(range(vectors), repeat=free)
    ways = (tuple(np.resize(way, depth).tolist()) for way in chosen)
    return _best(problem, (smooth, aligned(smooth, 2)), ways, levels, MOST_LEVEL_TRIES)


def assign_by_coordinates(coordinates: Floats, axes: Ints, slot_host: Ints) -> Ints:
    """Return int32[ranks]: hosts such that the order of ranks along each axis is that of a coordinate.

    Args:
        coordinates (float64[ranks, d]):
        axes (int32[h, d or more]): Coordinates of each host.
        slot_host (int32[s]): Host of each slot; slots farthest along the first axis stay free.
    """
    places = axes[slot_host]
    slots = np.lexsort(tuple(places.T[::-1]))[: len(coordinates)]
    ranks = np.argsort(coordinates[:, 0], kind="stable")
    for axis in range(1, coordinates.shape[1]):
        slab = np.r_[0, np.cumsum(np.any(np.diff(places[slots][:, :axis], axis=0) != 0, axis=1))]
        ranks = ranks[np.lexsort((coordinates[ranks, axis], slab))]
    host_of_rank = np.empty(len(ranks), np.int32)
    host_of_rank[ranks] = slot_host[slots]
    return host_of_rank


def aligned(vectors: Floats, count: int) -> Floats:
    """Return float64[ranks, k]: vectors of which the first `count` are rotated towards the axes of a grid.

    If eigenvalues of a Laplacian are equal, as on a square grid, the solver returns any mixture of their
    vectors. Cosines along the axes have a lower fourth moment than mixtures of them: for each pair of vectors
    the angle with the lowest sum is used.
    """
    size = np.sqrt((vectors**2).mean(axis=0))
    turned = vectors / np.where(size > 0, size, 1.0)
    count = min(count, turned.shape[1])
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    for one, other in pairs * (SWEEPS if count > 2 else 1):
        turned[:, [one, other]] = min(
            (_rotated(turned[:, [one, other]], step / ANGLES * np.pi / 2) for step in range(ANGLES)),
            key=lambda both: round(float((both**4).sum()), 6),
        )
    return turned


def _rotated(both: Floats, angle: float) -> Floats:
    cos, sin = np.cos(angle), np.sin(angle)
    found: Floats = both @ np.array([[cos, -sin], [sin, cos]])
    return found
