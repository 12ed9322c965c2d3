"""Tables of the arcs that dimension-order routing follows on tori and meshes."""

from __future__ import annotations

from mapping.kernels.decorators import kernel
from mapping.routing.kernels.flows import NO_ARC
from mapping.routing.kernels.paths import HopArray
from registry.model import Bools, Int8s, Ints


@kernel
def fill_next_arcs(
    place: Ints, sizes: Ints, wraps: Bools, order: Ints, step_arc: Int8s, goals: Ints, next_arc: Int8s
) -> None:
    """Fill the table of the arc to follow from every vertex to each goal.

    Args:
        place (int32[v, d]): Coordinates of each vertex.
        sizes, wraps (int32[d], bool[d]): Vertices along each axis; True if it is a ring.
        order (int32[d]): Axes in the order of travel.
        step_arc (uint8[v, d, 2]): Arc of a step down and up each axis, counted from the vertex's first.
        goals (int32[k]):
        next_arc (uint8[k, v]): Filled; `NO_ARC` at the goal itself.
    """
    for row in range(len(goals)):
        goal = place[goals[row]]
        for v in range(len(place)):
            next_arc[row, v] = NO_ARC
            for axis in order:
                ahead = goal[axis] - place[v, axis]
                if ahead == 0:
                    continue
                up = ahead > 0
                if wraps[axis]:
                    ahead %= sizes[axis]
                    up = 2 * ahead <= sizes[axis]  # half of an even ring: upwards
                next_arc[row, v] = step_arc[v, axis, int(up)]
                break


@kernel
def fill_distances(place: Ints, sizes: Ints, wraps: Bools, rows: Ints, goals: Ints, hops: HopArray) -> None:
    """Fill ``hops`` (int16[n, k]) with the links from each of `rows` to each of `goals` (vertices)."""
    for row in range(len(rows)):
        for column in range(len(goals)):
            total = 0
            for axis in range(len(sizes)):
                ahead = abs(place[rows[row], axis] - place[goals[column], axis])
                total += min(ahead, sizes[axis] - ahead) if wraps[axis] else ahead
            hops[row, column] = total
