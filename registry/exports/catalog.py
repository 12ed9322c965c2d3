"""The formats in which a fabric can be written: one line and one function per format.

A function takes a `Fabric` and returns the content of a file. It leaves out what the format cannot express,
which its docstring or module lists, and raises `InvalidValue` for names or networks that the format cannot
express. ``almanac ingest`` reads every format back but those for Kubernetes.
"""

from __future__ import annotations

from registry.catalog import Catalog, Entry
from registry.model import Fabric

FORMATS = Catalog(
    "fabric format",
    (
        Entry(name=name, target=f"registry.exports.{target}", about=about)
        for name, target, about in (
            ("node-link", "graphs:write_node_link", "node-link JSON of networkx and D3"),
            ("graphml", "graphs:write_graphml", "GraphML of networkx, Gephi, yEd and igraph"),
            ("csv", "graphs:write_csv", "links as CSV, one row per cable and direction"),
            ("libtopomap", "graphs:write_libtopomap", "LibTopoMap's weighted map"),
            ("slurm-topology", "trees:write_tree", "Slurm's topology.conf for topology/tree"),
            ("slurm-block", "trees:write_block", "Slurm's topology.conf for topology/block"),
            ("slurm-topology-yaml", "trees:write_yaml", "Slurm's topology.yaml (25.05 and later)"),
            ("kubernetes-labels", "trees:write_labels", "kubectl commands that label the nodes"),
            ("kueue-topology", "trees:write_kueue", "Kubernetes: Kueue's Topology of these labels"),
            ("volcano-hypernodes", "trees:write_volcano", "Kubernetes: Volcano's HyperNodes"),
        )
    ),
)
"""All formats."""


def write(format: str, fabric: Fabric) -> str:
    """Return a fabric as the content of a file.

    Args:
        format: A name in `FORMATS`.
        fabric: The fabric; its forwarding tables are left out.

    Raises:
        UnknownName: There is no such format.
        InvalidValue: The format cannot express a name, or a network of this kind.
    """
    return str(FORMATS.find(format).load()(fabric))
