"""A routing, a launcher's format and a check."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from mapping.checks.finding import Finding, Severity, Subject
from mapping.routing.catalog import build_routes
from mapping.routing.routes import ALL_CONNECTED, Routes
from registry.errors import InvalidValue
from registry.model import Fabric, Placement


def grid_or_tree(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED) -> Routes:
    """Dimension order in tori and meshes, all shortest paths in other fabrics"""
    try:
        return build_routes("dimension-order", fabric, hosts, rails=rails)
    except InvalidValue:  # no torus
        return build_routes("shortest-paths", fabric, hosts, rails=rails)


def host_list(placement: Placement, fabric: Fabric) -> str:
    """The host of each rank in one line, with commas"""
    return ",".join(fabric.names[host] for host in placement.host_of_rank.tolist()) + "\n"


host_list.launch = 'run-on --hosts "$(cat {file})" ./program'


def single_cable(subject: Subject) -> Iterator[Finding]:
    """Switches with a single cable"""
    fabric = subject.fabric
    cables = np.bincount(fabric.links.source, fabric.links.cables, len(fabric))
    for switch in fabric.switches[cables[fabric.switches] == 1].tolist():
        name = fabric.names[switch]
        yield Finding(Severity.NOTE, name, f"{name} has a single cable")
