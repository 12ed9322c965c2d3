"""The guest graph for the bounds: the partners of each rank, heaviest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from mapping.evaluation.kernels.nearest_flows import GuestArrays
from mapping.evaluation.kernels.nearest_slots import sort_descending
from registry.model import Floats, Longs, Profile


def guest_arrays(profile: Profile) -> GuestArrays:
    """Return the undirected graph of the ranks that send bytes."""
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
class SortedBytes:
    """Bytes of each rank with its partners, heaviest first.

    Attributes
    ----------
    ptr : int64[ranks + 1]
    bytes : float64[e]
    """

    ptr: Longs
    bytes: Floats

    @classmethod
    def of(cls, ptr: Longs, bytes: Floats) -> SortedBytes:
        """Sort the bytes of each rank.

        Parameters
        ----------
        ptr : int64[ranks + 1]
        bytes : float64[e]
            In any order within a rank.
        """
        ordered = np.array(bytes, np.float64)
        sort_descending(ptr, ordered)
        return cls(ptr=ptr, bytes=ordered)

    def beyond(self, kept: int) -> Floats:
        """Return the bytes (float64[ranks]) with all partners except the `kept` heaviest."""
        rank, position = self._positions()
        left = position >= kept
        return np.bincount(rank[left], self.bytes[left], len(self.ptr) - 1).astype(np.float64)

    def table(self, columns: int) -> Floats:
        """Return the heaviest bytes first (float64[ranks, d]), padded with zeros; d <= columns."""
        rank, position = self._positions()
        table = np.zeros((len(self.ptr) - 1, min(int(position.max(initial=-1)) + 1, columns)))
        kept = position < columns
        table[rank[kept], position[kept]] = self.bytes[kept]
        return table

    def _positions(self) -> tuple[Longs, Longs]:
        """Return the rank of each entry, and its position there (int64[e] each)."""
        count = np.diff(self.ptr)
        rank = np.repeat(np.arange(len(count)), count)
        return rank, np.arange(len(rank)) - np.repeat(self.ptr[:-1], count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partners:
    """Bytes that each rank sends, receives and both, by partner, heaviest first."""

    sent: SortedBytes
    received: SortedBytes
    both: SortedBytes

    @classmethod
    def of(cls, profile: Profile, guest: GuestArrays) -> Partners:
        """Return a profile's bytes sorted for each rank."""
        shape = (profile.ranks, profile.ranks)
        received = csr_array((profile.bytes, profile.partner, profile.indptr), shape=shape).tocsc()
        return cls(
            sent=SortedBytes.of(np.array(profile.indptr), profile.bytes),
            received=SortedBytes.of(received.indptr.astype(np.int64), received.data),
            both=SortedBytes.of(guest.ptr, guest.weight[guest.edge]),
        )
