"""The file formats that can be read: the name of each, and the place of its `Format` below `ingest.formats`.

A format is recognised by the content of a file, never by its name. Its module is imported on first use.
"""

from __future__ import annotations

import warnings

from ingest.parsed import PLUG_IN, Format
from ingest.reading.source import SourceFile, SourceGroup
from ingest.unread import explain
from registry.catalog import Catalog, PlugIns
from registry.errors import InputError, UnknownFormat

_PLACES = {
    "ibnetdiscover": "fabrics.ibnetdiscover:IBNETDISCOVER",
    "ibnetdiscover-ports": "fabrics.infiniband_rows:IBNETDISCOVER_PORTS",
    "ibnetdiscover-list": "fabrics.infiniband_rows:IBNETDISCOVER_LIST",
    "iblinkinfo": "fabrics.iblinkinfo:IBLINKINFO",
    "opensm-subnet": "fabrics.infiniband_rows:OPENSM_SUBNET",
    "ibdiagnet-db": "fabrics.ibdiagnet_db:IBDIAGNET_DB",
    "ibdiagnet-net": "fabrics.ibdiagnet_net:IBDIAGNET_NET",
    "ufm-links": "fabrics.ufm_links:UFM_LINKS",
    "libtopomap": "fabrics.libtopomap:LIBTOPOMAP",
    "slurm-topology": "fabrics.slurm_topology:SLURM_TOPOLOGY",
    "slurm-show-topology": "fabrics.slurm_topology:SLURM_SHOW_TOPOLOGY",
    "slurm-topology-yaml": "fabrics.slurm_topology_yaml:SLURM_TOPOLOGY_YAML",
    "topograph-labels": "fabrics.topograph_labels:TOPOGRAPH_LABELS",
    "topograph-model": "fabrics.topograph_model:TOPOGRAPH_MODEL",
    "ibtopo": "fabrics.ibtopo:IBTOPO",
    "lldp": "fabrics.lldp:LLDP",
    "slingshot": "fabrics.slingshot:SLINGSHOT",
    "opareport": "fabrics.opareport:OPAREPORT",
    "netloc": "fabrics.netloc:NETLOC",
    "cray": "fabrics.cray:CRAY",
    "bluegene-p": "fabrics.bluegene_p:BLUEGENE_P",
    "myrinet-pm": "fabrics.myrinet_pm:MYRINET_PM",
    "graphml": "fabrics.graphs:GRAPHML",
    "node-link": "fabrics.graphs:NODE_LINK",
    "links-csv": "fabrics.links_csv:LINKS_CSV",
    "opensm-lfts": "routes.dialects:OPENSM_LFTS",
    "dump-fts": "routes.dialects:DUMP_FTS",
    "fdbs": "routes.dialects:FDBS",
    "ibqueryerrors": "counters.ibqueryerrors:IBQUERYERRORS",
    "perfquery": "counters.perfquery:PERFQUERY",
    "counters-csv": "counters.counters_csv:COUNTERS_CSV",
    "ndt": "fabrics.ndt:NDT",
    "hwloc-xml": "hosts.hwloc_xml:HWLOC_XML",
    "openmpi-monitoring": "profiles.openmpi_monitoring:OPENMPI_MONITORING",
    "edge-csv": "profiles.edge_csv:EDGE_CSV",
    "trace-csv": "profiles.trace_csv:TRACE_CSV",
    "dense-csv": "profiles.dense_csv:DENSE_CSV",
    "npz": "profiles.npz:NPZ",
    "matrix-market": "profiles.matrix_market:MATRIX_MARKET",
    "metis-graph": "profiles.metis_graph:METIS_GRAPH",
    "edge-list": "profiles.edge_list:EDGE_LIST",
    "otf2": "profiles.otf2:OTF2",
    "dumpi2ascii": "profiles.dumpi2ascii:DUMPI2ASCII",
    "pytorch-trace": "profiles.pytorch_trace:PYTORCH_TRACE",
    "ai-layout": "profiles.ai_layout:AI_LAYOUT",
    "nccl-graph": "profiles.nccl_graph:NCCL_GRAPH",
    "nccl-log": "profiles.nccl_log:NCCL_LOG",
    "mpip": "profiles.mpip:MPIP",
    "darshan": "profiles.darshan:DARSHAN",
    "slurm-scontrol": "jobs.slurm_scontrol:SLURM_SCONTROL",
    "slurm-steps": "jobs.slurm_steps:SLURM_STEPS",
    "slurm-sacct": "jobs.slurm_sacct:SLURM_SACCT",
    "slurm-squeue": "jobs.slurm_squeue:SLURM_SQUEUE",
    "flux-r": "jobs.flux_r:FLUX_R",
    "slurm-json": "jobs.slurm_json:SLURM_JSON",
    "openmpi-rankfile": "placements.openmpi_rankfile:OPENMPI_RANKFILE",
    "placement-csv": "placements.placement_csv:PLACEMENT_CSV",
    "hostfile": "placements.hostfile:HOSTFILE",
    "mpich-rank-order": "placements.mpich_rank_order:MPICH_RANK_ORDER",
    "flux-taskmap": "placements.flux_taskmap:FLUX_TASKMAP",
    "openmpi-map": "placements.openmpi_map:OPENMPI_MAP",
    "intel-mpi-map": "placements.intel_mpi_map:INTEL_MPI_MAP",
    "rank-list": "placements.rank_list:RANK_LIST",
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

    Raises
    ------
    UnknownFormat
        No format recognises a file.
    InputError
        A file is empty, or several formats recognise it.
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
