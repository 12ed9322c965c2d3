"""The file formats that can be read: the name of each, and the place of its `Format` below `ingest.formats`.

A format is recognised by the content of a file, never by its name. Its module is imported on first use.
"""

from __future__ import annotations

import warnings

from ingest.parsed import PLUG_IN, Format
from ingest.reading.source import SourceFile, SourceGroup
from ingest.reading.unread import explain
from registry.catalog import Catalog, PlugIns
from registry.errors import InputError, UnknownFormat

_PLACES = {
    "ibnetdiscover": "fabrics.ibnetdiscover:IBNETDISCOVER",
    "ibnetdiscover-ports": "fabrics.ibnetdiscover:IBNETDISCOVER_PORTS",
    "ibnetdiscover-list": "fabrics.ibnetdiscover:IBNETDISCOVER_LIST",
    "iblinkinfo": "fabrics.iblinkinfo:IBLINKINFO",
    "opensm-subnet": "fabrics.ibnetdiscover:OPENSM_SUBNET",
    "ibdiagnet-db": "fabrics.ibdiagnet:IBDIAGNET_DB",
    "ibdiagnet-net": "fabrics.ibdiagnet:IBDIAGNET_NET",
    "ufm-links": "fabrics.iblinkinfo:UFM_LINKS",
    "libtopomap": "fabrics.legacy:LIBTOPOMAP",
    "slurm-topology": "fabrics.slurm_topology:SLURM_TOPOLOGY",
    "slurm-show-topology": "fabrics.slurm_topology:SLURM_SHOW_TOPOLOGY",
    "slurm-topology-yaml": "fabrics.slurm_topology:SLURM_TOPOLOGY_YAML",
    "topograph-labels": "fabrics.trees:TOPOGRAPH_LABELS",
    "topograph-model": "fabrics.trees:TOPOGRAPH_MODEL",
    "ibtopo": "fabrics.trees:IBTOPO",
    "lldp": "fabrics.lldp:LLDP",
    "slingshot": "fabrics.slingshot:SLINGSHOT",
    "opareport": "fabrics.opareport:OPAREPORT",
    "netloc": "fabrics.netloc:NETLOC",
    "cray": "fabrics.slingshot:CRAY",
    "bluegene-p": "fabrics.legacy:BLUEGENE_P",
    "myrinet-pm": "fabrics.legacy:MYRINET_PM",
    "graphml": "fabrics.graphs:GRAPHML",
    "node-link": "fabrics.graphs:NODE_LINK",
    "links-csv": "fabrics.graphs:LINKS_CSV",
    "opensm-lfts": "routes:OPENSM_LFTS",
    "dump-fts": "routes:DUMP_FTS",
    "fdbs": "routes:FDBS",
    "ibqueryerrors": "counters:IBQUERYERRORS",
    "perfquery": "counters:PERFQUERY",
    "counters-csv": "counters:COUNTERS_CSV",
    "ndt": "fabrics.ndt:NDT",
    "hwloc-xml": "hwloc_xml:HWLOC_XML",
    "openmpi-monitoring": "profiles.openmpi_monitoring:OPENMPI_MONITORING",
    "edge-csv": "profiles.edges:EDGE_CSV",
    "trace-csv": "profiles.edges:TRACE_CSV",
    "dense-csv": "profiles.matrices:DENSE_CSV",
    "npz": "profiles.npz:NPZ",
    "matrix-market": "profiles.matrices:MATRIX_MARKET",
    "metis-graph": "profiles.matrices:METIS_GRAPH",
    "edge-list": "profiles.edges:EDGE_LIST",
    "otf2": "profiles.otf2:OTF2",
    "dumpi2ascii": "profiles.dumpi2ascii:DUMPI2ASCII",
    "pytorch-trace": "profiles.pytorch_trace:PYTORCH_TRACE",
    "ai-layout": "profiles.ai_layout:AI_LAYOUT",
    "nccl-graph": "profiles.nccl:NCCL_GRAPH",
    "nccl-log": "profiles.nccl:NCCL_LOG",
    "mpip": "profiles.otf2:MPIP",
    "darshan": "profiles.otf2:DARSHAN",
    "slurm-scontrol": "slurm_scontrol:SLURM_SCONTROL",
    "slurm-steps": "slurm_scontrol:SLURM_STEPS",
    "slurm-sacct": "slurm_tables:SLURM_SACCT",
    "slurm-squeue": "slurm_tables:SLURM_SQUEUE",
    "flux-r": "flux:FLUX_R",
    "slurm-json": "slurm_json:SLURM_JSON",
    "openmpi-rankfile": "placements:OPENMPI_RANKFILE",
    "placement-csv": "placements:PLACEMENT_CSV",
    "hostfile": "placements:HOSTFILE",
    "mpich-rank-order": "placements:MPICH_RANK_ORDER",
    "flux-taskmap": "flux:FLUX_TASKMAP",
    "openmpi-map": "placements:OPENMPI_MAP",
    "intel-mpi-map": "placements:INTEL_MPI_MAP",
    "rank-list": "placements:RANK_LIST",
}
FORMATS = Catalog(
    "format",
    {name: f"ingest.formats.{place}" for name, place in _PLACES.items()},
    PlugIns(
        group="formats", entry=Format, needs=("recognise", "parse", "kind"), values={"evidence": PLUG_IN}
    ),
)
"""All formats."""


def recognise(group: SourceGroup, formats: Catalog[Format] = FORMATS) -> Format:
    """Return the one format that recognises every file of the group.

    Raises:
        UnknownFormat: No format recognises a file.
        InputError: A file is empty, or several formats recognise it.
    """
    fitting = list(formats)
    for file in group.files:
        if not file.data or file.data.isspace():
            raise InputError("the file is empty", path=file.path)
        head = file.head()
        fitting = [format for format in fitting if _recognises(format, head, file.path)]
        if not fitting:
            raise UnknownFormat(file.path, formats.names, _why(file, formats))
    if len(group.files) > 1:
        fitting = [format for format in fitting if format.grouped]
    if not fitting:
        raise UnknownFormat(group.path, [format.name for format in formats if format.grouped])
    if len(fitting) > 1:
        names = " and ".join(format.name for format in fitting)
        raise InputError(f"could be {names}: choose one with --format", path=group.path)
    return fitting[0]


def _why(file: SourceFile, formats: Catalog[Format]) -> str:
    """Return what a file is that no format recognises, and what to do."""
    what, todo = explain(file), ""
    if not what:
        what = (
            "the file is binary and" if b"\0" in file.data else "the content is"
        ) + " of no format known here"
        todo = "; leave the file out, or name its format with --format (docs/reference/formats.md lists them)"
    return what + "".join(f"; the format {one.name} of {one.package} failed" for one in formats.broken) + todo


def _recognises(format: Format, head: str, path: str) -> bool:
    """Return True if a format recognises a file; a plug-in that fails does not, with a warning."""
    try:
        return format.recognise(head, path)
    except Exception as error:
        if not format.package:
            raise
        reason = f"{type(error).__name__}: {error}"
        warnings.warn(f"the format {format.name} of {format.package} failed: {reason}", stacklevel=2)
        return False
