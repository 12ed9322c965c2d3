"""The formats that can be read: one line a format, one file each.

A format is recognised by its content, never by a file's name. Its module is imported when it is first
needed and offers two functions, see `Parser`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile, SourceGroup
from registry.errors import InputError, UnknownFormat, UnknownName


class Parser(Protocol):
    """What the module of a format offers."""

    def recognise(self, head: str, path: str) -> bool:
        """Whether a file that begins like this is of the format; must never raise.

        Parameters
        ----------
        head : str
            First 64 KiB of the decompressed content, undecodable bytes replaced.
        path : str
            For formats whose file names carry meaning; the decision must rest on the content.
        """

    def parse(self, files: Sequence[SourceFile], options: Options) -> Parsed:
        """Read the files of one source; a format that is not grouped gets exactly one.

        Raises
        ------
        InputError
            And nothing else, whatever the bytes are.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One line of the catalog.

    Attributes
    ----------
    name : str
        What ``--format`` takes.
    kind : str
        ``fabric``, ``tables``, ``counters``, ``intended``, ``layouts``, ``profile``, ``jobs`` or
        ``placement``.
    module : str
        Module with the functions of `Parser`.
    evidence : str
        ``real`` (seen from the tool itself), ``public`` (public samples) or ``own``.
    about : str
        One line for the list of known formats.
    grouped : bool
        Whether several files make one source.
    streamed : bool
        Whether it reads large files piece by piece; others get them in memory.
    """

    name: str
    kind: str
    module: str
    evidence: str
    about: str
    grouped: bool = False
    streamed: bool = False

    def parser(self) -> Parser:
        """The module, imported."""
        return cast(Parser, importlib.import_module(self.module))


FORMATS: tuple[Format, ...] = (
    Format(
        name="ibnetdiscover",
        kind="fabric",
        module="ingest.formats.fabrics.ibnetdiscover",
        evidence="real",
        about="InfiniBand fabric scan: the text that ibnetdiscover prints",
    ),
    Format(
        name="ibnetdiscover-ports",
        kind="fabric",
        module="ingest.formats.fabrics.ibnetdiscover_ports",
        evidence="real",
        about="InfiniBand ports report: what `ibnetdiscover -p` prints",
    ),
    Format(
        name="ibnetdiscover-list",
        kind="fabric",
        module="ingest.formats.fabrics.ibnetdiscover_list",
        evidence="real",
        about="InfiniBand nodes without links: `ibnetdiscover -l`, `ibhosts`, `ibswitches`; never alone",
    ),
    Format(
        name="iblinkinfo",
        kind="fabric",
        module="ingest.formats.fabrics.iblinkinfo",
        evidence="real",
        about="InfiniBand links and down ports: what `iblinkinfo` prints, in blocks or with -l",
    ),
    Format(
        name="opensm-subnet",
        kind="fabric",
        module="ingest.formats.fabrics.opensm_subnet",
        evidence="real",
        about="InfiniBand fabric as its subnet manager sees it: opensm-subnet.lst",
    ),
    Format(
        name="ibdiagnet-db",
        kind="fabric",
        module="ingest.formats.fabrics.ibdiagnet_db",
        evidence="public",
        about="InfiniBand fabric: ibdiagnet2.db_csv",
    ),
    Format(
        name="ibdiagnet-net",
        kind="fabric",
        module="ingest.formats.fabrics.ibdiagnet_net",
        evidence="public",
        about="InfiniBand fabric: ibdiagnet2.net_dump",
    ),
    Format(
        name="ufm-links",
        kind="fabric",
        module="ingest.formats.fabrics.ufm_links",
        evidence="public",
        about="InfiniBand links: JSON of UFM's /ufmRest/resources/links",
    ),
    Format(
        name="libtopomap",
        kind="fabric",
        module="ingest.formats.fabrics.libtopomap",
        evidence="public",
        about="LibTopoMap's map file, weighted or not",
    ),
    Format(
        name="slurm-topology",
        kind="fabric",
        module="ingest.formats.fabrics.slurm_topology",
        evidence="real",
        about="network as Slurm schedules by it: topology.conf with switches or blocks",
        grouped=True,
    ),
    Format(
        name="slurm-show-topology",
        kind="fabric",
        module="ingest.formats.fabrics.slurm_show_topology",
        evidence="real",
        about="network as Slurm schedules by it: what `scontrol show topology` prints",
    ),
    Format(
        name="slurm-topology-yaml",
        kind="fabric",
        module="ingest.formats.fabrics.slurm_topology_yaml",
        evidence="public",
        about="network as Slurm schedules by it: topology.yaml of 25.05 and later",
    ),
    Format(
        name="topograph-labels",
        kind="fabric",
        module="ingest.formats.fabrics.topograph_labels",
        evidence="public",
        about="tree of switches: nodes of Kubernetes with topograph's labels, JSON or YAML",
    ),
    Format(
        name="topograph-model",
        kind="fabric",
        module="ingest.formats.fabrics.topograph_model",
        evidence="public",
        about="tree of switches: topograph's model in YAML",
    ),
    Format(
        name="ibtopo",
        kind="fabric",
        module="ingest.formats.fabrics.ibtopo",
        evidence="public",
        about="tree of switches: LLNL's ibtopo, a host and its way down a line",
    ),
    Format(
        name="lldp",
        kind="fabric",
        module="ingest.formats.fabrics.lldp",
        evidence="real",
        about="Ethernet fabric: `lldpcli -f json show neighbors details` (or json0) of many devices",
        grouped=True,
    ),
    Format(
        name="slingshot",
        kind="fabric",
        module="ingest.formats.fabrics.slingshot",
        evidence="public",
        about="Slingshot fabric: fabric_template.json, STT's table `show fabric`, or both",
        grouped=True,
    ),
    Format(
        name="opareport",
        kind="fabric",
        module="ingest.formats.fabrics.opareport",
        evidence="public",
        about="Omni-Path fabric: XML of `opareport -o topology`",
    ),
    Format(
        name="netloc",
        kind="fabric",
        module="ingest.formats.fabrics.netloc",
        evidence="public",
        about="network with its routes: netloc's .ndat files of hwloc 1 and 2",
        grouped=True,
    ),
    Format(
        name="cray",
        kind="fabric",
        module="ingest.formats.fabrics.cray",
        evidence="public",
        about="Cray XT, XE or XC: xtdb2proc, perhaps with xtprocadmin",
        grouped=True,
    ),
    Format(
        name="bluegene-p",
        kind="fabric",
        module="ingest.formats.fabrics.bluegene",
        evidence="own",
        about="BlueGene/P partition: sizes, torus flags and a row of coordinates a rank",
    ),
    Format(
        name="myrinet-pm",
        kind="fabric",
        module="ingest.formats.fabrics.myrinet_pm",
        evidence="public",
        about="Myrinet: configuration of SCore's PM-II",
    ),
    Format(
        name="graphml",
        kind="fabric",
        module="ingest.formats.fabrics.graphml",
        evidence="real",
        about="graph of a fabric: GraphML",
    ),
    Format(
        name="node-link",
        kind="fabric",
        module="ingest.formats.fabrics.node_link",
        evidence="real",
        about="graph of a fabric: node-link JSON of networkx or D3",
    ),
    Format(
        name="links-csv",
        kind="fabric",
        module="ingest.formats.fabrics.links_csv",
        evidence="own",
        about="fabric: CSV with the columns source,target and perhaps capacity, ports, GUIDs, kinds",
    ),
    Format(
        name="opensm-lfts",
        kind="tables",
        module="ingest.formats.routes.opensm_lfts",
        evidence="real",
        about="InfiniBand forwarding tables: opensm-lfts.dump of the subnet manager",
        streamed=True,
    ),
    Format(
        name="dump-fts",
        kind="tables",
        module="ingest.formats.routes.dump_fts",
        evidence="real",
        about="InfiniBand forwarding tables: what dump_fts prints, or ibroute switch by switch",
        grouped=True,
        streamed=True,
    ),
    Format(
        name="fdbs",
        kind="tables",
        module="ingest.formats.routes.fdbs",
        evidence="real",
        about="InfiniBand forwarding tables: opensm.fdbs, or the .fdbs of ibdiagnet",
        streamed=True,
    ),
    Format(
        name="ibqueryerrors",
        kind="counters",
        module="ingest.formats.counters.ibqueryerrors",
        evidence="real",
        about="port counters: what ibqueryerrors prints, with --counters or with --data",
    ),
    Format(
        name="perfquery",
        kind="counters",
        module="ingest.formats.counters.perfquery",
        evidence="real",
        about="port counters: what perfquery prints, with or without -x",
        grouped=True,
    ),
    Format(
        name="counters-csv",
        kind="counters",
        module="ingest.formats.counters.counters_csv",
        evidence="own",
        about="port counters of any collector: CSV with the columns guid,port and counters",
    ),
    Format(
        name="ndt",
        kind="intended",
        module="ingest.formats.fabrics.ndt",
        evidence="public",
        about="intended wiring: an NDT file, a line a cable",
    ),
    Format(
        name="hwloc-xml",
        kind="layouts",
        module="ingest.formats.hosts.hwloc_xml",
        evidence="real",
        about="inside of a host: what `lstopo --of xml` prints, joined by the GUIDs of its adapters",
    ),
    Format(
        name="openmpi-monitoring",
        kind="profile",
        module="ingest.formats.profiles.openmpi_monitoring",
        evidence="real",
        about="communication profile: the .prof files of Open MPI's monitoring, a folder or a tar archive",
        grouped=True,
    ),
    Format(
        name="edge-csv",
        kind="profile",
        module="ingest.formats.profiles.edge_csv",
        evidence="own",
        about="communication profile: CSV with the columns src,dst,bytes and perhaps messages,kind",
    ),
    Format(
        name="trace-csv",
        kind="profile",
        module="ingest.formats.profiles.trace_csv",
        evidence="own",
        about="every message of a run, and its profile: CSV with the columns t_us,src,dst,bytes, perhaps tag",
    ),
    Format(
        name="dense-csv",
        kind="profile",
        module="ingest.formats.profiles.dense_csv",
        evidence="real",
        about="communication profile: a square matrix of bytes as rows of numbers, row r what rank r sends",
    ),
    Format(
        name="npz",
        kind="profile",
        module="ingest.formats.profiles.npz",
        evidence="real",
        about="communication profile: NumPy's .npz or .npy with edges, a dense matrix or SciPy's sparse one",
    ),
    Format(
        name="matrix-market",
        kind="profile",
        module="ingest.formats.profiles.matrix_market",
        evidence="real",
        about="communication profile: Matrix Market file of bytes, or with --parts the matrix of a solver",
    ),
    Format(
        name="metis-graph",
        kind="profile",
        module="ingest.formats.profiles.metis_graph",
        evidence="real",
        about="communication profile: graph in the format of METIS and Chaco",
    ),
    Format(
        name="otf2",
        kind="profile",
        module="ingest.formats.profiles.otf2_archive",
        evidence="real",
        about="communication profile: OTF2 archive (Score-P, TAU), its anchor, folder or tar archive",
        grouped=True,
    ),
    Format(
        name="dumpi2ascii",
        kind="profile",
        module="ingest.formats.profiles.dumpi_text",
        evidence="real",
        about="communication profile: DUMPI traces of all ranks as dumpi2ascii prints them",
        grouped=True,
    ),
    Format(
        name="pytorch-trace",
        kind="profile",
        module="ingest.formats.profiles.pytorch_trace",
        evidence="public",
        about="communication profile: PyTorch execution traces of all ranks, collectives expanded",
        grouped=True,
    ),
    Format(
        name="ai-layout",
        kind="profile",
        module="ingest.formats.profiles.ai_layout",
        evidence="own",
        about="communication profile: declared layout of AI training in TOML",
    ),
    Format(
        name="nccl-graph",
        kind="profile",
        module="ingest.formats.profiles.nccl_graph",
        evidence="public",
        about="communication profile: rings and trees of one node from NCCL_GRAPH_DUMP_FILE",
    ),
    Format(
        name="nccl-log",
        kind="profile",
        module="ingest.formats.profiles.nccl_log",
        evidence="public",
        about="communication profile: rings and trees over all nodes from what NCCL_DEBUG=INFO prints",
    ),
    Format(
        name="mpip",
        kind="profile",
        module="ingest.formats.profiles.mpip_text",
        evidence="real",
        about="mpiP's report: refused, it tells no pairs of ranks",
    ),
    Format(
        name="darshan",
        kind="profile",
        module="ingest.formats.profiles.darshan_log",
        evidence="public",
        about="Darshan's log: refused, it tells of files, not of messages",
    ),
    Format(
        name="slurm-scontrol",
        kind="jobs",
        module="ingest.formats.jobs.slurm_scontrol",
        evidence="real",
        about="jobs: what `scontrol show jobs -d` prints",
    ),
    Format(
        name="slurm-steps",
        kind="jobs",
        module="ingest.formats.jobs.slurm_steps",
        evidence="real",
        about="ranks and distribution of running jobs, without hosts: what `scontrol show steps` prints",
    ),
    Format(
        name="slurm-sacct",
        kind="jobs",
        module="ingest.formats.jobs.slurm_sacct",
        evidence="real",
        about="jobs: what `sacct -P` prints, with its line of column names",
    ),
    Format(
        name="slurm-squeue",
        kind="jobs",
        module="ingest.formats.jobs.slurm_squeue",
        evidence="real",
        about="jobs: what `squeue` prints, as a table or with `|` between columns",
    ),
    Format(
        name="flux-r",
        kind="jobs",
        module="ingest.formats.jobs.flux_r",
        evidence="public",
        about="job: the resource set (R, version 1) of a Flux job, in a file named after it",
    ),
    Format(
        name="slurm-json",
        kind="jobs",
        module="ingest.formats.jobs.slurm_json",
        evidence="real",
        about="jobs: what `squeue --json`, `sacct --json` or `scontrol show jobs --json` prints",
        streamed=True,
    ),
    Format(
        name="openmpi-rankfile",
        kind="placement",
        module="ingest.formats.placements.rankfile",
        evidence="real",
        about="placement: Open MPI's rankfile",
    ),
    Format(
        name="placement-csv",
        kind="placement",
        module="ingest.formats.placements.placement_csv",
        evidence="own",
        about="placement: CSV with the columns rank,host",
    ),
    Format(
        name="hostfile",
        kind="placement",
        module="ingest.formats.placements.hostfile",
        evidence="real",
        about="placement: a launcher's host file (Open MPI, Slurm, MPICH), hosts in the order of ranks",
    ),
    Format(
        name="mpich-rank-order",
        kind="placement",
        module="ingest.formats.placements.mpich_rank_order",
        evidence="public",
        about="placement: MPICH_RANK_ORDER of HPE Cray MPICH; --hosts tells whose slots",
    ),
    Format(
        name="flux-taskmap",
        kind="placement",
        module="ingest.formats.placements.flux_taskmap",
        evidence="public",
        about="placement: a task map of Flux (RFC 34); --hosts tells its nodes",
    ),
    Format(
        name="openmpi-map",
        kind="placement",
        module="ingest.formats.placements.openmpi_map",
        evidence="real",
        about="placement: what `mpirun --display-map` or `--report-bindings` of Open MPI prints",
    ),
    Format(
        name="intel-mpi-map",
        kind="placement",
        module="ingest.formats.placements.intel_mpi_map",
        evidence="public",
        about="placement: what Intel MPI prints with I_MPI_DEBUG=4",
    ),
    Format(
        name="rank-list",
        kind="placement",
        module="ingest.formats.placements.rank_list",
        evidence="real",
        about="placement: a job's own report, a rank and its host a line, labelled by launchers or not",
    ),
)


def find(name: str, formats: Sequence[Format] | None = None) -> Format:
    """The format with this name.

    Raises
    ------
    UnknownName
    """
    known = FORMATS if formats is None else formats
    for candidate in known:
        if candidate.name == name:
            return candidate
    raise UnknownName("format", name, [candidate.name for candidate in known])


def recognise(group: SourceGroup, formats: Sequence[Format] | None = None) -> Format:
    """The one format that claims every file of the group.

    Raises
    ------
    UnknownFormat
        None does; names the file.
    InputError
        The file is empty, or several formats claim it.
    """
    known = FORMATS if formats is None else formats
    fitting = list(known)
    for file in group.files:
        if not file.data or file.data.isspace():
            raise InputError("the file is empty", path=file.path)
        head = file.head()
        fitting = [format for format in fitting if format.parser().recognise(head, file.path)]
        if not fitting:
            kind = "the file is binary and" if b"\0" in file.data else "the content is"
            raise UnknownFormat(
                file.path, [format.name for format in known], f"{kind} of no format known here"
            )
    if len(group.files) > 1:
        fitting = [format for format in fitting if format.grouped]
    if not fitting:
        raise UnknownFormat(group.path, [format.name for format in known if format.grouped])
    if len(fitting) > 1:
        names = " and ".join(format.name for format in fitting)
        raise InputError(f"could be {names}: say which with --format", path=group.path)
    return fitting[0]
