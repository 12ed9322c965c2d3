"""Hosts and slots of the job in which this process runs, from the environment of a scheduler or launcher.

The first of these that is set is used:

1. Slurm (``salloc``, ``sbatch``): ``SLURM_JOB_NODELIST`` (or ``SLURM_NODELIST``) and
   ``SLURM_TASKS_PER_NODE``, of the job or of the step, else ``SLURM_JOB_CPUS_PER_NODE``;
   also ``SLURM_NTASKS``, ``SLURM_JOB_ID`` and ``SLURM_CLUSTER_NAME``.
2. Open MPI: the host file that ``PRTE_MCA_prte_default_hostfile`` (5), ``OMPI_MCA_orte_default_hostfile``
   (4) or ``OMPI_MCA_rmaps_seq_file`` names.
3. PBS: ``PBS_NODEFILE``, with a line per slot; ``PBS_JOBID``.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from almanac.options import read_lines
from registry.errors import ConfigError, InputError

HOST_FILES = ("PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_rmaps_seq_file")

_LINE = re.compile(r"(?:([^\s:=]+)(?::([1-9]\d*)|\s+slots\s*=\s*([1-9]\d*).*)?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnvironment:
    """Hosts and slots of the present job."""

    hosts: tuple[str, ...]
    """Hosts in the order in which the launcher fills them."""
    slots: tuple[int, ...]
    """Ranks per host."""
    ranks: int | None = None
    """Ranks of the job, or None if the environment does not have them."""
    job: str | None = None
    cluster: str | None = None
    source: str = ""
    """Variables that were read."""


def read_environment(environment: Mapping[str, str] = os.environ) -> JobEnvironment:
    """Return the hosts and slots of the job in which this process runs.

    Raises:
        ConfigError: No variable is set, or two of them contradict each other.
        InputError: A list or file of hosts cannot be read.
    """
    if environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST"):
        return _slurm(environment)
    for variable in HOST_FILES:
        if environment.get(variable):
            return read_host_file(variable, environment[variable])
    if environment.get("PBS_NODEFILE"):
        return read_host_file("PBS_NODEFILE", environment["PBS_NODEFILE"], environment.get("PBS_JOBID"))
    raise ConfigError(
        "--here",
        "this is not inside a job: neither SLURM_JOB_NODELIST nor PBS_NODEFILE nor a host file of Open MPI "
        f"({', '.join(HOST_FILES)}) is set; name hosts and slots instead",
    )


def _slurm(environment: Mapping[str, str]) -> JobEnvironment:
    """Return the hosts and slots of a Slurm job or step."""
    from ingest.formats.hostlists import expand
    from ingest.formats.slurm_fields import Where, parse_tasks_per_node

    nodes = "SLURM_JOB_NODELIST" if environment.get("SLURM_JOB_NODELIST") else "SLURM_NODELIST"
    hosts = expand(environment[nodes], path=nodes)
    per_node = next(
        (n for n in ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE") if environment.get(n)), None
    )
    if per_node is None:
        raise ConfigError(
            "--here", f"{nodes} is set, but neither SLURM_TASKS_PER_NODE nor SLURM_JOB_CPUS_PER_NODE"
        )
    slots = parse_tasks_per_node(environment[per_node], len(hosts), Where(per_node))
    if len(slots) != len(hosts):
        raise ConfigError("--here", f"{per_node} has {len(slots)} hosts, {nodes} has {len(hosts)}")
    ranks = environment.get("SLURM_NTASKS", "")
    return JobEnvironment(
        hosts=hosts,
        slots=slots,
        ranks=int(ranks) if ranks.isdigit() else None,
        job=environment.get("SLURM_JOB_ID"),
        cluster=environment.get("SLURM_CLUSTER_NAME"),
        source=f"{nodes}, {per_node}",
    )


def read_host_file(variable: str, path: str, job: str | None = None) -> JobEnvironment:
    """Return the hosts of a file: ``node slots=4``, ``node:4``, or a line per slot; raises `InputError`."""
    counts: Counter[str] = Counter()
    for number, line in enumerate(read_lines(path, f"the host file of {variable}"), start=1):
        text = line.partition("#")[0].strip()
        found = _LINE.fullmatch(text)
        if found is None:
            raise InputError("is not a host with its slots", path=path, line=number, text=line)
        if text:
            counts[found[1]] += int(found[2] or found[3] or 1)
    if not counts:
        raise InputError(f"the host file of {variable} has no hosts", path=path)
    return JobEnvironment(
        hosts=tuple(counts), slots=tuple(counts.values()), job=job, source=f"{variable}={path}"
    )
