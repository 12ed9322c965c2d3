"""Traffic of NAS FT, IS and EP (MPI, version 3.3 and later): programs made of collectives.

All-to-alls are sent pair by pair, all-reduces by recursive doubling, which is what Open MPI does at the
sizes of these programs; FT and EP equal recordings in shared data but for a few bytes of start and end.
"""

from __future__ import annotations

import numpy as np

from ingest.generate.checks import whole
from ingest.generate.collectives import Algorithm, Edges, edges, expand, joined
from registry.errors import InvalidValue
from registry.model import Profile

DOUBLE, INTEGER, COMPLEX = 8, 4, 16
FT_POINTS = {
    "S": (64, 64, 64), "W": (128, 128, 32), "A": (256, 256, 128), "B": (512, 256, 256),
    "C": (512, 512, 512), "D": (2048, 1024, 1024), "E": (4096, 2048, 2048),
}  # fmt: skip
"""Points along x, y, z by problem class."""
FT_STEPS = {"S": 6, "W": 6, "A": 6, "B": 20, "C": 20, "D": 25, "E": 25}
IS_KEYS = {"S": 1 << 16, "W": 1 << 20, "A": 1 << 23, "B": 1 << 25, "C": 1 << 27, "D": 1 << 31}
IS_BUCKETS, IS_TESTS = 1024, 5
EP_BYTES, EP_REDUCTIONS = 13 * DOUBLE, 4
"""Two sums, ten counts and a time."""


def ft(ranks: int, *, points: tuple[int, int, int] = FT_POINTS["D"], steps: int = FT_STEPS["D"]) -> Profile:
    """Return the profile of FT, Fourier transforms in three dimensions, each a transposition by all-to-all.

    Up to as many ranks as points along z all ranks exchange with all. With more they stand in rows of
    ``ranks / z`` neighbours and columns of z, and each transform has an all-to-all in both.

    Parameters
    ----------
    ranks : int
        A power of two.
    points : (int, int, int)
        Along x, y and z; class D by default (`FT_POINTS`).
    steps : int
        Time steps; two more transforms are done before.

    Raises
    ------
    InvalidValue
    """
    whole("ft.ranks", ranks, 1)
    x, y, z = (whole("ft.points", count, 1) for count in points)
    times = whole("ft.steps", steps, 1) + 2
    if ranks & (ranks - 1) or (ranks > z and ranks % z):
        raise InvalidValue("ft.ranks", f"is {ranks}, must be a power of two and fit the {z} points along z")
    own = COMPLEX * x * y * z / ranks
    me = np.arange(ranks)
    if ranks <= z:
        groups = [me[None, :]]
    else:
        across = ranks // z
        groups = [me.reshape(-1, across), me.reshape(-1, across).T]
    parts = [expand("all-to-all", group, own * times) for group in groups if group.shape[1] > 1]
    sent = joined(*(part._replace(messages=part.messages * times) for part in parts))
    return _profile(sent, ranks, "ft", "NAS FT")


def integer_sort(ranks: int, *, keys: int = IS_KEYS["D"], iterations: int = 10) -> Profile:
    """Return the profile of IS: iterations sum the sizes of buckets and send every key to its bucket's rank.

    Keys are spread evenly here; the program's own are summed from four random numbers, so that the bytes of
    a pair differ from these by chance, but not their sum.

    Parameters
    ----------
    ranks : int
        A power of two.
    keys : int
        In all; class D by default (`IS_KEYS`).
    iterations : int
        The program does one more before it starts its clock.
    """
    whole("is.ranks", ranks, 1)
    whole("is.keys", keys, ranks, 1 << 40)
    times = whole("is.iterations", iterations, 1) + 1
    if ranks & (ranks - 1):
        raise InvalidValue("is.ranks", f"is {ranks}, must be a power of two")
    me = np.arange(ranks)
    sizes = _times(expand("all-reduce", me, INTEGER * (IS_BUCKETS + IS_TESTS), algorithm=_DOUBLING), times)
    counts = _times(expand("all-to-all", me, INTEGER * ranks), times)
    moved = _times(expand("all-to-all", me, INTEGER * keys / ranks), times)
    checked = edges(me[:-1], me[1:], INTEGER)
    return _profile(joined(sizes, counts, moved, checked), ranks, "is", "NAS IS")


def ep(ranks: int) -> Profile:
    """Return the profile of EP, random numbers and four reductions of 104 bytes in all at the end.

    Parameters
    ----------
    ranks : int
    """
    whole("ep.ranks", ranks, 1)
    sent = expand("all-reduce", np.arange(ranks), EP_BYTES, algorithm=_DOUBLING)
    return _profile(sent._replace(messages=sent.messages * EP_REDUCTIONS), ranks, "ep", "NAS EP")


_DOUBLING: Algorithm = "recursive-doubling"


def _times(sent: Edges, times: int) -> Edges:
    return sent._replace(bytes=sent.bytes * times, messages=sent.messages * times)


def _profile(sent: Edges, ranks: int, name: str, application: str) -> Profile:
    return Profile.from_edges(
        sent.source,
        sent.target,
        sent.bytes,
        ranks=ranks,
        messages=sent.messages,
        name=f"{name}-{ranks}",
        application=application,
    )
