"""Slurm's ``topology.yaml`` (25.05 and later): one topology, a tree, the default of the cluster.

The switches are those of `registry.exports.slurm_tree`; hosts without a switch are listed in a comment. Slurm
ignores topology.conf if there is a topology.yaml. Source: topology.yaml(5); not tested with Slurm.
"""

from __future__ import annotations

from typing import Any

from registry.exports.switch_tree import fold, tiers
from registry.model import Fabric

TOPOLOGY = "fabric"
"""Name of the topology, which partitions can select."""


def write(fabric: Fabric) -> str:
    """Return the YAML document.

    Raises
    ------
    InvalidValue
        No host is on a switch, or Slurm cannot accept a host's name.
    """
    import yaml

    found = tiers(fabric)
    switches: list[dict[str, str]] = [
        {"switch": tier.name}
        | ({"children": fold(tier.children)} if tier.children else {"nodes": fold(tier.hosts)})
        for tier in found.tiers
    ]
    topologies: list[dict[str, Any]] = [
        {"topology": TOPOLOGY, "cluster_default": True, "tree": {"switches": switches}}
    ]
    head = "# Slurm topology, from the wiring as it was seen\n"
    head += f"# on no switch: {fold(found.left_out)}\n" if found.left_out else ""
    return "---\n" + head + str(yaml.safe_dump(topologies, sort_keys=False, width=100_000))
