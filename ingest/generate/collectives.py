"""Traffic of collective operations, rank by rank, for named algorithms.

Sizes follow one convention: `size` is the whole buffer, which is what every rank has before an all-reduce,
after an all-gather, before a reduce-scatter, before a broadcast at its root, and what each rank has for all
ranks together, itself included, before an all-to-all. Each of k ranks sends

    ring                all-reduce 2 size (k-1)/k, all-gather and reduce-scatter size (k-1)/k to the next
    direct              all-reduce 2 size/k, the others size/k, to every other rank
    recursive-doubling  all-reduce size to the rank that differs in each bit (powers of two)
    tree                all-reduce over two binary trees, half of the buffer each (Sanders et al. 2009)
    hierarchical        ring inside each domain, ring across domains between ranks of one place, ring inside

An all-to-all is always sent directly. Operations that are not listed for an algorithm use the ring. Sizes of
the ring, of the all-gather and of the all-to-all are those of Thakur, Rabenseifner and Gropp 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from registry.errors import InvalidValue
from registry.model import Bools, Floats, Longs, Profile

Algorithm = Literal["ring", "tree", "recursive-doubling", "direct", "hierarchical"]
ALGORITHMS = ("ring", "tree", "recursive-doubling", "direct", "hierarchical")
OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce")


class Edges(NamedTuple):
    """Directed edges between ranks, repeats allowed: four columns of one length."""

    source: Longs
    target: Longs
    bytes: Floats
    messages: Longs

    def profile(self, ranks: int, name: str, application: str) -> Profile:
        """Return the profile of these edges; repeated ones are summed, those of a rank to itself dropped."""
        return Profile.from_edges(
            *self[:3], ranks=ranks, messages=self.messages, name=name, application=application
        )

    def select(self, kept: Bools) -> Edges:
        """Return the edges for which `kept` is True."""
        return Edges(self.source[kept], self.target[kept], self.bytes[kept], self.messages[kept])

    def repeated(self, times: int) -> Edges:
        """Return edges with so many times the bytes and messages."""
        return self._replace(bytes=self.bytes * times, messages=self.messages * times)


def expand(
    operation: str,
    groups: ArrayLike,
    size: float,
    *,
    algorithm: str = "ring",
    domain: int | None = None,
) -> Edges:
    """Return what one call of a collective sends in each of several groups of ranks.

    Parameters
    ----------
    operation : str
        One of `OPERATIONS`. A broadcast starts, and a reduction ends, at the first rank of a group.
    groups : int[g, k] or int[k]
        Ranks of each group; their order is that of the ring.
    size : float
        Bytes of the whole buffer.
    algorithm : str
        One of `ALGORITHMS`.
    domain : int, optional
        Number of ranks of a domain, for ``hierarchical``: rank r is in domain ``r // domain``.

    Raises
    ------
    InvalidValue
        An unknown name, or a group whose ranks are distributed unevenly over the domains.
    """
    for field, name, known in (
        ("operation", operation, OPERATIONS),
        ("algorithm", algorithm, ALGORITHMS),
    ):
        if name not in known:
            raise InvalidValue(f"collective.{field}", f"is {name!r}, must be one of {', '.join(known)}")
    ranks = np.atleast_2d(np.asarray(groups, np.int64))
    if ranks.shape[1] < 2:
        return joined()
    if operation == "all-to-all":
        return _all_pairs(ranks, size / ranks.shape[1], 1)
    if algorithm == "hierarchical":
        return _hierarchical(operation, ranks, size, domain)
    return _BY_ALGORITHM[algorithm].get(operation, _RING[operation])(ranks, size)


def joined(*parts: Edges) -> Edges:
    """Return all edges, part by part."""
    if not parts:
        none = np.zeros(0, np.int64)
        return Edges(none, none, np.zeros(0), none)
    return Edges(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def edges(source: ArrayLike, target: ArrayLike, size: ArrayLike, messages: ArrayLike = 1) -> Edges:
    """Return edges from columns, which are broadcast to one shape."""
    one, other, sent, count = (
        column.ravel() for column in np.broadcast_arrays(source, target, size, messages)
    )
    return Edges(
        one.astype(np.int64), other.astype(np.int64), sent.astype(np.float64), count.astype(np.int64)
    )


def ring_of(ranks: Longs, size: float, messages: int = 1) -> Edges:
    """Return edges from every rank of a row to the next, and from the last to the first."""
    return edges(ranks, np.roll(ranks, -1, axis=1), size, messages)


def binary_tree(k: int) -> Longs:
    """Return the parent of each place in a balanced binary tree, -1 for the root (int64[k]).

    Places are numbered in order; place 0 is the root. The parent of place r, whose lowest bit set is b, is
    r - b + 2 b, or r - b if that is beyond the end.
    """
    place = np.arange(1, k)
    low = place & -place
    up = (place ^ low) | low << 1
    return np.concatenate(([-1], np.where(up < k, up, place ^ low))).astype(np.int64)


def _ring(turns: int) -> Callable[[Longs, float], Edges]:
    def sent(ranks: Longs, size: float) -> Edges:
        k = ranks.shape[1]
        return ring_of(ranks, turns * size * (k - 1) / k, turns * (k - 1))

    return sent


def _chain(ranks: Longs, size: float) -> Edges:
    return edges(ranks[:, :-1], ranks[:, 1:], size)


def _chain_back(ranks: Longs, size: float) -> Edges:
    return edges(ranks[:, 1:], ranks[:, :-1], size)


def _all_pairs(ranks: Longs, size: float, messages: int) -> Edges:
    k = ranks.shape[1]
    one, other = np.nonzero(~np.eye(k, dtype=np.bool_))
    return edges(ranks[:, one], ranks[:, other], size, messages)


def _direct(turns: int) -> Callable[[Longs, float], Edges]:
    return lambda ranks, size: _all_pairs(ranks, turns * size / ranks.shape[1], turns)


def _from_first(ranks: Longs, size: float) -> Edges:
    others = ranks[:, 1:]
    return edges(np.broadcast_to(ranks[:, :1], others.shape), others, size)


def _to_first(ranks: Longs, size: float) -> Edges:
    others = ranks[:, 1:]
    return edges(others, np.broadcast_to(ranks[:, :1], others.shape), size)


def _trees(ranks: Longs, size: float) -> Edges:
    """Return two trees, the second mirrored or shifted: inner vertices of one are leaves of the other."""
    k = ranks.shape[1]
    second = ranks[:, ::-1] if k % 2 == 0 else np.roll(ranks, 1, axis=1)
    return joined(*(_tree(order, size / 2, up=True, down=True) for order in (ranks, second)))


def _tree(ranks: Longs, size: float, *, up: bool, down: bool) -> Edges:
    parent = binary_tree(ranks.shape[1])
    child, above = ranks[:, 1:], ranks[:, parent[1:]]
    parts = [edges(child, above, size)] * up + [edges(above, child, size)] * down
    return joined(*parts)


def _doubling(ranks: Longs, size: float) -> Edges:
    """Return recursive doubling; ranks beyond a power of two send to a neighbour before and receive after."""
    k = ranks.shape[1]
    power = 1 << (k.bit_length() - 1)
    extra = k - power
    parts = []
    if extra:
        even, odd = ranks[:, 0 : 2 * extra : 2], ranks[:, 1 : 2 * extra : 2]
        parts = [edges(even, odd, size), edges(odd, even, size)]
    core = np.concatenate((ranks[:, 1 : 2 * extra : 2], ranks[:, 2 * extra :]), axis=1)
    place = np.arange(power)
    parts += [edges(core, core[:, place ^ (1 << bit)], size) for bit in range(power.bit_length() - 1)]
    return joined(*parts)


def _hierarchical(operation: str, ranks: Longs, size: float, domain: int | None) -> Edges:
    """Return the edges of the hierarchical algorithm."""
    if domain is None:
        raise InvalidValue("collective.domain", "the hierarchical algorithm needs the ranks of a domain")
    uneven = InvalidValue(
        "collective.domain", f"a group of {ranks.shape[1]} ranks spreads unevenly over domains of {domain}"
    )
    k = ranks.shape[1]
    order = np.take_along_axis(ranks, np.argsort(ranks // domain, axis=1, kind="stable"), axis=1)
    home = order // domain
    inside = int((home[0] == home[0, 0]).sum())
    blocks = home.reshape(len(order), -1, inside) if k % inside == 0 else None
    if blocks is None or bool((blocks != blocks[:, :, :1]).any()):
        raise uneven
    if any(len(set(row)) != len(row) for row in blocks[:, :, 0].tolist()):
        raise uneven
    near = order.reshape(-1, inside)
    across = order.reshape(len(order), -1, inside).swapaxes(1, 2).reshape(-1, k // inside)
    parts = []
    if operation == "all-reduce":
        parts = [expand("reduce-scatter", near, size), expand("all-gather", near, size)]
    elif inside > 1:
        parts = [expand(operation, near, size)]
    share = size if operation in ("broadcast", "reduce") else size / inside
    if operation in ("broadcast", "reduce"):
        across = across.reshape(len(order), inside, -1)[:, 0]
    parts.append(expand(operation, across, share))
    return joined(*parts)


_RING: Mapping[str, Callable[[Longs, float], Edges]] = MappingProxyType(
    {
        "all-reduce": _ring(2),
        "all-gather": _ring(1),
        "reduce-scatter": _ring(1),
        "broadcast": _chain,
        "reduce": _chain_back,
    }
)
_BY_ALGORITHM: Mapping[str, Mapping[str, Callable[[Longs, float], Edges]]] = MappingProxyType(
    {
        "ring": _RING,
        "direct": {
            "all-reduce": _direct(2),
            "all-gather": _direct(1),
            "reduce-scatter": _direct(1),
            "broadcast": _from_first,
            "reduce": _to_first,
        },
        "recursive-doubling": {"all-reduce": _doubling},
        "tree": {
            "all-reduce": _trees,
            "broadcast": lambda ranks, size: _tree(ranks, size, up=False, down=True),
            "reduce": lambda ranks, size: _tree(ranks, size, up=True, down=False),
        },
    }
)
