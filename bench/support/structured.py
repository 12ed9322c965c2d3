"""Define mapping instances of structured applications on tori and meshes.

Transposes, butterflies and collectives on grids of ranks have many equal weights and groups of ranks, so that
swaps of single ranks hardly improve a placement. Some grids fit the sides of the machine and others do not,
and some ranks are numbered at random.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from bench.support.instances import Contest, on_all, on_some
from ingest.generate import nas
from ingest.generate.collectives import AiLayout, ai_layout, edges, expand, joined
from ingest.generate.direct import hypercube, mesh, torus
from ingest.generate.nas import mg
from ingest.generate.stencils import shuffled
from registry.model import Profile

BUFFER = float(1 << 20)
"""Bytes of a collective's buffer."""


def structured() -> dict[str, Callable[[], Contest]]:
    """Return the instances by name; a size such as ``16x32`` after the application is its grid of ranks."""
    return {
        "torus8x8/moe64": lambda: on_all(
            torus((8, 8)), mixture_of_experts(tensor=4, data=16, expert=8), sides=(8, 8)
        ),
        "torus5x6x7/hpl-14x15": lambda: on_all(torus((5, 6, 7)), hpl(14, 15), sides=(5, 6, 7)),
        "torus4x4x4x4/bt256": lambda: on_all(torus((4,) * 4), nas.bt(256), sides=(4,) * 4),
        "torus8-irregular/fft-16x16": lambda: on_some(torus((8,) * 3), fft((16, 16)), 300),
        "torus8/fft-16x32": lambda: on_all(torus((8,) * 3), fft((16, 32)), sides=(8,) * 3),
        "mesh16x32/fft-16x32-shuffled": lambda: on_all(
            mesh((16, 32)), shuffled(fft((16, 32)), 1), sides=(16, 32), wraps=False
        ),
        "mesh8/ft512": lambda: on_all(
            mesh((8,) * 3), nas.ft(512, points=nas.FT_POINTS["S"]), sides=(8,) * 3, wraps=False
        ),
        "torus8x16-4slots/cg512": lambda: on_all(torus((8, 16), slots=4), nas.cg(512), sides=(8, 16)),
        "mesh30x30/sp900": lambda: on_all(mesh((30, 30)), nas.sp(900), sides=(30, 30), wraps=False),
        "torus8x8x16/halving1024": lambda: on_all(torus((8, 8, 16)), halving(1024), sides=(8, 8, 16)),
        "torus4x4x4x4x4/doubling1024-shuffled": lambda: on_all(
            torus((4,) * 5), shuffled(doubling((1024,)), 2), sides=(4,) * 5
        ),
        "hypercube10/mg1024": lambda: on_all(hypercube(10), mg(1024), sides=(2,) * 10),
        "mesh16x16x4/lu1024-shuffled": lambda: on_all(
            mesh((16, 16, 4)), shuffled(nas.lu(1024), 3), sides=(16, 16, 4), wraps=False
        ),
        "torus6x6x6x6/summa-36x36": lambda: on_all(torus((6,) * 4), summa((36, 36)), sides=(6,) * 4),
        "torus8x12x12-2slots/doubling-48x48": lambda: on_all(
            torus((8, 12, 12), slots=2), doubling((48, 48)), sides=(8, 12, 12)
        ),
        "torus16/moe4096": lambda: on_all(
            torus((16,) * 3),
            mixture_of_experts(tensor=8, data=64, expert=16, pipeline=8),
            sides=(16,) * 3,
        ),
        "torus8x16x16-2slots/fft-16x16x16-shuffled": lambda: on_all(
            torus((8, 16, 16), slots=2), shuffled(fft((16,) * 3), 4), sides=(8, 16, 16)
        ),
    }


def along_axes(sides: tuple[int, ...], *calls: tuple[str, float, str]) -> Profile:
    """Return the profile of a collective in every line of a grid of ranks, the last coordinate fastest."""
    rank = np.arange(prod(sides)).reshape(sides)
    sent = [
        expand(operation, np.moveaxis(rank, axis, -1).reshape(-1, sides[axis]), size, algorithm=algorithm)
        for axis, (operation, size, algorithm) in enumerate(calls)
    ]
    return joined(*sent).profile(rank.size, "x".join(map(str, sides)), "collectives on a grid")


def fft(sides: tuple[int, ...]) -> Profile:
    """Return a Fourier transform on a grid of ranks: transpositions by all-to-all along every axis."""
    return along_axes(sides, *[("all-to-all", BUFFER, "direct")] * len(sides))


def doubling(sides: tuple[int, ...]) -> Profile:
    """Return all-reduces by recursive doubling along every axis: a butterfly of equal weights."""
    return along_axes(sides, *[("all-reduce", BUFFER, "recursive-doubling")] * len(sides))


def summa(sides: tuple[int, int]) -> Profile:
    """Return a matrix product on a grid of ranks: every rank's block to its row and its column, by rings."""
    return along_axes(sides, *[("all-gather", BUFFER * side, "ring") for side in sides])


def hpl(rows: int, columns: int) -> Profile:
    """Return HPL: panels pass around the rows of a grid, and rows of the matrix are exchanged in columns."""
    swaps = ("all-reduce", BUFFER / columns, "recursive-doubling")
    return along_axes((rows, columns), swaps, ("all-gather", BUFFER / rows, "ring"))


def halving(ranks: int) -> Profile:
    """Return an all-reduce by recursive halving and doubling: the furthest gets half of the buffer."""
    me, bit = np.arange(ranks), 1 << np.arange(ranks.bit_length() - 1)[:, None]
    return edges(me, me ^ bit, 2 * BUFFER * bit / ranks, 2).profile(ranks, f"halving-{ranks}", "all-reduce")


def mixture_of_experts(*, tensor: int, data: int, expert: int, pipeline: int = 1) -> Profile:
    """Return a training step of a model whose tokens go to experts by all-to-all."""
    layout = AiLayout(
        tensor=tensor,
        data=data,
        expert=expert,
        pipeline=pipeline,
        tensor_bytes=16 * BUFFER,
        data_bytes=4 * BUFFER,
        pipeline_bytes=2 * BUFFER,
        expert_bytes=16 * BUFFER,
        expert_data_bytes=2 * BUFFER,
    )
    return ai_layout(layout)
