"""Slurm's tree of ``scontrol show topology``: words of `slurm_topology` with levels and all hosts.

The line of a higher switch names the hosts of all leaves below it; they are assigned to the leaves. The
output for one node (``scontrol show topology NODE``) lists only the switches above it, and is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingest.formats.fabrics import slurm_topology
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile


def recognise(head: str, path: str) -> bool:
    """Return True if a line has a switch's name, level and link speed in the order of the command."""
    return slurm_topology.printed(head)


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one output.

    Raises
    ------
    InputError
        As `ingest.formats.fabrics.slurm_topology.parse`; or a switch without its own line.
    """
    return slurm_topology.parse(files, options)
