"""Links and devices of a running cluster by name; where another cluster has them, the error says which."""

from __future__ import annotations

from collections.abc import Iterable

from mapping.service.live import Live
from mapping.traffic.device_names import find_device, find_link, find_links
from mapping.traffic.fabric_changes import Change
from registry.errors import AlmanacError, UnknownName
from registry.model import Fabric
from registry.registry import Registry


def link_of(registry: Registry, live: Live, text: str) -> int:
    """Row of ``live.fabric.links`` that leaves ``DEVICE:PORT``; see `mapping.traffic.device_names.find_link`.

    Raises
    ------
    UnknownName
        With the closest, or the cluster that has it.
    InvalidValue
        Several fit.
    """
    try:
        return find_link(live.fabric, text)
    except UnknownName as error:
        raise _located(registry, live, error) from error


def change_of(
    registry: Registry,
    live: Live,
    *,
    down: Iterable[str] = (),
    add: Iterable[str] = (),
    drain: Iterable[str] = (),
) -> Change:
    """A change of ``live.fabric`` in the words of the command line; see `Change.of`.

    Raises
    ------
    UnknownName
        With the closest, or the cluster that has it.
    InvalidValue
    """
    try:
        return Change.of(live.fabric, down=down, add=add, drain=drain)
    except UnknownName as error:
        raise _located(registry, live, error) from error


def _located(registry: Registry, live: Live, error: UnknownName) -> UnknownName:
    """The same error, or one that names the first other cluster that has what was asked for."""
    own = live.running.snapshot.cluster
    for info in registry.fabrics.clusters():
        if info.name != own and _has(registry.fabrics.read(info.name).fabric, error):
            remedy = f"cluster {info.name!r} has it, {own!r} has not"
            return UnknownName(error.kind, error.name, remedy=remedy)
    return error


def _has(fabric: Fabric, error: UnknownName) -> bool:
    try:
        if error.kind == "link":
            return len(find_links(fabric, error.name)) > 0
        find_device(fabric, error.name)
    except AlmanacError:
        return False
    return True
