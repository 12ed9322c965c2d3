"""Slurm's tree as ``scontrol show topology`` prints it: `slurm_topology`'s words with levels and all hosts.

A higher switch's line names the hosts of all leaves below it; those are left to the leaves. The output
for one node (``scontrol show topology NODE``) lists only the switches above it, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingest.formats.fabrics import slurm_topology
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile


def recognise(head: str, path: str) -> bool:
    """Whether a line has a switch's name, level and link speed in the order of the command."""
    return slurm_topology.printed(head)


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The fabric of one output.

    Raises
    ------
    InputError
        What `ingest.formats.fabrics.slurm_topology.parse` refuses; a switch without a line of its own.
    """
    return slurm_topology.parse(files, options)
