"""Global search: hosts, switches, links, jobs, users and placements by name, GUID or id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.shared import door
from dashboard.shared.caching import cached_snapshot
from dashboard.shared.viewer import Viewer
from mapping.traffic.names import find_device, find_links, link_text, short_link, short_names
from registry.errors import InvalidValue, UnknownName
from registry.model import HOST, Fabric
from registry.registry import Registry
from registry.store.fabrics import ClusterInfo
from registry.store.job_lists import JobFilter

MOST = 8
"""Largest number of hits of a kind."""
_PLACEMENT = re.compile(r"p[0-9a-f]{6,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Something that a search found."""

    kind: str
    """``host``, ``switch``, ``link``, ``job``, ``user`` or ``placement``."""
    label: str
    """Its name, without markup."""
    page: str
    """Page that shows it, a field of `dashboard.shared.viewer.Site`."""
    address: Mapping[str, str]
    """Parameters of that page."""


def search(registry: Registry, cluster: ClusterInfo, text: str, viewer: Viewer) -> list[Hit]:
    """Return what is found in a cluster; a complete name or id alone, else all names that contain the text.

    Reads in at most three statements.
    """
    wanted = text.strip()
    fabric = cached_snapshot(registry, cluster.snapshot).fabric
    exact = _exact(fabric, cluster.name, wanted)
    jobs = _jobs(registry, cluster.name, wanted, viewer)
    whole = [hit for hit in jobs if hit.label.split(" · ")[0] == wanted or hit.kind == "user"]
    if exact or whole:
        return [*exact, *whole]
    if _PLACEMENT.fullmatch(wanted):
        return [Hit(kind="placement", label=wanted, page="jobs", address={"placement": wanted})]
    return [*_devices(fabric, cluster.name, wanted), *jobs]


def _exact(fabric: Fabric, cluster: str, text: str) -> list[Hit]:
    """Return the device or the links with this name or GUID."""
    try:
        return [_device(fabric, cluster, find_device(fabric, text).vertex)]
    except UnknownName:
        pass
    try:
        rows = find_links(fabric, re.sub(r"\s*:\s*", ":", text))
    except (InvalidValue, UnknownName):
        return []
    names = short_names(fabric)
    return [
        Hit(
            kind="link",
            label=short_link(fabric, row, names),
            page="fabric",
            address={"cluster": cluster, "link": link_text(fabric, row)},
        )
        for row in rows[:MOST].tolist()
    ]


def _devices(fabric: Fabric, cluster: str, text: str) -> list[Hit]:
    """Return the first devices whose name contains the text, ignoring case."""
    low = text.lower()
    found = [vertex for vertex, name in enumerate(fabric.names) if low in name.lower()]
    return [_device(fabric, cluster, vertex) for vertex in found[:MOST]]


def _device(fabric: Fabric, cluster: str, vertex: int) -> Hit:
    kind, name = "host" if fabric.kind[vertex] == HOST else "switch", fabric.names[vertex]
    return Hit(kind=kind, label=name, page="fabric", address={"cluster": cluster, kind: name})


def _jobs(registry: Registry, cluster: str, text: str, viewer: Viewer) -> list[Hit]:
    """Return visible jobs by the start of their id or a part of their name, and a user by the shown name."""
    users = registry.job_pages.choices(cluster).users
    rows = door.every_job(registry, JobFilter(cluster=cluster, text=text), MOST, viewer)
    hits = []
    if viewer.real(text, users) is not None:
        hits.append(Hit(kind="user", label=text, page="jobs", address={"cluster": cluster, "user": text}))
    for row in rows:
        job = row.stored.job
        label = " · ".join(part for part in (job.id, job.name, viewer.name(job.user)) if part)
        hits.append(Hit(kind="job", label=label, page="jobs", address={"job": row.stored.id}))
    return hits
