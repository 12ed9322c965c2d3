"""Hosts of each leaf switch or block of Slurm's topology.conf or topology.yaml, in the order of the file."""

from __future__ import annotations

from pathlib import Path

from ingest.formats.fabrics import slurm_topology, slurm_topology_yaml
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
    for module in (slurm_topology, slurm_topology_yaml):
        if module.recognise(head, str(path)):
            branches, _ = module.branches_of(files, Options())
            return tuple(branch.hosts for branch in branches.values() if branch.hosts)
    raise InputError("is no topology.conf or topology.yaml with switches or blocks", path=str(path))
