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
from ingest.source import SourceFile, SourceGroup
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
        ``fabric``, ``tables``, ``profile``, ``jobs`` or ``placement``.
    module : str
        Module with the functions of `Parser`.
    evidence : str
        ``real`` (seen from the tool itself), ``public`` (public samples) or ``own``.
    about : str
        One line for the list of known formats.
    grouped : bool
        Whether several files make one source.
    """

    name: str
    kind: str
    module: str
    evidence: str
    about: str
    grouped: bool = False

    def parser(self) -> Parser:
        """The module, imported."""
        return cast(Parser, importlib.import_module(self.module))


FORMATS: tuple[Format, ...] = (
    Format(
        name="ibnetdiscover",
        kind="fabric",
        module="ingest.fabrics.ibnetdiscover",
        evidence="real",
        about="InfiniBand fabric scan: the text that ibnetdiscover prints",
    ),
    Format(
        name="libtopomap",
        kind="fabric",
        module="ingest.fabrics.libtopomap",
        evidence="public",
        about="LibTopoMap's map file, weighted or not",
    ),
    Format(
        name="opensm-lfts",
        kind="tables",
        module="ingest.routes.opensm_lfts",
        evidence="real",
        about="InfiniBand forwarding tables: opensm-lfts.dump of the subnet manager",
    ),
    Format(
        name="openmpi-monitoring",
        kind="profile",
        module="ingest.profiles.openmpi_monitoring",
        evidence="real",
        about="communication profile: the .prof files of Open MPI's monitoring, a folder or a tar archive",
        grouped=True,
    ),
    Format(
        name="edge-csv",
        kind="profile",
        module="ingest.profiles.edge_csv",
        evidence="own",
        about="communication profile: CSV with the columns src,dst,bytes and perhaps messages,kind",
    ),
    Format(
        name="slurm-scontrol",
        kind="jobs",
        module="ingest.jobs.slurm_scontrol",
        evidence="real",
        about="jobs: what `scontrol show jobs -d` prints",
    ),
    Format(
        name="slurm-sacct",
        kind="jobs",
        module="ingest.jobs.slurm_sacct",
        evidence="real",
        about="jobs: what `sacct -P` prints, with its line of column names",
    ),
    Format(
        name="slurm-json",
        kind="jobs",
        module="ingest.jobs.slurm_json",
        evidence="real",
        about="jobs: what `squeue --json`, `sacct --json` or `scontrol show jobs --json` prints",
    ),
    Format(
        name="openmpi-rankfile",
        kind="placement",
        module="ingest.placements.rankfile",
        evidence="real",
        about="placement: Open MPI's rankfile",
    ),
    Format(
        name="placement-csv",
        kind="placement",
        module="ingest.placements.placement_csv",
        evidence="own",
        about="placement: CSV with the columns rank,host",
    ),
    Format(
        name="hostfile",
        kind="placement",
        module="ingest.placements.hostfile",
        evidence="real",
        about="placement: a launcher's host file (Open MPI, Slurm, MPICH), hosts in the order of ranks",
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
