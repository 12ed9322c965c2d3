"""Profiles of one step of training a large model, from the sizes of its parallel groups.

The conventions are those of Megatron-LM (Narayanan et al. 2021): tensor-parallel ranks all-reduce
activations, context-parallel ranks send blocks around a ring, pipeline stages send activations forward and
gradients back, data-parallel ranks all-reduce gradients, and expert-parallel ranks, which are neighbours
among the data-parallel ones, exchange tokens with an all-to-all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ingest.generate.checks import whole
from ingest.generate.collectives import Algorithm, Edges, edges, expand, joined, ring_of
from registry.errors import InvalidValue
from registry.model import Longs, Profile

DIMENSIONS = ("tensor", "context", "data", "pipeline")
"""Dimensions of parallelism in their usual order, the first numbered fastest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AiLayout:
    """Parallel groups of a training, and the bytes that they send in one step.

    Parameters
    ----------
    tensor, context, data, pipeline : int
        Sizes of the parallel groups.
    expert : int
        Size of an expert-parallel group, a divisor of `data`; its ranks are neighbours in their data group.
    order : sequence of str
        The four dimensions, the one that is numbered fastest first. Megatron's order is tensor, context,
        data, pipeline.
    tensor_bytes : float
        Bytes that a rank all-reduces with its tensor group, summed over layers and micro-batches.
    context_bytes : float
        Bytes that a rank sends to the next rank of its context group.
    data_bytes : float
        Gradients that a rank all-reduces with its data group; with experts, those of the other layers.
    pipeline_bytes : float
        Activations that a rank sends to the next stage; as many bytes return.
    expert_bytes : float
        Tokens that a rank contributes to all-to-alls of its expert group, including those for itself.
    expert_data_bytes : float
        Gradients of experts that a rank all-reduces with the ranks of its data group with the same experts.
    interleaved : bool
        True if the last stage sends to the first, as with several chunks of layers per stage.
    tensor_algorithm, data_algorithm : str
        Algorithms of `ingest.generate.collectives`.
    domain : int, optional
        Number of ranks of an NVLink domain: rank r is in domain ``r // domain``.
    keep_inside : bool
        True to include traffic within a domain, which does not load the fabric while the ranks of a domain
        stay together.
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
