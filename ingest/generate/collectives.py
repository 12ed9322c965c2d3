"""Traffic of collective operations by named algorithms, of plain patterns, and of a step of AI training.

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

Training follows the conventions of Megatron-LM (Narayanan et al. 2021): tensor-parallel ranks all-reduce
activations, context-parallel ranks send blocks around a ring, pipeline stages send activations forward and
gradients back, data-parallel ranks all-reduce gradients, and expert-parallel ranks, which are neighbours
among the data-parallel ones, exchange tokens with an all-to-all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ingest.generate.checks import positive, whole
from ingest.generate.matrices import crankshaft, kkt, product_traffic
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

    Args:
        operation: One of `OPERATIONS`. A broadcast starts, and a reduction ends, at the first rank of a
            group.
        groups (int[g, k] or int[k]): Ranks of each group; their order is that of the ring.
        size: Bytes of the whole buffer.
        algorithm: One of `ALGORITHMS`.
        domain: Number of ranks of a domain, for ``hierarchical``: rank r is in domain ``r // domain``.

    Raises:
        InvalidValue: An unknown name, or a group whose ranks are distributed unevenly over the domains.
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


DIMENSIONS = ("tensor", "context", "data", "pipeline")
"""Dimensions of parallelism in their usual order, the first numbered fastest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AiLayout:
    """Parallel groups of a training, and the bytes that they send in one step.

    Args:
        tensor, context, data, pipeline: Sizes of the parallel groups.
        expert: Size of an expert-parallel group, a divisor of `data`; its ranks are neighbours in their data
            group.
        order: The four dimensions, the one that is numbered fastest first. Megatron's order is tensor,
            context, data, pipeline.
        tensor_bytes: Bytes that a rank all-reduces with its tensor group, summed over layers and
            micro-batches.
        context_bytes: Bytes that a rank sends to the next rank of its context group.
        data_bytes: Gradients that a rank all-reduces with its data group; with experts, those of the other
            layers.
        pipeline_bytes: Activations that a rank sends to the next stage; as many bytes return.
        expert_bytes: Tokens that a rank contributes to all-to-alls of its expert group, including those for
            itself.
        expert_data_bytes: Gradients of experts that a rank all-reduces with the ranks of its data group with
            the same experts.
        interleaved: True if the last stage sends to the first, as with several chunks of layers per stage.
        tensor_algorithm, data_algorithm: Algorithms of `ingest.generate.collectives`.
        domain: Number of ranks of an NVLink domain: rank r is in domain ``r // domain``.
        keep_inside: True to include traffic within a domain, which does not load the fabric while the ranks
            of a domain stay together.
    """

    tensor: int = 1
    context: int = 1
    data: int = 1
    pipeline: int = 1
    expert: int = 1
    order: Sequence[str] = DIMENSIONS
    tensor_bytes: float = 0.0
    context_bytes: float = 0.0
    data_bytes: float = 0.0
    pipeline_bytes: float = 0.0
    expert_bytes: float = 0.0
    expert_data_bytes: float = 0.0
    interleaved: bool = False
    tensor_algorithm: Algorithm = "ring"
    data_algorithm: Algorithm = "ring"
    domain: int | None = None
    keep_inside: bool = True

    def __post_init__(self) -> None:
        for name in (*DIMENSIONS, "expert"):
            whole(f"ai_layout.{name}", getattr(self, name), 1)
        ranks = whole("ai_layout.ranks", math.prod(self.sizes.values()), 1)
        if self.data % self.expert:
            raise InvalidValue("ai_layout.expert", f"is {self.expert}, must divide data, {self.data}")
        if sorted(self.order) != sorted(DIMENSIONS):
            raise InvalidValue("ai_layout.order", f"must name {', '.join(DIMENSIONS)}, each once")
        if self.domain is not None and ranks % whole("ai_layout.domain", self.domain, 1):
            raise InvalidValue("ai_layout.domain", f"is {self.domain}, must divide the {ranks} ranks")
        for name in (*DIMENSIONS, "expert", "expert_data"):
            size = getattr(self, f"{name}_bytes")
            if not (math.isfinite(size) and size >= 0):
                raise InvalidValue(f"ai_layout.{name}_bytes", "must be finite and not negative")

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of the parallel groups by dimension."""
        return {name: getattr(self, name) for name in DIMENSIONS}


def ai_layout(layout: AiLayout) -> Profile:
    """Return the profile of one step of training on ``tensor * context * data * pipeline`` ranks."""
    grid, domain = _grid(layout.sizes, layout.order), layout.domain
    tensor, data = _groups(grid, 0), _groups(grid, 2)
    sent = joined(
        expand("all-reduce", tensor, layout.tensor_bytes, algorithm=layout.tensor_algorithm, domain=domain),
        _around(_groups(grid, 1), layout.context_bytes),
        expand("all-reduce", data, layout.data_bytes, algorithm=layout.data_algorithm, domain=domain),
        *_stages(_groups(grid, 3), layout.pipeline_bytes, layout.interleaved),
        *_experts(data, layout),
    )
    return _profile(sent, grid.size, layout.sizes, None if layout.keep_inside else domain)


def _grid(sizes: dict[str, int], order: Sequence[str]) -> Longs:
    """Return the rank at each place (int64[tensor, context, data, pipeline])."""
    slowest_first = tuple(reversed(order))
    numbered = np.arange(math.prod(sizes.values())).reshape([sizes[name] for name in slowest_first])
    return numbered.transpose([slowest_first.index(name) for name in DIMENSIONS])


def _groups(grid: Longs, axis: int) -> Longs:
    """Return the ranks that differ in their place along one dimension alone (int64[groups, size])."""
    return np.moveaxis(grid, axis, -1).reshape(-1, grid.shape[axis])


def _around(groups: Longs, size: float) -> Edges:
    return ring_of(groups, size) if groups.shape[1] > 1 and size else joined()


def _stages(groups: Longs, size: float, interleaved: bool) -> Iterator[Edges]:
    if groups.shape[1] < 2 or not size:
        return
    here, there = groups[:, :-1], groups[:, 1:]
    if interleaved:
        here, there = groups, np.roll(groups, -1, axis=1)
    yield edges(here, there, size)
    yield edges(there, here, size)


def _experts(groups: Longs, layout: AiLayout) -> Iterator[Edges]:
    """Yield the traffic within expert groups, and between ranks with the same experts."""
    blocks = groups.reshape(len(groups), -1, layout.expert)
    if layout.expert_bytes:
        yield expand("all-to-all", blocks.reshape(-1, layout.expert), layout.expert_bytes)
    if layout.expert_data_bytes:
        same = blocks.swapaxes(1, 2).reshape(-1, blocks.shape[1])
        algorithm, domain = layout.data_algorithm, layout.domain
        yield expand("all-reduce", same, layout.expert_data_bytes, algorithm=algorithm, domain=domain)


def _profile(sent: Edges, ranks: int, sizes: dict[str, int], left_out: int | None) -> Profile:
    kept = sent.bytes > 0
    if left_out is not None:
        kept &= sent.source // left_out != sent.target // left_out
    name = "ai-" + "-".join(f"{name[0]}p{size}" for name, size in sizes.items() if size > 1)
    return sent.select(kept).profile(ranks, name, "AI training")


def ring(ranks: int, *, bytes: float = 1.0, both_ways: bool = False) -> Profile:
    """Return a profile in which every rank sends to the next, the last to the first.

    Args:
        bytes: Bytes from each rank to the next.
        both_ways: Whether every rank also sends to the one before.
    """
    me = np.arange(whole("ring.ranks", ranks, 1))[None, :]
    size = positive("ring.bytes", bytes)
    sent = [ring_of(me, size), ring_of(me[:, ::-1], size)][: 1 + both_ways]
    return joined(*sent).profile(ranks, f"ring-{ranks}", "ring")


def all_to_all(ranks: int, *, bytes: float = 1.0) -> Profile:
    """Return a profile in which every rank sends to every other.

    Args:
        ranks: Number of ranks, at most 8,192: the number of pairs grows with its square.
        bytes: Bytes from each rank to each other.
    """
    count = whole("all_to_all.ranks", ranks, 1, 1 << 13)
    sent = expand("all-to-all", np.arange(count), positive("all_to_all.bytes", bytes) * count)
    return sent.profile(ranks, f"all-to-all-{ranks}", "all-to-all")


def random(ranks: int, *, partners: int = 4, bytes: float = 1.0, skew: float = 0.0, seed: int = 0) -> Profile:
    """Return a profile in which every rank sends to `partners` others, drawn at random without repeats.

    Args:
        partners: Number of ranks to which each rank sends.
        bytes: Mean bytes from a rank to another.
        skew: Standard deviation of the logarithm of these bytes, which are log-normal; 0 makes all equal.
    """
    count = whole("random.ranks", ranks, 2)
    whole("random.partners", partners, 1, count - 1)
    size = positive("random.bytes", bytes)
    if not 0 <= skew <= 10:
        raise InvalidValue("random.skew", f"is {skew}, not within 0 .. 10")
    generator = np.random.default_rng(seed)
    source = np.repeat(np.arange(count), partners)
    step = np.concatenate([1 + generator.choice(count - 1, partners, replace=False) for _ in range(count)])
    drawn = np.exp(generator.normal(-(skew**2) / 2, skew, len(source))) if skew else np.ones(len(source))
    sent = edges(source, (source + step) % count, size * drawn)
    return sent.profile(ranks, f"random-{ranks}", "random pairs")


def collective(
    operation: Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"],
    ranks: int,
    *,
    bytes: float = 1.0,
    groups: int = 1,
    algorithm: Algorithm = "ring",
    domain: int | None = None,
) -> Profile:
    """Return the profile of one call of a collective in groups of consecutive ranks.

    Args:
        bytes: Bytes of the whole buffer, as defined in `ingest.generate.collectives`.
        groups: Number of groups, a divisor of the number of ranks.
        domain: Number of ranks of an NVLink domain, for the hierarchical algorithm.
    """
    whole("collective.ranks", ranks, 1)
    if ranks % whole("collective.groups", groups, 1, ranks):
        raise InvalidValue("collective.groups", f"is {groups}, must divide the {ranks} ranks")
    members = np.arange(ranks).reshape(groups, -1)
    size = positive("collective.bytes", bytes)
    sent = expand(operation, members, size, algorithm=algorithm, domain=domain)
    return sent.profile(ranks, f"{operation}-{ranks}", f"{operation}, {algorithm}")


def kkt_product(ranks: int, *, side: int = 40, seed: int = 0) -> Profile:
    """Return the profile of products of a vector with a matrix like nlpkkt80 to nlpkkt240, cut by METIS.

    Args:
        side: Number of points along each side of the cube; 240 for nlpkkt240.
    """
    return product_traffic(kkt(side), ranks, seed=seed, name=f"kkt{side}-{ranks}")


def crankshaft_product(ranks: int, *, nodes: int = 20_000, seed: int = 0) -> Profile:
    """Return the profile of products of a vector with the stiffness matrix of a crankshaft, cut by METIS.

    Args:
        nodes: Number of nodes of the mesh; 114,597 is the size of F1, 314,565 that of audikw_1.
    """
    return product_traffic(crankshaft(nodes), ranks, seed=seed, name=f"crankshaft{nodes}-{ranks}")
