"""Profiles that were recorded twice over, and how they are divided.

A wrapper that hooks both the Fortran and the C entry points of MPI counts every message of a Fortran
program twice (seen with MPICH, whose Fortran stubs call the C functions by their public names). Every pair
then has exactly twice its messages and bytes, so that both are even. That alone proves nothing: programs
send in pairs too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ingest.parsed import Parsed
from registry.errors import InputError
from registry.model import Profile

BELOW_MPI = ("openmpi-monitoring", "ai-layout", "nccl-graph", "pytorch-trace", "generated")
"""Sources that no wrapper of MPI's functions stands in."""


def divided(parsed: Parsed, by: int, path: str) -> Parsed:
    """The same with bytes and messages divided, or with a warning where they may be doubled.

    Parameters
    ----------
    parsed : Parsed
    by : int
        1 leaves them as they are.
    path : str
        For errors.

    Raises
    ------
    InputError
        Messages or whole bytes of a pair are no multiple of `by`: the profile was not recorded so often. A
        trace, for its messages would have to be divided too.
    """
    profile = parsed.profile
    if profile is None:
        return parsed
    if parsed.trace is not None:
        if by != 1:
            raise InputError("a trace is not divided: it does not tell which messages stand twice", path=path)
        return parsed
    if by == 1:
        return replace(parsed, warnings=(*parsed.warnings, *_doubled(profile)))
    whole = bool((profile.bytes == np.floor(profile.bytes)).all())
    odd = (profile.messages % by != 0) | (whole & (profile.bytes % by != 0))
    if bool(odd.any()):
        at = int(np.flatnonzero(odd)[0])
        pair = f"{profile.sender[at]} to {profile.partner[at]}"
        counts = f"{profile.messages[at]} messages, {profile.bytes[at]:.0f} bytes"
        reason = f"cannot have been recorded {by} times over: {int(odd.sum())} pairs are no multiples of {by}"
        raise InputError(reason, path=path, text=f"{pair}: {counts}")
    fewer = replace(
        profile,
        bytes=profile.bytes / by,
        messages=profile.messages // by,
        self_bytes=profile.self_bytes / by,
        source=f"{profile.source}, divided by {by}",
    )
    told = f"bytes and messages are divided by {by}"
    return replace(parsed, profile=fewer, warnings=(*parsed.warnings, told))


def _doubled(profile: Profile) -> Iterator[str]:
    if profile.source.startswith(BELOW_MPI) or not profile.pairs or not bool(profile.messages.any()):
        return
    if bool((profile.messages % 2 == 0).all()) and bool((profile.bytes % 2 == 0).all()):
        yield (
            "every pair has an even number of messages and of bytes: a wrapper that records messages twice "
            "would look like this, and so may a sound recording; --divide 2 halves it"
        )
