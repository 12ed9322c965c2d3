"""The formats in which a fabric can be written: one line and one file per format.

The function ``write(fabric) -> str`` of a format leaves out what the format cannot express; its module lists
that. ``almanac ingest`` reads every format back.
"""

from __future__ import annotations

from registry.catalog import Catalog, Entry
from registry.model import Fabric

FORMATS = Catalog(
    "fabric format",
    (
        Entry(
            name="node-link",
            target="registry.exports.node_link:write",
            about="node-link JSON of networkx and D3",
        ),
        Entry(
            name="graphml",
            target="registry.exports.graphml:write",
            about="GraphML of networkx, Gephi, yEd and igraph",
        ),
        Entry(
            name="csv",
            target="registry.exports.links_csv:write",
            about="links as CSV, one row per cable and direction",
        ),
        Entry(
            name="libtopomap",
            target="registry.exports.libtopomap:write",
            about="LibTopoMap's weighted map",
        ),
        Entry(
            name="slurm-topology",
            target="registry.exports.slurm_tree:write",
            about="Slurm's topology.conf for topology/tree",
        ),
        Entry(
            name="slurm-block",
            target="registry.exports.slurm_block:write",
            about="Slurm's topology.conf for topology/block",
        ),
        Entry(
            name="slurm-topology-yaml",
            target="registry.exports.slurm_yaml:write",
            about="Slurm's topology.yaml (25.05 and later)",
        ),
    ),
    list_all=True,
)
"""All formats."""


def write(format: str, fabric: Fabric) -> str:
    """Return a fabric as the content of a file.

    Parameters
    ----------
    format : str
        A name in `FORMATS`.
    fabric : Fabric
        The fabric; its forwarding tables are left out.

    Raises
    ------
    UnknownName
        There is no such format.
    InvalidValue
        The format cannot express a name, or a network of this kind.
    """
    return str(FORMATS.find(format).load()(fabric))
