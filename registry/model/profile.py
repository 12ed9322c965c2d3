"""Type of a communication profile: the traffic between ranks.

Type of a trace: all messages of a run with their times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from registry.errors import InvalidValue, shorten
from registry.model.arrays import (
    Bools,
    Floats,
    Ints,
    Longs,
    check_range,
    freeze_all,
    of_length,
    readonly,
    whole_numbers,
)
from registry.model.views import Tabular, one_line, to_networkx, whole_number


class HasProfile(Protocol):
    """An object with a profile, such as a `StoredProfile`; functions accept it in place of the profile."""

    @property
    def profile(self) -> Profile:
        """Profile of the object."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Profile(Tabular):
    """Traffic from each rank of an application to the others, as directed CSR over ranks."""

    indptr: Longs
    partner: Ints
    """int64[ranks + 1] and int32[pairs]: Receivers of each rank, ascending, without repeats and without the
    rank itself."""
    bytes: Floats
    """float64[pairs]: Bytes of each pair; finite, >= 0 (0 for messages without a body)."""
    messages: Longs
    """int64[pairs]: Messages of each pair; 0 if unknown."""
    name: str = ""
    application: str = ""
    source: str = ""
    """Name in the registry; name of the program; format of the source."""
    self_edges: int = 0
    self_bytes: float = 0.0
    """Number of dropped edges from a rank to itself, and their bytes."""
    missing_ranks: tuple[int, ...] = ()
    """Ranks without a recording of what they sent."""

    to_networkx = to_networkx

    def columns(self) -> Mapping[str, Any]:
        """Return the traffic by column, a row per ordered pair: ``source target bytes messages``."""
        return {
            "source": self.sender,
            "target": self.partner,
            "bytes": self.bytes,
            "messages": self.messages,
        }

    def __repr__(self) -> str:
        name = repr(shorten(self.name or self.application, 40))
        return f"Profile({name}, {self.ranks} ranks, {self.pairs} pairs, {self.bytes.sum():.4g} bytes)"

    def __post_init__(self) -> None:
        freeze_all(self, None, "indptr")
        pairs = len(np.atleast_1d(self.partner))
        freeze_all(self, pairs, "partner", "bytes", "messages")
        ranks = len(self.indptr) - 1
        if ranks < 1:
            raise InvalidValue("Profile.indptr", "a profile has at least one rank")
        if int(self.indptr[0]) != 0 or int(self.indptr[-1]) != pairs:
            raise InvalidValue("Profile.indptr", f"must run from 0 to {pairs}")
        if bool((np.diff(self.indptr) < 0).any()):
            raise InvalidValue("Profile.indptr", "must not descend")
        check_range(self, "partner", 0, ranks)
        sender = self.sender
        if bool((sender == self.partner).any()):
            raise InvalidValue("Profile.partner", "a rank must not send to itself")
        same_row = sender[1:] == sender[:-1]
        if bool((np.diff(self.partner)[same_row] <= 0).any()):
            raise InvalidValue("Profile.partner", "must ascend within a rank")
        if pairs and not (np.isfinite(self.bytes).all() and (self.bytes >= 0).all()):
            raise InvalidValue("Profile.bytes", "must be finite and not negative")
        if pairs and int(self.messages.min()) < 0:
            raise InvalidValue("Profile.messages", "must not be negative")

    @classmethod
    def from_edges(
        cls,
        source: ArrayLike,
        target: ArrayLike,
        bytes: ArrayLike,
        *,
        ranks: int | None = None,
        messages: ArrayLike | None = None,
        **about: Any,
    ) -> Self:
        """Return the profile of directed edges; repeated pairs are summed, self edges dropped and counted.

        Args:
            source, target (int[e]): Sending and receiving rank.
            bytes (float[e]):
            ranks: Number of ranks (default: one more than the highest rank).
            messages (int[e]):
            **about: `name`, `application`, `missing_ranks`.
        """
        src = whole_numbers(source, "Profile.source")
        dst = whole_numbers(target, "Profile.target")
        size = readonly(bytes, np.float64, "Profile.bytes").reshape(-1)
        count = whole_numbers(np.zeros(len(src)) if messages is None else messages, "Profile.messages")
        for name, values in (("target", dst), ("bytes", size), ("messages", count)):
            of_length(values, len(src), f"Profile.{name}")
        if len(size) and not (np.isfinite(size).all() and (size >= 0).all()):
            raise InvalidValue("Profile.bytes", "must be finite and not negative")
        highest = int(max(src.max(), dst.max())) if len(src) else -1
        ranks = highest + 1 if ranks is None else whole_number(ranks, "Profile.ranks")
        if len(src) and (highest >= ranks or int(min(src.min(), dst.min())) < 0):
            raise InvalidValue("Profile.source", f"a rank is outside 0 .. {ranks - 1}")
        loops = src == dst
        about.setdefault("self_edges", int(loops.sum()))
        about.setdefault("self_bytes", float(size[loops].sum()))
        keep = ~loops
        key, inverse = np.unique(src[keep] * max(ranks, 1) + dst[keep], return_inverse=True)
        senders = key // max(ranks, 1)
        total = np.zeros(len(key), np.int64)
        np.add.at(total, inverse, count[keep])
        return cls(
            indptr=np.searchsorted(senders, np.arange(ranks + 1)),
            partner=(key % max(ranks, 1)).astype(np.int32),
            bytes=np.bincount(inverse, weights=size[keep], minlength=len(key)).astype(np.float64),
            messages=total,
            **about,
        )

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.indptr) - 1

    @property
    def pairs(self) -> int:
        """Number of ordered pairs of ranks with messages."""
        return len(self.partner)

    @property
    def sender(self) -> Ints:
        """Sending rank of each pair: int32[pairs]."""
        return np.repeat(np.arange(self.ranks, dtype=np.int32), np.diff(self.indptr))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Messages between the ranks of an application, in the order in which they were sent.

    Times recorded on a busy machine are unreliable; the order and sizes of each rank's messages are not.

    Raises:
        InvalidValue: With the offending row (from 0) and its value.
    """

    ranks: int
    """Number of ranks; >= 1."""
    at: Floats
    """float64[n]: Time at which each message was sent, in seconds since the first one; finite, >= 0,
    non-decreasing."""
    sender: Ints
    receiver: Ints
    """int32[n]: Ranks in ``0 .. ranks - 1``; never equal."""
    bytes: Longs
    """int64[n]: Size of each message; >= 0."""
    tag: Ints
    """int32[n]: Tag of each message; 0 if unknown."""

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

        Args:
            **about: `name`, `application`, `self_edges`, `self_bytes`, `missing_ranks` of the profile.
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

        Raises:
            InvalidValue: The factor is not finite or not above zero, or a time becomes infinite.
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
