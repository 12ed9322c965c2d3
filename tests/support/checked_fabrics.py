"""Fabrics with faults, and the findings of one check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mapping.checks.catalog import check
from mapping.checks.finding import Finding, Subject
from registry.model import Fabric
from registry.model.links import PORT_COLUMNS, Ports
from tests.support.infiniband_data import infiniband


def findings_of(fabric: Fabric, name: str) -> list[Finding]:
    return list(check(Subject(fabric=fabric), [name]))


def fabric_of_cables(names: list[str], cables: list[tuple[str, str]], switches: set[str]) -> Fabric:
    at = {name: index for index, name in enumerate(names)}
    ends = [(at[a], at[b]) for a, b in cables] + [(at[b], at[a]) for a, b in cables]
    source, target = zip(*ends, strict=True)
    slots = [int(name not in switches) for name in names]
    return Fabric.from_arcs(names, source, target, 1.0, slots=slots, forwards=False)


def with_ports(*rows: tuple[str, int, int, float]) -> Fabric:
    """The traffic fixture's fabric, with more said of some of its switches' ports."""
    fabric = infiniband("fattree2-64-traffic")
    vertex = fabric.vertices([name for name, *_ in rows], kind="switch")
    _, number, state, could_be = zip(*rows, strict=True)
    columns = (vertex, [-1] * len(rows), number, state, could_be)
    return replace(fabric, ports=Ports(**dict(zip(PORT_COLUMNS, map(np.array, columns), strict=True))))
