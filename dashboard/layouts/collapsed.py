"""Large fabrics with fewer devices: racks, pods or groups drawn as one, found from the graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dashboard.layouts.cells import tier_text
from dashboard.layouts.model import GROUPS, TREE, Cables, Layout
from dashboard.layouts.order import natural_order
from mapping.traffic.job_loads import Neighbours
from registry.model import HOST, Bools, Fabric, Ints, Longs
from registry.units import counted

RACKS, PODS, PARTS = "racks", "pods", "groups"
"""What is drawn as one: hosts with the same switches (and above the leaves switches with the same ones below
them, if that is needed), all devices below the top switches, or a dragonfly's group."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collapsed:
    """Devices that are drawn as one.

    Attributes
    ----------
    what : str
        `RACKS`, `PODS` or `PARTS`.
    member : int64[n]
        First device of the group of each vertex, in natural order of names; itself if it is drawn alone.
    names : dict of int to str
        Name of each group with several devices, by its first device.
    has_hosts : bool[n]
        True if the group of a vertex has hosts.
    """

    what: str
    member: Longs
    names: dict[int, str]
    has_hosts: Bools

    def devices(self, vertex: int) -> Longs:
        """Return all devices (int64) that are drawn as one with a device."""
        return np.flatnonzero(self.member == self.member[vertex])

    def layout(self, layout: Layout) -> Layout:
        """Return the layout with each group in the middle of its devices, on the highest of their tiers."""
        size = np.bincount(self.member, minlength=len(self.member))
        x, y = (
            np.bincount(self.member, weights=values, minlength=len(size)) / np.maximum(size, 1)
            for values in (layout.x, layout.y)
        )
        tier = np.zeros(len(size), np.int32)
        np.maximum.at(tier, self.member, layout.tier)
        return replace(layout, x=x, y=y, tier=tier)

    def level_text(self, vertices: Longs, text: str) -> str:
        """Return the text of a level with these groups; `text` if all of its devices are drawn alone."""
        if not self.names.keys() & set(vertices.tolist()):
            return text
        below = any(self.has_hosts[vertex] for vertex in vertices.tolist())
        what = self.what if below else "switch groups"
        return counted(len(vertices), what.removesuffix("s"), what)

    def cables(self, cables: Cables) -> Cables:
        """Return the cables between different groups, with the first devices of the groups as ends."""
        a, b = self.member[cables.a], self.member[cables.b]
        kept, swap = a != b, a > b
        ends = (np.where(swap, b, a), np.where(swap, a, b))
        rows = (np.where(swap, cables.back, cables.there), np.where(swap, cables.there, cables.back))
        return Cables(a=ends[0][kept], b=ends[1][kept], there=rows[0][kept], back=rows[1][kept])


def collapse(fabric: Fabric, layout: Layout, cables: Cables, most: int) -> Collapsed | None:
    """Return the groups in which a fabric has at most `most` lines; None if no kind of group achieves it.

    Parameters
    ----------
    most : int
        Maximum number of pairs of groups with cables.
    """
    for found in _kinds(fabric, layout):
        part = found.cables(cables)
        lines = len(np.unique(part.a * len(fabric) + part.b))
        if 0 < lines <= most:
            return found
    return None


def _kinds(fabric: Fabric, layout: Layout) -> Iterator[Collapsed]:
    """Yield the possible groups, the smallest first."""
    if layout.form == GROUPS and layout.group is not None:
        yield _named(fabric, PARTS, np.where(layout.group >= 0, layout.group, -1).astype(np.int64))
    if layout.form != TREE:
        return
    rack = Neighbours.of(fabric).group.astype(np.int64)
    yield _named(fabric, RACKS, rack)
    yield _named(fabric, RACKS, _with_alike(fabric, rack, layout.tier))
    top = layout.tier == layout.tier.max()
    pod = _pods(fabric, top)
    yield _named(fabric, PODS, pod)
    yield _named(fabric, PODS, _with_same_lower(fabric, pod, top))


def _pods(fabric: Fabric, top: Bools) -> Longs:
    """Return int64[n]: the pod of each vertex, -1 for top switches: what is connected without those."""
    links = fabric.links
    inner = ~top[links.source] & ~top[links.target]
    ends = (links.source[inner], links.target[inner])
    graph = coo_array((np.ones(int(inner.sum())), ends), shape=(len(fabric), len(fabric)))
    part = np.asarray(connected_components(graph.tocsr(), directed=False)[1], np.int64)
    part[top] = -1
    return part


def _with_alike(fabric: Fabric, group: Longs, tier: Ints) -> Longs:
    """Return the groups, with switches above the leaves as one if they have the same ones below them."""
    whole = group
    for level in range(2, int(tier.max()) + 1):
        whole = _with_same_lower(fabric, whole, tier == level, tier == level - 1)
    return whole


def _with_same_lower(fabric: Fabric, group: Longs, upper: Bools, lower: Bools | None = None) -> Longs:
    """Return the groups with some switches that have the same groups below them as one group.

    Parameters
    ----------
    upper : bool[n]
        These switches.
    lower : bool[n], optional
        The devices below them (default: all others).
    """
    links = fabric.links
    below = ~upper if lower is None else lower
    down = upper[links.source] & below[links.target]
    # devices without a group stand for themselves
    number = np.where(group >= 0, group, len(fabric) + np.arange(len(fabric)))
    pairs = np.unique(np.c_[links.source[down], number[links.target[down]]], axis=0)
    first = np.searchsorted(pairs[:, 0], np.arange(len(fabric) + 1))
    known: dict[tuple[int, ...], int] = {}
    whole, free = group.copy(), int(group.max(initial=0)) + 1
    for vertex in np.flatnonzero(upper).tolist():
        if under := tuple(pairs[first[vertex] : first[vertex + 1], 1].tolist()):
            whole[vertex] = known.setdefault(under, free + len(known))
    return whole


def _named(fabric: Fabric, what: str, group: Longs) -> Collapsed:
    """Return groups by number (-1: drawn alone) with the first device of each as its name."""
    member = np.arange(len(fabric), dtype=np.int64)
    rank = natural_order(fabric.names)
    order = np.lexsort((rank, ~fabric.forwards, group))
    order = order[group[order] >= 0]
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0]) if len(order) else order
    names = {}
    for devices in np.split(order, starts[1:]) if len(order) else ():
        member[devices] = devices[0]
        if len(devices) > 1:
            names[int(devices[0])] = _name(fabric, devices)
    hosts = np.zeros(len(fabric), np.bool_)
    hosts[member[fabric.kind == HOST]] = True
    return Collapsed(what=what, member=member, names=names, has_hosts=hosts[member])


def _name(fabric: Fabric, devices: Longs) -> str:
    """Return a name for some devices: the first one, and how many further switches and hosts they are."""
    first, *others = devices.tolist()
    hosts = int((fabric.kind[others] == HOST).sum())
    counts = [tier_text(0, hosts)] if hosts else []
    if switches := len(others) - hosts:
        counts.insert(0, counted(switches, "switch", "switches"))
    return f"{fabric.names[first]} + {', '.join(counts)}"
