"""What one step of training a large model sends, from the declared sizes of its parallel groups.

The conventions are those of Megatron-LM (Narayanan et al. 2021): tensor-parallel ranks all-reduce
activations, context-parallel ranks pass blocks round a ring, pipeline stages hand activations on and their
gradients back, data-parallel ranks all-reduce gradients, and expert-parallel ranks, which are neighbours
among the data-parallel ones, exchange tokens with an all-to-all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ingest.generate.checks import whole
from ingest.generate.collectives import Algorithm, Edges, edges, expand, joined, ring_of
from registry.errors import InvalidValue
from registry.model import Longs, Profile

DIMENSIONS = ("tensor", "context", "data", "pipeline")
"""What ranks are numbered along; the usual order, the first fastest."""


def ai_layout(
    *,
    tensor: int = 1,
    context: int = 1,
    data: int = 1,
    pipeline: int = 1,
    expert: int = 1,
    order: Sequence[str] = DIMENSIONS,
    tensor_bytes: float = 0.0,
    context_bytes: float = 0.0,
    data_bytes: float = 0.0,
    pipeline_bytes: float = 0.0,
    expert_bytes: float = 0.0,
    expert_data_bytes: float = 0.0,
    interleaved: bool = False,
    tensor_algorithm: Algorithm = "ring",
    data_algorithm: Algorithm = "ring",
    domain: int | None = None,
    keep_inside: bool = True,
) -> Profile:
    """Return one step on ``tensor * context * data * pipeline`` ranks.

    Parameters
    ----------
    tensor, context, data, pipeline : int
        Sizes of the parallel groups.
    expert : int
        Size of an expert-parallel group; divides `data`, whose ranks it is made of, neighbours first.
    order : sequence of str
        The four dimensions, the one along which ranks are numbered first before the others. Megatron's own
        is tensor, context, data, pipeline.
    tensor_bytes : float
        Buffers that a rank all-reduces with its tensor group in a step, summed over layers and micro-batches.
    context_bytes : float
        What a rank passes to the next of its context group in a step.
    data_bytes : float
        Gradients that a rank all-reduces with its data group; with experts, those of the other layers.
    pipeline_bytes : float
        Activations that a rank hands to the next stage in a step; as much comes back.
    expert_bytes : float
        Tokens that a rank hands to all-to-alls of its expert group in a step, those it keeps included.
    expert_data_bytes : float
        Gradients of experts that a rank all-reduces with those of its data group that have the same experts.
    interleaved : bool
        Whether the last stage hands on to the first, as with several chunks of layers a stage.
    tensor_algorithm, data_algorithm : str
        Algorithms of `ingest.generate.collectives`.
    domain : int, optional
        Ranks of an NVLink domain: rank r is in domain ``r // domain``.
    keep_inside : bool
        Whether what stays within a domain is kept; it does not load the fabric while the ranks of a domain
        stay together.

    Raises
    ------
    InvalidValue
    """
    sizes = {"tensor": tensor, "context": context, "data": data, "pipeline": pipeline}
    _check(sizes, expert, order, domain)
    given = {
        "tensor": tensor_bytes, "context": context_bytes, "data": data_bytes, "pipeline": pipeline_bytes,
        "expert": expert_bytes, "expert_data": expert_data_bytes,
    }  # fmt: skip
    for name, size_bytes in given.items():
        if not (math.isfinite(size_bytes) and size_bytes >= 0):
            raise InvalidValue(f"ai_layout.{name}_bytes", "must be finite and not negative")
    grid = _grid(sizes, order)
    sent = joined(
        expand("all-reduce", _groups(grid, 0), tensor_bytes, algorithm=tensor_algorithm, domain=domain),
        _around(_groups(grid, 1), context_bytes),
        expand("all-reduce", _groups(grid, 2), data_bytes, algorithm=data_algorithm, domain=domain),
        *_stages(_groups(grid, 3), pipeline_bytes, interleaved),
        *_experts(_groups(grid, 2), expert, expert_bytes, expert_data_bytes, data_algorithm, domain),
    )
    return _profile(sent, grid.size, sizes, None if keep_inside else domain)


def _check(sizes: dict[str, int], expert: int, order: Sequence[str], domain: int | None) -> None:
    for name, size in (*sizes.items(), ("expert", expert)):
        whole(f"ai_layout.{name}", size, 1)
    ranks = whole("ai_layout.ranks", math.prod(sizes.values()), 1)
    if sizes["data"] % expert:
        raise InvalidValue("ai_layout.expert", f"is {expert}, must divide data, {sizes['data']}")
    if sorted(order) != sorted(DIMENSIONS):
        raise InvalidValue("ai_layout.order", f"must name {', '.join(DIMENSIONS)}, each once")
    if domain is not None and ranks % whole("ai_layout.domain", domain, 1):
        raise InvalidValue("ai_layout.domain", f"is {domain}, must divide the {ranks} ranks")


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


def _experts(
    groups: Longs, expert: int, tokens: float, gradients: float, algorithm: str, domain: int | None
) -> Iterator[Edges]:
    blocks = groups.reshape(len(groups), -1, expert)
    if tokens:
        yield expand("all-to-all", blocks.reshape(-1, expert), tokens)
    if gradients:
        alike = blocks.swapaxes(1, 2).reshape(-1, blocks.shape[1])
        yield expand("all-reduce", alike, gradients, algorithm=algorithm, domain=domain)


def _profile(sent: Edges, ranks: int, sizes: dict[str, int], left_out: int | None) -> Profile:
    kept = sent.bytes > 0
    if left_out is not None:
        kept &= sent.source // left_out != sent.target // left_out
    return Profile.from_edges(
        sent.source[kept],
        sent.target[kept],
        sent.bytes[kept],
        ranks=ranks,
        messages=sent.messages[kept],
        name="ai-" + "-".join(f"{name[0]}p{size}" for name, size in sizes.items() if size > 1),
        application="AI training",
    )
