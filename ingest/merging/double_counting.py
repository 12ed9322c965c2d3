"""Correction of profiles in which every message was recorded several times.

A wrapper that hooks both the Fortran and the C entry points of MPI counts every message of a Fortran program
twice (observed with MPICH, whose Fortran stubs call the C functions by their public names). Every pair then
has twice its messages and bytes, so that both are even. That alone proves nothing: programs may send in
pairs, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ingest.parsed import Parsed
from registry.errors import InputError
from registry.model import Profile

BELOW_MPI = ("openmpi-monitoring", "ai-layout", "nccl-graph", "pytorch-trace", "generated")
"""Sources that record below the functions of MPI, so that no wrapper can count twice."""


def undo_double_counting(parsed: Parsed, by: int, path: str) -> Parsed:
    """Return the data with bytes and messages of its profile divided, or with a warning if they look doubled.

    Parameters
    ----------
    parsed : Parsed
        Data of one source; returned unchanged if it has no profile.
    by : int
        Number of times each message was recorded; 1 divides nothing.
    path : str
        Path of the source, for errors.

    Raises
    ------
    InputError
        Messages or bytes of a pair are no multiple of `by`, or the source is a trace (it cannot be divided).
    """
    if not parsed.profiles:
        return parsed
    (profile,) = parsed.profiles
    if parsed.traces[0] is not None:
        if by != 1:
            raise InputError(
                "a trace cannot be divided: duplicates of messages cannot be identified", path=path
            )
        return parsed
    if by == 1:
        return replace(parsed, warnings=(*parsed.warnings, *_doubled(profile)))
    whole = bool((profile.bytes == np.floor(profile.bytes)).all())
    odd = (profile.messages % by != 0) | (whole & (profile.bytes % by != 0))
    if bool(odd.any()):
        first = int(np.flatnonzero(odd)[0])
        pair = f"{profile.sender[first]} to {profile.partner[first]}"
        counts = f"{profile.messages[first]} messages, {profile.bytes[first]:.0f} bytes"
        reason = f"cannot have been recorded {by} times: {int(odd.sum())} pairs are no multiples of {by}"
        raise InputError(reason, path=path, text=f"{pair}: {counts}")
    divided = replace(
        profile,
        bytes=profile.bytes / by,
        messages=profile.messages // by,
        self_bytes=profile.self_bytes / by,
        source=f"{profile.source}, divided by {by}",
    )
    warning = f"bytes and messages are divided by {by}"
    return replace(parsed, profiles=(divided,), warnings=(*parsed.warnings, warning))


def _doubled(profile: Profile) -> Iterator[str]:
    """Yield a warning if every pair has an even number of messages and bytes."""
    if profile.source.startswith(BELOW_MPI) or not profile.pairs or not bool(profile.messages.any()):
        return
    if bool((profile.messages % 2 == 0).all()) and bool((profile.bytes % 2 == 0).all()):
        yield (
            "every pair has an even number of messages and of bytes: a wrapper that records messages twice "
            "produces this, but so may a correct recording; --divide 2 halves it"
        )
