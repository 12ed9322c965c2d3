"""The guest as the bounds see it: who talks to whom, heaviest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from mapping.evaluation.kernels.nearest_flows import GuestArrays
from mapping.evaluation.kernels.seats import sort_falling
from registry.model import Floats, Longs, Profile


def guest_arrays(profile: Profile) -> GuestArrays:
    """The undirected graph of the ranks that send bytes."""
    low = np.minimum(profile.sender, profile.partner).astype(np.int64)
    high = np.maximum(profile.sender, profile.partner).astype(np.int64)
    sends = profile.bytes > 0
    key, edge = np.unique(low[sends] * profile.ranks + high[sends], return_inverse=True)
    weight = np.bincount(edge, profile.bytes[sends], len(key)).astype(np.float64)
    ends = np.r_[key // profile.ranks, key % profile.ranks]
    order = np.argsort(ends, kind="stable")
    return GuestArrays(
        ptr=np.searchsorted(ends[order], np.arange(profile.ranks + 1)).astype(np.int64),
        head=np.r_[key % profile.ranks, key // profile.ranks][order].astype(np.int32),
        edge=np.r_[np.arange(len(key)), np.arange(len(key))][order].astype(np.int32),
        weight=weight,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Falling:
    """Bytes of each rank with its partners, heaviest first.

    Attributes
    ----------
    ptr : int64[ranks + 1]
    bytes : float64[e]
    """

    ptr: Longs
    bytes: Floats

    @classmethod
    def of(cls, ptr: Longs, bytes: Floats) -> Falling:
        """Sort the bytes of each rank.

        Parameters
        ----------
        ptr : int64[ranks + 1]
        bytes : float64[e]
            In any order within a rank.
        """
        falling = np.array(bytes, np.float64)
        sort_falling(ptr, falling)
        return cls(ptr=ptr, bytes=falling)

    def beyond(self, kept: int) -> Floats:
        """float64[ranks]: bytes with all but the `kept` heaviest partners."""
        rank, place = self._places()
        left = place >= kept
        return np.bincount(rank[left], self.bytes[left], len(self.ptr) - 1).astype(np.float64)

    def table(self, columns: int) -> Floats:
        """float64[ranks, d]: the heaviest first, filled up with zeros; d <= columns."""
        rank, place = self._places()
        found = np.zeros((len(self.ptr) - 1, min(int(place.max(initial=-1)) + 1, columns)))
        kept = place < columns
        found[rank[kept], place[kept]] = self.bytes[kept]
        return found

    def _places(self) -> tuple[Longs, Longs]:
        """int64[e] twice: rank of each entry, and its place there."""
        count = np.diff(self.ptr)
        rank = np.repeat(np.arange(len(count)), count)
        return rank, np.arange(len(rank)) - np.repeat(self.ptr[:-1], count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partners:
    """What each rank sends, receives and both, by partner, heaviest first."""

    sent: Falling
    received: Falling
    both: Falling

    @classmethod
    def of(cls, profile: Profile, guest: GuestArrays) -> Partners:
        """Sort a profile's bytes, rank by rank."""
        shape = (profile.ranks, profile.ranks)
        received = csr_array((profile.bytes, profile.partner, profile.indptr), shape=shape).tocsc()
        return cls(
            sent=Falling.of(np.array(profile.indptr), profile.bytes),
            received=Falling.of(received.indptr.astype(np.int64), received.data),
            both=Falling.of(guest.ptr, guest.weight[guest.edge]),
        )
