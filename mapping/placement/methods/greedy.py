"""Greedy: the heaviest rank first, then always along the heaviest edge, to the closest host with room.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, section 3.1, Algorithm 1; many start vertices: section 4.2 and Figure 4. Line by line:

Line 3, 4
    The initial load omega-hat makes a shortest path one of fewest links. Added to loads it would
    hide them in float64 on large fabrics, so (links, load) are compared in this order instead.
Line 5
    The start is a host of the allocation; default: the first.
Line 7
    A rank's weight is the sum of what it sends (section 3.1); ties go to the lower rank.
Line 9
    "Pick new s": if no edge leads to a rank, the closest host with room to the last one used.
Line 17
    Edges whose receiver has a host are dropped, which is not printed; ties go to the lower sender, then
    the lower receiver. A rank that only receives is reached when its senders are done, else last.
Line 19
    Closest to s. By the text, neighbours in the guest go to neighbours in the host graph, so s is
    the host of the sender u; in the print it is the host used last, which ``near=last`` takes. The
    authors' library does neither (``near=start``, below). Among hosts of equally many links that of the
    least loaded path wins, then the lowest. Option ``ties`` can leave loads out and use the problem's
    distances, for example a table of distances.
Line 26
    Only edges that are followed load links; a path's load is summed from its beginning, and of two equal
    ways to a vertex the one with the lower last arc (by tail, then head) is kept.

``near=start`` is the algorithm as in the source of LibTopoMap (``TPM_Map_greedy``), the authors' library:

- s stays the host of the first rank of a queue, and every rank of the queue goes to the free host that is
  closest to it. So hosts fill up around the start, and a rank need not be near its sender (line 19).
- A rank is queued once, with the first edge that leads to it, not with the heaviest (lines 13 and 28).
- The path that a followed edge loads begins at s, not at the sender's host (line 26).
- When the queue is empty, the next heaviest rank goes to s if it has room, else to the next host of the
  allocation with room, which becomes s (line 9).

Equal weights in the queue are ordered as above; in the library their order depends on its heap.

Start of a search: in order, or assigned by distances, whichever has fewer hop-bytes.
"""

from __future__ import annotations

import numpy as np

from mapping.placement.kernels import greedy as kernel
from mapping.placement.kernels.greedy import HostGraph, Senders
from mapping.placement.methods import digits, spectral
from mapping.placement.methods.multicore import place_multilevel
from mapping.placement.objective import Score, better, parse_objective, score
from mapping.placement.problem import Problem, arc_capacities, arc_tails
from mapping.routing.tori import torus_coordinates
from registry.errors import InvalidValue, UnknownName
from registry.model import Ints

SENDER = "sender"
NEAR = {"last": kernel.LAST, SENDER: kernel.SENDER, "start": kernel.START}
LOAD, LOWEST = "load", "lowest"
TIES = (LOAD, LOWEST)
HOP_BYTES = "hop-bytes"


def place_greedily(
    problem: Problem,
    generator: np.random.Generator,
    *,
    start: int = 0,
    starts: int = 1,
    near: str = SENDER,
    ties: str = LOAD,
    by: str = HOP_BYTES,
) -> Ints:
    """Place ranks by Algorithm 1.

    Args:
        start: Index in the allocation of the host to begin from.
        starts: Number of hosts to begin from, evenly spread over the allocation from `start` on; the best
            placement wins, of equals the first.
        near: The next host is the closest to the ``sender``'s, to that used ``last``, or to the ``start``.
        ties: Choice among equally close hosts: the least ``load`` on the path over the fabric's graph (the
            paper), or the ``lowest`` host by the problem's distances.
        by: Metric that chooses the best of several placements: ``hop-bytes``, ``congestion`` (worst link,
            worst network link, hop-bytes), or another that objectives know.
    """
    _check(problem, start, starts, near, ties)
    parse_objective(by)
    guest, count = _senders(problem), min(starts, problem.hosts)
    hosts = (start + np.arange(count) * problem.hosts // count) % problem.hosts
    graph = _host_graph(problem) if ties == LOAD else None
    slots, best, lowest = problem.allocation.slots, None, None
    for host in hosts.tolist():
        if graph is not None:
            found = kernel.greedy_by_load(guest, graph, slots, host, NEAR[near])
        else:
            distances = problem.distances
            far = distances.between if distances.codes is None else distances.codes[0]
            found = kernel.greedy_by_distance(guest, distances.group, far, slots, host, NEAR[near])
        if count == 1:
            return found
        value = _score(problem, found, by)
        if best is None or lowest is None or better(by, value, lowest):
            best, lowest = found, value
    assert best is not None
    return best


def _score(problem: Problem, host_of_rank: Ints, by: str) -> Score:
    if by == HOP_BYTES:  # needs no loads
        return Score(0.0, 0.0, problem.hop_bytes(host_of_rank))
    return score(problem, host_of_rank)


def _check(problem: Problem, start: int, starts: int, near: str, ties: str) -> None:
    if not 0 <= start < problem.hosts:
        raise InvalidValue("greedy.start", f"{start} is not in 0 .. {problem.hosts - 1}")
    if starts < 1:
        raise InvalidValue("greedy.starts", "must be at least 1")
    for option, value, known in (("near", near, NEAR), ("ties", ties, TIES)):
        if value not in known:
            raise UnknownName(f"greedy.{option}", value, known)


def _senders(problem: Problem) -> Senders:
    order = np.lexsort((problem.target, problem.source))
    source = problem.source[order]
    sent = np.bincount(source, weights=problem.bytes[order], minlength=problem.ranks)
    return Senders(
        ptr=np.searchsorted(source, np.arange(problem.ranks + 1)).astype(np.int64),
        target=problem.target[order],
        bytes=problem.bytes[order],
        heaviest=np.argsort(-sent, kind="stable").astype(np.int32),
    )


def _host_graph(problem: Problem) -> HostGraph:
    fabric, hosts = problem.routes.fabric, problem.allocation.hosts
    host = np.full(len(fabric), -1, np.int32)
    host[hosts] = np.arange(len(hosts))
    return HostGraph(
        ptr=fabric.indptr,
        head=fabric.neighbour,
        capacity=arc_capacities(problem),
        tail=arc_tails(fabric),
        forwards=fabric.forwards,
        host=host,
        vertex=hosts,
    )


FEW_PARTNERS = 8
"""Mean number of partners up to which eigenvectors take a tenth of a second, and straight borders may cut
less than METIS's ragged ones."""


def place_by_layout(problem: Problem, generator: np.random.Generator) -> Ints:
    """Place ranks by the layout with the fewest hop-bytes.

    On a torus or mesh ranks are sorted along eigenvectors of the guest graph; elsewhere they are cut along
    the hierarchy of hosts, and with few partners also sorted along eigenvectors. Everywhere the digits of
    their numbers are permuted.
    """
    found = [problem.slot_host[: problem.ranks].copy()]
    if len(problem.bytes) == 0 or problem.hosts == 1:
        return found[0]
    torus = torus_coordinates(problem.routes.fabric)
    if torus is None:
        found.append(place_multilevel(problem, generator))
    few = problem.ranks <= spectral.MOST_RANKS and len(problem.bytes) <= FEW_PARTNERS * problem.ranks
    if torus is not None or few:
        found.append(spectral.place_ranks(problem, generator))
    found.append(digits.place_ranks(problem, generator))
    return min(found, key=problem.hop_bytes)
