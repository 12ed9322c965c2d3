"""The file formats that can be read: one line per format.

A format is recognised by the content of a file, never by its name. Its parser, a module or an object with the
two functions of `Parser`, is imported when it is first needed. The docstrings of parsers describe the format
and what is special; parameters, result and errors are those of `Parser`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile, SourceGroup
from ingest.unread import explain
from registry.catalog import Catalog, Entry, PlugIns
from registry.errors import InputError, UnknownFormat


class Parser(Protocol):
    """Functions that every format has."""

    def recognise(self, head: str, path: str) -> bool:
        """Return True if a file that begins with `head` is of the format; never raises.

        Parameters
        ----------
        head : str
            First 64 KiB of the decompressed content, undecodable bytes replaced.
        path : str
            Path of the file, for formats whose file names carry meaning; the content must decide.
        """

    def parse(self, files: Sequence[SourceFile], options: Options) -> Parsed:
        """Return the data of the files of one source: several for a grouped format, otherwise one.

        Raises
        ------
        InputError
            The content is invalid: an unreadable line, a truncated file, something repeated or missing, or
            values that contradict each other. Names file, line, text and reason. No other exception is
            raised, whatever the bytes are.
        """


PLUG_IN = "plug-in"
"""Evidence of the formats of other packages."""
GROUPED, STREAMED = "grouped", "streamed"
"""Flags of a format: several files make one source; large files are read piece by piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Entry):
    """A format; its name is an argument of ``--format``, its target has the functions of `Parser`.

    Attributes
    ----------
    kind : str
        Kind of data: ``fabric``, ``tables``, ``counters``, ``intended``, ``layouts``, ``profile``, ``jobs``
        or ``placement``.
    evidence : str
        How well the format is tested: ``real`` (against output of the tool itself), ``public`` (against
        published samples or the tool's source), ``own`` (a format of this project) or ``plug-in``.
    grouped : bool
        True if several files make one source.
    streamed : bool
        True if the parser reads large files piece by piece; other formats get their files in memory.
    """

    kind: str
    evidence: str
    grouped: bool = False
    streamed: bool = False

    def parser(self) -> Parser:
        """Import and return the parser of the format."""
        return cast(Parser, self.load())


_SHARED = {
    "ibnetdiscover-ports": "infiniband_rows:PORTS",
    "ibnetdiscover-list": "infiniband_rows:NODES",
    "opensm-subnet": "infiniband_rows:SUBNET",
    "slurm-show-topology": "slurm_topology:PRINTED",
    "graphml": "graphs:GRAPHML",
    "node-link": "graphs:NODE_LINK",
    "opensm-lfts": "dialects:OPENSM_LFTS",
    "dump-fts": "dialects:DUMP_FTS",
    "fdbs": "dialects:FDBS",
}
"""Module and object of formats that share a module."""


def _formats(kind: str, package: str, *rows: tuple[str, ...]) -> Iterator[Format]:
    """Yield the formats of a kind from rows of name, evidence, description and flags.

    The module of a format is named after it, with ``_`` for ``-``, unless it is in `_SHARED`.
    """
    for name, evidence, about, *flags in rows:
        yield Format(
            name=name,
            kind=kind,
            target=f"{package}.{_SHARED.get(name, name.replace('-', '_'))}",
            evidence=evidence,
            about=about,
            grouped=GROUPED in flags,
            streamed=STREAMED in flags,
        )


_FORMATS = (
    *_formats(
        "fabric",
        "ingest.formats.fabrics",
        ("ibnetdiscover", "real", "InfiniBand fabric: output of `ibnetdiscover`"),
        ("ibnetdiscover-ports", "real", "InfiniBand ports report: output of `ibnetdiscover -p`"),
        (
            "ibnetdiscover-list",
            "real",
            "InfiniBand nodes: `ibnetdiscover -l`, `ibhosts`, `ibswitches`; no links",
        ),
        ("iblinkinfo", "real", "InfiniBand links and down ports: output of `iblinkinfo`, with or without -l"),
        ("opensm-subnet", "real", "InfiniBand fabric from the subnet manager: opensm-subnet.lst"),
        ("ibdiagnet-db", "public", "InfiniBand fabric: ibdiagnet2.db_csv"),
        ("ibdiagnet-net", "public", "InfiniBand fabric: ibdiagnet2.net_dump"),
        ("ufm-links", "public", "InfiniBand links: JSON of UFM's /ufmRest/resources/links"),
        ("libtopomap", "public", "map file of LibTopoMap, with or without weights"),
        ("slurm-topology", "real", "Slurm's network: topology.conf with switches or blocks", GROUPED),
        ("slurm-show-topology", "real", "Slurm's network: output of `scontrol show topology`"),
        ("slurm-topology-yaml", "public", "Slurm's network: topology.yaml (25.05 and later)"),
        (
            "topograph-labels",
            "public",
            "tree of switches: Kubernetes nodes labelled by topograph, JSON or YAML",
        ),
        ("topograph-model", "public", "tree of switches: topograph's model in YAML"),
        ("ibtopo", "public", "tree of switches: LLNL's ibtopo, one line per host with its path"),
        (
            "lldp",
            "real",
            "Ethernet fabric: `lldpcli -f json show neighbors details` of many devices",
            GROUPED,
        ),
        (
            "slingshot",
            "public",
            "Slingshot fabric: fabric_template.json, STT's `show fabric`, or both",
            GROUPED,
        ),
        ("opareport", "public", "Omni-Path fabric: XML of `opareport -o topology`"),
        ("netloc", "public", "network with its routes: .ndat files of netloc (hwloc 1 and 2)", GROUPED),
        ("cray", "public", "Cray XT, XE or XC: xtdb2proc, optionally with xtprocadmin", GROUPED),
        ("bluegene-p", "own", "BlueGene/P partition: sizes, torus flags and the coordinates of each rank"),
        ("myrinet-pm", "public", "Myrinet: configuration of SCore's PM-II"),
        ("graphml", "real", "graph of a fabric: GraphML"),
        ("node-link", "real", "graph of a fabric: node-link JSON of networkx or D3"),
        (
            "links-csv",
            "own",
            "fabric: CSV with columns source,target, optionally capacity, ports, GUIDs, kinds",
        ),
    ),
    *_formats(
        "tables",
        "ingest.formats.routes",
        ("opensm-lfts", "real", "forwarding tables: opensm-lfts.dump of OpenSM", STREAMED),
        (
            "dump-fts",
            "real",
            "forwarding tables: output of `dump_fts`, or of `ibroute` per switch",
            GROUPED,
            STREAMED,
        ),
        ("fdbs", "real", "forwarding tables: opensm.fdbs, or .fdbs of ibdiagnet", STREAMED),
    ),
    *_formats(
        "counters",
        "ingest.formats.counters",
        ("ibqueryerrors", "real", "port counters: output of `ibqueryerrors` with --counters or --data"),
        ("perfquery", "real", "port counters: output of `perfquery`, with or without -x", GROUPED),
        ("counters-csv", "own", "port counters of any collector: CSV with columns guid,port and counters"),
    ),
    *_formats(
        "intended",
        "ingest.formats.fabrics",
        ("ndt", "public", "intended wiring: NDT file, one line per cable"),
    ),
    *_formats(
        "layouts",
        "ingest.formats.hosts",
        ("hwloc-xml", "real", "layout of a host: `lstopo --of xml`, matched by the GUIDs of its adapters"),
    ),
    *_formats(
        "profile",
        "ingest.formats.profiles",
        (
            "openmpi-monitoring",
            "real",
            "profile: .prof files of Open MPI's monitoring, folder or tar archive",
            GROUPED,
        ),
        ("edge-csv", "own", "profile: CSV with columns src,dst,bytes and optionally messages,kind"),
        ("trace-csv", "own", "trace and its profile: CSV with columns t_us,src,dst,bytes, optionally tag"),
        ("dense-csv", "real", "profile: square matrix of bytes, row r is what rank r sends"),
        ("npz", "real", "profile: NumPy's .npz or .npy with edges, a dense matrix or SciPy's sparse one"),
        ("matrix-market", "real", "profile: Matrix Market file of bytes, or with --parts a solver's matrix"),
        ("metis-graph", "real", "profile: graph in the format of METIS and Chaco"),
        ("edge-list", "real", "profile: graph as a list of edges, two numbers and bytes on each line"),
        ("otf2", "real", "profile: OTF2 archive of Score-P or TAU: anchor file, folder or tar", GROUPED),
        ("dumpi2ascii", "real", "profile: DUMPI traces of all ranks, printed by `dumpi2ascii`", GROUPED),
        ("pytorch-trace", "public", "profile: PyTorch execution traces, collectives expanded", GROUPED),
        ("ai-layout", "own", "profile: declared layout of AI training in TOML"),
        ("nccl-graph", "public", "profile: rings and trees of one node from NCCL_GRAPH_DUMP_FILE"),
        ("nccl-log", "public", "profile: rings and trees over all nodes from the log of NCCL_DEBUG=INFO"),
        ("mpip", "real", "mpiP's report: rejected, it does not contain traffic between pairs of ranks"),
        ("darshan", "public", "Darshan's log: rejected, it records file accesses, not messages"),
    ),
    *_formats(
        "jobs",
        "ingest.formats.jobs",
        ("slurm-scontrol", "real", "jobs: output of `scontrol show jobs -d`"),
        ("slurm-steps", "real", "ranks and distribution of running jobs: output of `scontrol show steps`"),
        ("slurm-sacct", "real", "jobs: output of `sacct -P` with its header line"),
        ("slurm-squeue", "real", "jobs: output of `squeue`, as a table or with `|` between columns"),
        ("flux-r", "public", "job: resource set (R, version 1) of a Flux job, in a file named after the job"),
        (
            "slurm-json",
            "real",
            "jobs: `squeue --json`, `sacct --json` or `scontrol show jobs --json`",
            STREAMED,
        ),
    ),
    *_formats(
        "placement",
        "ingest.formats.placements",
        ("openmpi-rankfile", "real", "placement: Open MPI's rankfile"),
        ("placement-csv", "own", "placement: CSV with columns rank,host"),
        ("hostfile", "real", "placement: host file of Open MPI, Slurm or MPICH, hosts in the order of ranks"),
        ("mpich-rank-order", "public", "placement: MPICH_RANK_ORDER of HPE Cray MPICH; needs --hosts"),
        ("flux-taskmap", "public", "placement: task map of Flux (RFC 34); needs --hosts"),
        ("openmpi-map", "real", "placement: output of Open MPI's --display-map or --report-bindings"),
        ("intel-mpi-map", "public", "placement: output of Intel MPI with I_MPI_DEBUG=4"),
        ("rank-list", "real", "placement: one line per rank with its host, with or without launcher labels"),
    ),
)
_PLUG_INS = PlugIns(
    group="formats", entry=Format, needs=("recognise", "parse", "kind"), values={"evidence": PLUG_IN}
)
FORMATS = Catalog("format", _FORMATS, _PLUG_INS)
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
        return format.parser().recognise(head, path)
    except Exception as error:
        if not format.package:
            raise
        reason = f"{type(error).__name__}: {error}"
        warnings.warn(f"the format {format.name} of {format.package} failed: {reason}", stacklevel=2)
        return False
