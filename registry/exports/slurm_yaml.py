"""A fabric as Slurm's ``topology.yaml`` (25.05 and later): one topology, a tree, the default of the cluster.

The switches are those of `registry.exports.slurm_tree`; hosts on no switch stand in a comment. Where there
is a topology.yaml Slurm does not look at topology.conf. Source: topology.yaml(5), not seen accepted.
"""

from __future__ import annotations

from typing import Any

from registry.exports.hostlists import fold
from registry.exports.tiers import tiers
from registry.model import Fabric

TOPOLOGY = "fabric"
"""Name of the topology, which partitions may choose."""


def write(fabric: Fabric) -> str:
    """The YAML document.

    Raises
    ------
    InvalidValue
        No host is on a switch; a host's name that Slurm cannot take.
    """
    import yaml

    found = tiers(fabric)
    switches: list[dict[str, str]] = [
        {"switch": tier.name}
        | ({"children": fold(tier.children)} if tier.children else {"nodes": fold(tier.hosts)})
        for tier in found.tiers
    ]
    told: list[dict[str, Any]] = [
        {"topology": TOPOLOGY, "cluster_default": True, "tree": {"switches": switches}}
    ]
    head = "# Slurm topology, from the wiring as it was seen\n"
    head += f"# on no switch: {fold(found.left_out)}\n" if found.left_out else ""
    return "---\n" + head + str(yaml.safe_dump(told, sort_keys=False, width=100_000))
