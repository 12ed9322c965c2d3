"""The allocation that this process runs in, from the environment that a launcher or scheduler sets.

Read in this order; the first that is there counts:

1. Slurm (``salloc``, ``sbatch``): ``SLURM_JOB_NODELIST`` (or ``SLURM_NODELIST``) and
   ``SLURM_TASKS_PER_NODE``, of the job or of the step, else ``SLURM_JOB_CPUS_PER_NODE``;
   ``SLURM_NTASKS``, ``SLURM_JOB_ID`` and ``SLURM_CLUSTER_NAME`` for what they say.
2. Open MPI: the host file that ``PRTE_MCA_prte_default_hostfile`` (5), ``OMPI_MCA_orte_default_hostfile``
   (4) or ``OMPI_MCA_rmaps_seq_file`` names.
3. PBS: ``PBS_NODEFILE``, a line a slot; ``PBS_JOBID``.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from registry.errors import ConfigError, InputError

HOST_FILES = ("PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_rmaps_seq_file")

_LINE = re.compile(r"(?:([^\s:=]+)(?::([1-9]\d*)|\s+slots\s*=\s*([1-9]\d*).*)?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """An allocation by names.

    Attributes
    ----------
    hosts : tuple of str
        In the order in which the launcher fills them.
    slots : tuple of int
        Ranks of each host.
    ranks : int or None
        Of the job, where it is told.
    job, cluster : str or None
    source : str
        The variables that were read.
    """

    hosts: tuple[str, ...]
    slots: tuple[int, ...]
    ranks: int | None = None
    job: str | None = None
    cluster: str | None = None
    source: str = ""


def here(environment: Mapping[str, str] = os.environ) -> Here:
    """The allocation around this process.

    Raises
    ------
    ConfigError
        No variable tells of one, or two of them contradict each other.
    InputError
        A list or file of hosts that cannot be read.
    """
    if environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST"):
        return _slurm(environment)
    for variable in HOST_FILES:
        if environment.get(variable):
            return _host_file(variable, environment[variable], None)
    if environment.get("PBS_NODEFILE"):
        return _host_file("PBS_NODEFILE", environment["PBS_NODEFILE"], environment.get("PBS_JOBID"))
    raise ConfigError(
        "--here",
        "no allocation is around: neither SLURM_JOB_NODELIST nor PBS_NODEFILE nor a host file of Open MPI "
        f"({', '.join(HOST_FILES)}) is set",
    )


def _slurm(environment: Mapping[str, str]) -> Here:
    from ingest.formats.jobs.hostlists import expand
    from ingest.formats.jobs.slurm_fields import Where, parse_tasks_per_node

    nodes = "SLURM_JOB_NODELIST" if environment.get("SLURM_JOB_NODELIST") else "SLURM_NODELIST"
    hosts = expand(environment[nodes], path=nodes)
    per_node = next(
        (n for n in ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE") if environment.get(n)), None
    )
    if per_node is None:
        raise ConfigError("--here", f"{nodes} is set, but neither SLURM_TASKS_PER_NODE nor CPUS_PER_NODE")
    slots = parse_tasks_per_node(environment[per_node], len(hosts), Where(per_node))
    if len(slots) != len(hosts):
        raise ConfigError("--here", f"{per_node} tells of {len(slots)} hosts, {nodes} of {len(hosts)}")
    ranks = environment.get("SLURM_NTASKS", "")
    return Here(
        hosts=hosts,
        slots=slots,
        ranks=int(ranks) if ranks.isdigit() else None,
        job=environment.get("SLURM_JOB_ID"),
        cluster=environment.get("SLURM_CLUSTER_NAME"),
        source=f"{nodes}, {per_node}",
    )


def _host_file(variable: str, path: str, job: str | None) -> Here:
    """Slots of each host: ``node slots=4``, ``node:4``, or a line a slot."""
    counts: Counter[str] = Counter()
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the host file that {variable} names cannot be read: {error}", path=path) from error
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        found = _LINE.fullmatch(text)
        if found is None:
            raise InputError("is no host with its slots", path=path, line=number, text=line)
        if text:
            counts[found[1]] += int(found[2] or found[3] or 1)
    if not counts:
        raise InputError(f"the host file that {variable} names has no host", path=path)
    return Here(hosts=tuple(counts), slots=tuple(counts.values()), job=job, source=f"{variable}={path}")
