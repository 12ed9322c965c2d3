"""The messages that a simulation sends: those of a trace, or of a profile in rounds.

Options of a simulated network besides its fabric: packets, latencies, buffers, lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mapping.simulation.kernels.packet_moves import LARGEST_PACKET
from registry.errors import InvalidValue
from registry.model import Floats, Ints, Longs, Profile
from registry.model.profile import Trace
from registry.model.simulation import Simulation

MOST_BYTES = 1 << 50
"""Size of the largest message."""


class Messages(NamedTuple):
    """Messages of ranks; those of one rank are sent in their order."""

    rank: Ints
    receiver: Ints
    """int32[n]: Sender and receiver."""
    bytes: Longs
    """int64[n]: >= 0."""
    ready: Floats
    """float64[n]: Seconds before which a message is not sent; >= 0. A rank also waits until its previous
    message has left."""
    round: Ints
    """int32[n]: A message is not sent before all messages of earlier rounds are delivered; does not descend
    within a rank, and every round from 0 on has a message."""


def from_trace(trace: Trace, scale: float = 1.0) -> Messages:
    """Return the messages of a trace, sent `scale` times as fast; if infinite, all at once, in rank order.

    The paper of 2004 decreases the times of its traces until the network saturates (section 5.1).

    Raises:
        InvalidValue: The scale is not above zero.
    """
    if not scale > 0:
        raise InvalidValue("from_trace.scale", f"must be above zero, is {scale}")
    order = np.argsort(trace.sender, kind="stable")
    at = np.zeros(len(trace)) if math.isinf(scale) else trace.scaled(scale).at
    return Messages(
        rank=trace.sender[order],
        receiver=trace.receiver[order],
        bytes=trace.bytes[order],
        ready=at[order],
        round=np.zeros(len(order), np.int32),
    )


def from_profile(
    profile: Profile, rounds: int = 1, *, barrier: bool = True, gap_seconds: float = 0.0
) -> Messages:
    """Return the traffic of a profile in rounds, in each of which every rank sends a message to each partner.

    The bytes of a pair, rounded to whole ones, are divided evenly. Rounds in which a pair would send nothing
    are left out, but a pair without any bytes sends one message. A rank starts with the partner of the next
    higher number and wraps around, so that not all start with rank 0.

    Args:
        rounds: >= 1.
        barrier: A round starts when the one before it is delivered; otherwise ranks go on independently.
        gap_seconds: Round r does not start before ``r * gap_seconds``.

    Raises:
        InvalidValue
    """
    if rounds < 1:
        raise InvalidValue("from_profile.rounds", f"must be 1 or more, is {rounds}")
    if not (math.isfinite(gap_seconds) and gap_seconds >= 0):
        raise InvalidValue("from_profile.gap_seconds", f"must be finite and not negative, is {gap_seconds}")
    if float(profile.bytes.max(initial=0.0)) * rounds > MOST_BYTES:
        raise InvalidValue("from_profile", f"{profile.bytes.max():g} bytes in {rounds} rounds are too many")
    sender, partner = profile.sender.astype(np.int64), profile.partner.astype(np.int64)
    turn = np.lexsort(((partner - sender) % profile.ranks, sender))
    total = np.rint(profile.bytes).astype(np.int64)[turn]
    share = np.arange(rounds + 1)[:, None] * total // rounds
    size = np.diff(share, axis=0)  # by round and pair
    sent = size > 0
    sent[0] |= total == 0
    number, pair = np.nonzero(sent)
    order = np.lexsort((number, sender[turn][pair]))  # stable: pairs keep their turn within a round
    number, pair = number[order], pair[order]
    gapless = np.unique(number, return_inverse=True)[1].reshape(-1).astype(np.int32)
    return Messages(
        rank=sender[turn][pair].astype(np.int32),
        receiver=partner[turn][pair].astype(np.int32),
        bytes=size[number, pair],
        ready=np.asarray(number * gap_seconds, np.float64),
        round=gapless if barrier else np.zeros(len(number), np.int32),
    )


def check_messages(messages: Messages, ranks: int) -> Messages:
    """Return the messages by rank, in the types of `Messages`, if a simulation can send them.

    Raises:
        InvalidValue: With the row and the value.
    """
    n = len(messages.rank)
    types = (np.int32, np.int32, np.int64, np.float64, np.int32)
    for name, column in messages._asdict().items():
        if np.shape(column) != (n,):
            raise InvalidValue(f"Messages.{name}", f"has {np.size(column)} entries, not {n}")
    rank, receiver, size, ready, number = (
        np.array(column, dtype) for column, dtype in zip(messages, types, strict=True)
    )
    for name, values, bad in (
        ("rank", rank, (rank < 0) | (rank >= ranks)),
        ("receiver", receiver, (receiver < 0) | (receiver >= ranks)),
        ("bytes", size, (size < 0) | (size > MOST_BYTES)),
        ("ready", ready, ~(np.isfinite(ready) & (ready >= 0))),
        ("round", number, number < 0),
    ):
        if bool(bad.any()):
            row = int(np.argmax(bad))
            raise InvalidValue(f"Messages.{name}", f"row {row} has {values[row]}, for {ranks} ranks")
    order = np.argsort(rank, kind="stable")
    found = Messages(rank[order], receiver[order], size[order], ready[order], number[order])
    falls = (np.diff(found.round) < 0) & (np.diff(found.rank) == 0)
    if bool(falls.any()):
        raise InvalidValue("Messages.round", f"descends within rank {found.rank[int(np.argmax(falls))]}")
    if n and len(np.unique(number)) != int(number.max()) + 1:
        raise InvalidValue("Messages.round", "a round has no messages")
    return found


def saturating_scale(trace: Trace, run: Callable[[Messages], Simulation]) -> float:
    """Return the scale for `from_trace` at which a trace offers the most that the network can deliver.

    The paper of 2004 decreases times until the network saturates (section 5.1) and does not give a limit.
    Here all messages are offered at once, in each rank's order; the time that the network needs for them is
    the span that the trace is shortened to. Every larger scale saturates more.

    Args:
        run: Simulates messages over the network from the placement in question.

    Raises:
        InvalidValue: The trace spans no time, or the network needs none for it: no scale is better than
            another.
    """
    seconds = run(from_trace(trace, math.inf)).completion_seconds
    if not (trace.span_seconds > 0 and seconds > 0):
        raise InvalidValue("saturating_scale", f"{trace.span_seconds:g} s are sent in {seconds:g} s")
    return trace.span_seconds / seconds


MOST_CYCLES = 1 << 20
"""Longest latency of a link in cycles."""
MOST_LANES = 64
"""Largest number of lanes of a class: InfiniBand has 15."""
EVERY = 10_000
"""Default number of messages between two points of traffic over time, as in the figures of the 2004 paper."""
MOST_EVERY = 1 << 40
MOST_ROOM = 1 << 40
"""Largest size of a buffer in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Options:
    """The network through which messages are sent, and how the traffic is recorded.

    Raises:
        InvalidValue: An option is out of range.
    """

    packet_bytes: int = 2048
    """Largest part of a message in a packet."""
    header_bytes: int = 0
    """Further bytes of every packet; not counted in ``Simulation.link_bytes``."""
    latency_seconds: float | Floats = 1e-7
    """float or float64[m]: Time from one end of a link until the head of a packet may leave the next switch,
    of all links or of each. In flits it is at least a cycle, and rounded to whole cycles; to halves, thirds
    or quarters of a cycle if that would change a latency or a link's speed by more than 1%."""
    buffer_bytes: int | Longs | None = None
    """int, int64[m]: Size of each channel's buffer at the far end of a link; default: the bytes sent until
    free room is reported back, and four packets (nine flits) more."""
    lanes: int = 1
    """Number of channels of each class per link, 1 to `MOST_LANES`."""
    selection: str = "adaptive"
    """Choice among several next channels; see ``channels.SELECTIONS``."""
    flit_bytes: int = 8
    """The fastest link sends a flit per cycle; others take more, rounded like latencies."""
    every: int = EVERY
    """Number of messages between two points of the traffic over time."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("header_bytes", 0, LARGEST_PACKET - 2),
            ("packet_bytes", 1, LARGEST_PACKET - 1 - self.header_bytes),
            ("flit_bytes", 1, LARGEST_PACKET - 1),
            ("lanes", 1, MOST_LANES),
            ("every", 1, MOST_EVERY),
        ):
            if not low <= getattr(self, name) <= high:
                raise InvalidValue(f"simulate.{name}", f"must be {low} to {high}, is {getattr(self, name)}")
        if self.buffer_bytes is not None and bool((np.asarray(self.buffer_bytes) > MOST_ROOM).any()):
            raise InvalidValue(
                "simulate.buffer_bytes", f"must be at most {MOST_ROOM}, is {self.buffer_bytes}"
            )
        latency = np.asarray(self.latency_seconds, np.float64)
        if not bool((np.isfinite(latency) & (latency >= 0)).all()):
            raise InvalidValue("simulate.latency_seconds", f"must be finite and not negative, is {latency}")

    @property
    def parameters(self) -> dict[str, str | int | float | bool]:
        """Options by name, as stored with a run, without those that follow from others."""
        names = ("packet_bytes", "header_bytes", "flit_bytes", "latency_seconds", "buffer_bytes")
        values = {name: getattr(self, name) for name in (*names, "lanes", "selection")}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def largest(self) -> int:
        """Bytes of a full packet with its header."""
        return self.packet_bytes + self.header_bytes

    def latency(self, links: int) -> Floats:
        """Return the latency of each link in seconds (float64[m]).

        Raises:
            InvalidValue: The number of values is not that of links.
        """
        return _by_link(self.latency_seconds, links, "latency_seconds").astype(np.float64)

    def buffers(self, links: int, *, at_least: int, default: Longs) -> Longs:
        """Return the bytes of each channel's buffer by link (int64[m]).

        Raises:
            InvalidValue: A buffer is smaller than `at_least`; names the link.
        """
        given = default if self.buffer_bytes is None else self.buffer_bytes
        found = _by_link(given, links, "buffer_bytes").astype(np.int64)
        if len(found) and int(found.min()) < at_least:
            row = int(np.argmin(found))
            raise InvalidValue("simulate.buffer_bytes", f"{found[row]} at link {row}: less than {at_least}")
        return found


def _by_link(values: ArrayLike, links: int, name: str) -> Floats | Longs:
    found = np.asarray(values)
    if found.ndim and found.shape != (links,):
        raise InvalidValue(f"simulate.{name}", f"has {found.size} entries, not {links}")
    return np.broadcast_to(found, (links,)).copy()
