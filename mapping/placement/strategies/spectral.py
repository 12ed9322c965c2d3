"""Ranks sorted along eigenvectors of their graph, over a torus or mesh, or over a hierarchy of hosts.

The eigenvectors of the guest's Laplacian with the smallest eigenvalues are coordinates in which ranks that
communicate are near each other (Hall, "An r-dimensional quadratic placement algorithm", 1970). Ranks are
sorted along one, cut into as many slabs as the torus has along an axis, each slab along the next, and so on.
Several assignments of vectors to axes are tried; the fewest hop-bytes win. A search from here starts with a
global order, which annealing from another start would have to find first.

Other networks have no axes: there the levels of the hosts' hierarchy are used
(`mapping.placement.strategies.spectral_hierarchy`).
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import eigsh

from mapping.placement.partition.bisection import weighted_graph
from mapping.placement.problem.problem import Problem
from mapping.placement.strategies.coordinate_assignment import aligned, assign_by_coordinates
from mapping.placement.strategies.multilevel import cut_into, options_of
from mapping.placement.strategies.spectral_hierarchy import assign_by_hierarchy
from mapping.routing.torus import torus_coordinates
from registry.model import Floats, Ints, Longs

VECTORS = 4
"""Number of eigenvectors that are tried as coordinates."""
MOST_TRIES = 200
"""Most assignments of vectors to axes that are tried."""
MOST_RANKS = 3000
"""Most ranks whose eigenvectors are computed; more ranks are combined into as many parts first."""
SMOOTHINGS = 20
"""Number of means over partners that smooth the vectors of combined ranks."""


def place_ranks(problem: Problem, generator: np.random.Generator, *, vectors: int = VECTORS) -> Ints:
    """Return int32[ranks]: the host index of each rank.

    Parameters
    ----------
    generator : numpy.random.Generator
        Start of the eigenvalue solver.
    vectors : int
        Number of eigenvectors that are tried as coordinates.
    """
    in_order = problem.slot_host[: problem.ranks].copy()
    if len(problem.bytes) == 0 or problem.ranks < 2:
        return in_order
    torus = torus_coordinates(problem.routes.fabric)
    graph = weighted_graph(problem.source, problem.target, problem.bytes, problem.ranks)
    if torus is None:
        return assign_by_hierarchy(problem, laplacian_eigenvectors(graph, vectors, generator))
    axes = torus.coordinates[problem.routes.hosts]
    axes = axes[:, np.argsort(-np.ptp(axes, axis=0), kind="stable")]
    smooth = laplacian_eigenvectors(graph, max(vectors, axes.shape[1]), generator)
    found, lowest = in_order, np.inf
    ways = itertools.permutations(range(smooth.shape[1]), min(axes.shape[1], smooth.shape[1]))
    both = (smooth, aligned(smooth, axes.shape[1]))
    for coordinates, way in itertools.product(both, itertools.islice(ways, MOST_TRIES)):
        hosts = assign_by_coordinates(coordinates[:, list(way)], axes, problem.slot_host)
        value = problem.hop_bytes(hosts)
        if value < lowest:
            found, lowest = hosts, value
    return found


def laplacian_eigenvectors(graph: csr_matrix, count: int, generator: np.random.Generator) -> Floats:
    """Return float64[ranks, <= count]: eigenvectors of the Laplacian by eigenvalue, without the constant."""
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
