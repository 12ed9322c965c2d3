"""Type of a trace: all messages of a run with their times."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Bools, Floats, Ints, Longs, freeze_all
from registry.model.profile import Profile
from registry.model.views import one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Messages between the ranks of an application, in the order in which they were sent.

    Times recorded on a busy machine are unreliable; the order and sizes of each rank's messages are not.

    Attributes
    ----------
    ranks : int
        Number of ranks; >= 1.
    at : float64[n]
        Time at which each message was sent, in seconds since the first one; finite, >= 0, non-decreasing.
    sender, receiver : int32[n]
        Ranks in ``0 .. ranks - 1``; never equal.
    bytes : int64[n]
        Size of each message; >= 0.
    tag : int32[n]
        Tag of each message; 0 if unknown.

    Raises
    ------
    InvalidValue
        With the offending row (from 0) and its value.
    """

    ranks: int
    at: Floats
    sender: Ints
    receiver: Ints
    bytes: Longs
    tag: Ints

    __repr__ = one_line

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise InvalidValue("Trace.ranks", f"must be 1 or more, is {self.ranks}")
        freeze_all(self, None, "at")
        freeze_all(self, len(self.at), "sender", "receiver", "tag", "bytes")
        self._refuse("at", ~np.isfinite(self.at), "is not finite")
        self._refuse("at", self.at < 0.0, "is before the first message")
        self._refuse("at", np.diff(self.at, prepend=self.at[:1]) < 0.0, "is a time that goes backwards")
        for name in ("sender", "receiver"):
            rank = getattr(self, name)
            self._refuse(name, (rank < 0) | (rank >= self.ranks), f"is no rank below {self.ranks}")
        self._refuse("receiver", self.receiver == self.sender, "is the sender itself")
        self._refuse("bytes", self.bytes < 0, "is negative")

    def _refuse(self, name: str, bad: Bools, why: str) -> None:
        if bool(bad.any()):
            row = int(np.argmax(bad))
            raise InvalidValue(f"Trace.{name}", f"{getattr(self, name)[row]} in row {row} {why}")

    def __len__(self) -> int:
        return len(self.at)

    @property
    def total_bytes(self) -> float:
        """Bytes of all messages."""
        return float(self.bytes.sum(dtype=np.float64))

    @property
    def span_seconds(self) -> float:
        """Seconds from the first message to the last; 0 without messages."""
        return float(self.at[-1] - self.at[0]) if len(self) else 0.0

    def profile(self, **about: Any) -> Profile:
        """Return the profile: bytes and messages of each pair of ranks.

        Parameters
        ----------
        **about
            `name`, `application`, `self_edges`, `self_bytes`, `missing_ranks` of the profile.
        """
        return Profile.from_edges(
            self.sender,
            self.receiver,
            self.bytes,
            ranks=self.ranks,
            messages=np.ones(len(self), np.int64),
            **about,
        )

    def scaled(self, factor: float) -> Self:
        """Return the same messages sent `factor` times as fast: times are divided by it.

        Raises
        ------
        InvalidValue
            The factor is not finite or not above zero, or a time becomes infinite.
        """
        if not (math.isfinite(factor) and factor > 0.0):
            raise InvalidValue("Trace.scaled", f"the factor {factor} must be finite and above zero")
        with np.errstate(over="ignore"):
            at = self.at / factor
        return replace(self, at=at)

    def first(self, n: int) -> Self:
        """Return the first `n` messages, or all if there are fewer."""
        if n < 0:
            raise InvalidValue("Trace.first", f"{n} messages")
        columns = ("at", "sender", "receiver", "bytes", "tag")
        return replace(self, **{name: getattr(self, name)[:n] for name in columns})
