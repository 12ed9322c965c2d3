"""Hosts of each leaf switch or block of Slurm's topology.conf or topology.yaml, in the order of the file."""

from __future__ import annotations

from pathlib import Path

from ingest.formats.fabrics.slurm_topology import SLURM_TOPOLOGY, branches_of
from ingest.formats.fabrics.slurm_topology_yaml import SLURM_TOPOLOGY_YAML
from ingest.formats.fabrics.slurm_topology_yaml import branches_of as branches_of_yaml
from ingest.options import Options
from ingest.reading.source import read_paths
from registry.errors import InputError

_HEAD = 1 << 16


def read_leaves(path: str | Path) -> tuple[tuple[str, ...], ...]:
    """Return the hosts of each leaf switch or block of a file, which Slurm of 26.05 visits in this order.

    Raises
    ------
    InputError
        The file cannot be read, or is no topology of switches or blocks.
    """
    files = [file for group in read_paths([path]) for file in group.files]
    head = files[0].data[:_HEAD].decode("utf-8", "replace") if len(files) == 1 else ""
    for format, read in ((SLURM_TOPOLOGY, branches_of), (SLURM_TOPOLOGY_YAML, branches_of_yaml)):
        if format.recognise(head, str(path)):
            branches, _ = read(files, Options())
            return tuple(branch.hosts for branch in branches.values() if branch.hosts)
    raise InputError("is no topology.conf or topology.yaml with switches or blocks", path=str(path))
