r"""The formats in which a placement can be written, and the command line that uses each.

Each names a function ``write(placement, fabric) -> str``, which returns the content of the file in rank order
and raises `InvalidPlacement` if the format cannot express the placement. A placement is checked before it is
written: each rank on one allocated host, no host over its slots, names that the format can hold.
``mpich-rank-order`` is the inverse of the others: it lists the rank of each slot, not the host of each rank.

A placement as CSV: ``rank,host,slot`` with slots from 0 by ascending rank within a host.

If cores were chosen, the columns ``core`` and ``cpu`` follow: the core in hwloc's logical order and the
operating system's number of its first hardware thread; both are empty if the host's layout is not known.

A placement as a task map of Flux (RFC 34): the node of each task, by its position in the allocation.

``flux run --taskmap=manual:"$(cat FILE)" -N HOSTS -n RANKS ./program``. The map is a JSON array of blocks
``[nodeid, nnodes, ppn, repeat]``: ppn tasks on each of nnodes nodes from nodeid on, repeated `repeat` times.
Node ids count the hosts of the allocation, which must be in the order of the job's R. Checked with the
vectors of RFC 34 (flux-framework/rfc, spec_34), not tested with Flux.

Checks of a placement before it is written to a launcher's file, and the names of its hosts.

A placement for torchrun and DeepSpeed, which give consecutive ranks to a host.

Only placements with consecutive ranks on each host can be written; ``almanac map --consecutive`` finds them.
Based on the launchers' documentation and source, not tested.

torchrun: one host per line, the first is node rank 0; every host has the same number of ranks,
``--nproc-per-node``. On each host::

    node=$(($(grep -nxF "$(hostname)" FILE | cut -d: -f1) - 1))
    torchrun --nnodes NODES --nproc-per-node RANKS_A_NODE --node-rank $node \
        --master-addr "$(head -n 1 FILE)" ...

DeepSpeed: one line ``HOST slots=N`` per host, filled from the top; ``deepspeed --hostfile FILE program.py``.

A placement as the host file of Open MPI or Slurm: one host per line in rank order.

Open MPI: ``mpirun --hostfile FILE --map-by seq``; other mappings merge the lines of a host, which moves
ranks. 4.1.4 accepted the format.

Slurm: ``SLURM_HOSTFILE=FILE srun --ntasks N --distribution arbitrary``; the names must be the scheduler's.
22.05 accepted the format.

A placement on Kubernetes: labels with the order of nodes, and an MPIJob whose ranks are in order.

The nodes have the names of the hosts, in lower case. An MPIJob cannot name the node of each worker: one
worker runs on each of the nodes, and the launcher, before ``mpirun``, asks each for its node and writes a
host file in rank order (Open MPI's ``--map-by seq``). Fill in the image and the program.

Sources: the published schema of kubeflow.org/v2beta1 and the operator's ``/etc/mpi/hostfile``, in which the
first word of a line is a worker. The script is tested with replacements of ssh and mpirun, the job with the
schema; neither with a cluster.

A placement as the machine file of MPICH (``HOST:1`` per rank) or Intel MPI (``HOST:COUNT`` per run).

MPICH: ``mpiexec -f FILE`` of hydra 4.0.2, which accepted the format. If cores were chosen, a line is a run of
ranks on one host, ``HOST:2 binding=user:4,0``: the CPU of each by the operating system's number (hydra joins
successive lines of the same host and refuses a second binding then).

Intel MPI: ``mpirun -machinefile FILE -n RANKS ./program``.
A host may occur several times. Tried with 2021.18.

A placement as MPICH_RANK_ORDER of HPE Cray MPICH: the rank in each slot.

The launcher fills the slots of the first host, then of the second, in the order of the allocation, and takes
their ranks from the list: it is the inverse of the other formats. Use it with ``MPICH_RANK_REORDER_METHOD=3``
and the file ``MPICH_RANK_ORDER`` in the working folder or named by ``MPICH_RANK_REORDER_FILE``. The syntax is
from documentation and published files, not tested.

The list does not name the hosts of the slots. A comment before it does, ``# hosts a*2 b*2``, if their names
allow it; `ingest.formats.placements` reads it.

A placement as the rankfile of Open MPI: ``rank N=HOST slot=K``, K a core of the host, from 0.

Open MPI 4: ``mpirun --hostfile HOSTS --rankfile FILE``. 4.1.4 accepted the format, counts cores in hwloc's
logical order and binds each rank to its core, whatever ``--bind-to`` is. K is the core chosen for the rank,
else ranks of a host get 0, 1, ...

Open MPI 5 (its launcher is PRRTE): ``mpirun --hostfile HOSTS --map-by rankfile:file=FILE ./program``, or
``prterun``; version 4 refuses a file given in this way. The hosts must be known from a scheduler or
``--hostfile``; some versions do not accept a ``-`` in the file's name. From documentation and published
scripts, not tested.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from registry.catalog import Catalog, Entry, PlugIns
from registry.csv_text import csv_text
from registry.errors import InvalidPlacement
from registry.model import HOST, Fabric, HasFabric, HasPlacement, Placement
from registry.model.hosts import HOST_LABEL, label_lines, node_name
from registry.model.views import content


def write_csv(placement: Placement, fabric: Fabric) -> str:
    """Return a header and one line per rank; names with commas or quotes are quoted."""
    cores = _cores(placement)
    lines: list[tuple[int | str, ...]] = []
    slots = placement.slot_of_rank.tolist()
    rows = zip(placement.host_of_rank.tolist(), slots, cores or [()] * placement.ranks, strict=True)
    for rank, (vertex, slot, core) in enumerate(rows):
        host = fabric.names[vertex]
        if not host.isprintable() or host != host.strip():
            raise InvalidPlacement(f"host name {host!r} is not allowed in the file")
        lines.append((rank, host, slot, *core))
    return csv_text(("rank", "host", "slot", *(("core", "cpu") if cores else ())), lines)


def _cores(placement: Placement) -> Sequence[tuple[int | str, ...]]:
    """Return the core and CPU of each rank, as empty text if unknown; an empty list if none were chosen."""
    if placement.core_of_rank is None or placement.cpu_of_rank is None:
        return []
    pairs = zip(placement.core_of_rank.tolist(), placement.cpu_of_rank.tolist(), strict=True)
    return [(core, cpu) if cpu >= 0 else ("", "") for core, cpu in pairs]


Block = tuple[int, int, int, int]


def write_flux_taskmap(placement: Placement, fabric: Fabric) -> str:
    """Return one line, the array."""
    node = np.zeros(len(fabric), np.int64)
    node[placement.allocation.hosts] = np.arange(len(placement.allocation))
    return json.dumps(task_map(node[placement.host_of_rank].tolist()), separators=(",", ":")) + "\n"


def task_map(nodes: list[int]) -> list[Block]:
    """Return the blocks for the node id of each task."""
    blocks: list[Block] = []
    for node, tasks in groupby(nodes):
        count = sum(1 for _ in tasks)
        last = blocks[-1] if blocks else (0, 0, 0, 0)
        if last[1] and last[2] == count and last[0] + last[1] == node:
            blocks[-1] = (last[0], last[1] + 1, count, 1)
        else:
            blocks.append((node, 1, count, 1))
    return [(*block[:3], sum(1 for _ in equal)) for block, equal in groupby(blocks)]


_LAUNCHABLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def check_placement(placement: Placement, fabric: Fabric) -> None:
    """Raise `InvalidPlacement` if a rank is not on an allocated host, or a host has more ranks than slots."""
    if placement.ranks == 0:
        raise InvalidPlacement("the placement has no ranks")
    allocation = placement.allocation
    vertices = np.concatenate([placement.host_of_rank, allocation.hosts])
    if int(vertices.min()) < 0 or int(vertices.max()) >= len(fabric):
        raise InvalidPlacement("the placement belongs to another fabric: this one lacks one of its vertices")
    taken = np.bincount(placement.host_of_rank, minlength=len(fabric))
    room = np.zeros(len(fabric), np.int64)
    room[allocation.hosts] = allocation.slots
    over = np.flatnonzero(taken > room)
    if len(over):
        name, ranks, slots = fabric.names[over[0]], taken[over[0]], room[over[0]]
        raise InvalidPlacement(f"host {name} has {slots} slots but {ranks} ranks")
    switches = np.flatnonzero((taken > 0) & (fabric.kind != HOST))
    if len(switches):
        raise InvalidPlacement(f"{fabric.names[switches[0]]} is a switch and cannot run ranks")


def launchable(name: str) -> bool:
    """Return True if launchers' files allow a host's name."""
    return _LAUNCHABLE.fullmatch(name) is not None


def host_names(placement: Placement, fabric: Fabric) -> Sequence[str]:
    """Return the host of each rank, with names that launchers' files allow.

    Raises:
        InvalidPlacement: A name contains a blank or a special character of such files (``= : , # +`` ...).
    """
    names = {vertex: fabric.names[vertex] for vertex in dict.fromkeys(placement.host_of_rank.tolist())}
    for name in names.values():
        if not launchable(name):
            raise InvalidPlacement(
                f"host name {name!r} is not allowed in the file: use only A-Z a-z 0-9 _ . -"
            )
    return [names[vertex] for vertex in placement.host_of_rank.tolist()]


def runs_of_ranks(placement: Placement, fabric: Fabric) -> list[tuple[str, int]]:
    """Return the host of each run of ranks and the length of the run, in rank order; see `host_names`."""
    return [(host, sum(1 for _ in run)) for host, run in groupby(host_names(placement, fabric))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher(Entry):
    """A format."""

    cores: bool = False
    """Whether the format states the core of each rank; the others state the host only."""
    launch: str = ""
    """Command line that starts a program with the file, or empty if no launcher reads it. ``{file}`` is the
    file, ``{ranks}`` and ``{nodes}`` are numbers, ``{hosts}`` is ``a:4,b:2`` with the ranks of each host,
    ``{each}`` the most ranks of a host."""


def _launcher(name: str, function: str, about: str, launch: str, *, cores: bool = False) -> Launcher:
    target = f"mapping.launchers:{function}"
    return Launcher(name=name, target=target, about=about, launch=launch, cores=cores)


_NODE_RANK = '$(($(grep -nxF "$(hostname)" {file} | cut -d: -f1) - 1))'
FORMATS = Catalog(
    "export format",
    (
        _launcher("csv", "write_csv", "CSV: rank,host,slot", "", cores=True),
        _launcher(
            "openmpi-rankfile",
            "write_rankfile",
            "Open MPI 4: rank file",
            "mpirun --host {hosts} --rankfile {file} -n {ranks} ./program",
            cores=True,
        ),
        _launcher(
            "openmpi-hostfile",
            "write_hostfile",
            "Open MPI: host file in rank order",
            "mpirun --hostfile {file} --map-by seq -n {ranks} ./program",
        ),
        _launcher(
            "slurm-hostfile",
            "write_hostfile",
            "Slurm: SLURM_HOSTFILE",
            "SLURM_HOSTFILE={file} srun -n {ranks} --distribution arbitrary ./program",
        ),
        _launcher(
            "mpich-machinefile",
            "write_mpich",
            "MPICH: machine file",
            "mpiexec -f {file} -n {ranks} ./program",
            cores=True,
        ),
        _launcher(
            "mpich-rank-order",
            "write_mpich_rank_order",
            "HPE Cray MPICH: MPICH_RANK_ORDER",
            "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={file} srun -n {ranks} --distribution block "
            "./program",
        ),
        _launcher(
            "prrte-rankfile",
            "write_rankfile",
            "Open MPI 5 (PRRTE): rank file",
            "mpirun --host {hosts} --map-by rankfile:file={file} -n {ranks} ./program",
            cores=True,
        ),
        _launcher(
            "intel-machinefile",
            "write_intel",
            "Intel MPI: machine file",
            "mpirun -machinefile {file} -n {ranks} ./program",
        ),
        _launcher(
            "flux-taskmap",
            "write_flux_taskmap",
            "Flux: task map (RFC 34)",
            'flux run -N {nodes} -n {ranks} --taskmap=manual:"$(cat {file})" ./program',
        ),
        _launcher(
            "torchrun-rank-order",
            "write_torchrun",
            "torchrun: order of nodes",
            f"torchrun --nnodes {{nodes}} --nproc-per-node {{each}} --node-rank {_NODE_RANK} "
            '--master-addr "$(head -n 1 {file})" program.py   # on each host',
        ),
        _launcher(
            "deepspeed-hostfile",
            "write_deepspeed",
            "DeepSpeed: host file",
            "deepspeed --hostfile {file} program.py",
        ),
        _launcher("kubernetes-node-order", "write_node_order", "kubectl: order of nodes", ""),
        _launcher("mpijob", "write_mpijob", "Kubernetes: MPIJob", "kubectl create -f {file}"),
    ),
    PlugIns(group="launchers", entry=Launcher),
)
"""All formats."""


def write(format: str, placement: Placement | HasPlacement, fabric: Fabric | HasFabric) -> str:
    """Return a placement on a fabric as the content of a launcher's file, in a format of `FORMATS`.

    `InvalidPlacement` is raised if the placement does not fit its allocation or the format cannot express it.
    """
    chosen = FORMATS.find(format)
    fabric = content(fabric, Fabric, "fabric")
    placement = content(placement, Placement, "placement")
    check_placement(placement, fabric)
    return str(chosen.load()(placement, fabric))


class Launch(NamedTuple):
    """A written file: its format, its path, and the command that starts a program with it, if any."""

    format: str
    file: str
    command: str | None


def launch_line(format: str, placement: Placement, fabric: Fabric, path: str) -> str | None:
    """Return the command line that starts a program with a written file, or None if no launcher reads it."""
    launch = FORMATS.find(format).launch
    if not launch:
        return None
    allocation = placement.allocation
    taken = np.bincount(placement.host_of_rank, minlength=len(fabric))[allocation.hosts].tolist()
    names = [fabric.names[vertex] for vertex in allocation.hosts.tolist()]
    used = [f"{name}:{count}" for name, count in zip(names, taken, strict=True) if count]
    # Flux counts all hosts of the allocation, torchrun those of the file.
    nodes = len(names) if format == "flux-taskmap" else len(used)
    return launch.format(
        file=shlex.quote(path), ranks=placement.ranks, nodes=nodes, hosts=",".join(used), each=max(taken)
    )


def write_torchrun(placement: Placement, fabric: Fabric) -> str:
    """Return one line per node, in the order of node ranks."""
    nodes = _consecutive(placement, fabric, "torchrun")
    for host, count in nodes:
        if count != nodes[0][1]:
            raise InvalidPlacement(
                f"host {host} has {count} ranks and {nodes[0][0]} has {nodes[0][1]}: torchrun starts the "
                "same number on every node"
            )
    return "".join(f"{host}\n" for host, _ in nodes)


def write_deepspeed(placement: Placement, fabric: Fabric) -> str:
    """Return one line per host, in rank order."""
    nodes = _consecutive(placement, fabric, "DeepSpeed")
    return "".join(f"{host} slots={count}\n" for host, count in nodes)


def _consecutive(placement: Placement, fabric: Fabric, launcher: str) -> list[tuple[str, int]]:
    """Return the hosts in rank order and their numbers of ranks, if the ranks of each are consecutive."""
    runs = runs_of_ranks(placement, fabric)
    previous: set[str] = set()
    for host, _ in runs:
        if host in previous:
            raise InvalidPlacement(
                f"the ranks of host {host} are not consecutive: {launcher} gives consecutive ranks to a "
                "host; almanac map --consecutive finds such placements"
            )
        previous.add(host)
    return runs


def write_hostfile(placement: Placement, fabric: Fabric) -> str:
    """Return one line per rank."""
    return "".join(f"{host}\n" for host in host_names(placement, fabric))


ORDER = "fabric-almanac/order"
"""Label of a node with its place in the order of first ranks, from 0."""
NAME = "placed"
"""Name of the job."""
LONGEST_SCRIPT = 128_000
"""Most characters of an argument of a program in Linux, with some room."""
SCRIPT = """\
for worker in $(cut -d' ' -f1 /etc/mpi/hostfile); do
  echo "$(ssh "$worker" cat /tmp/node-name) $worker"
done >/tmp/workers
cat >/tmp/order <<END
{runs}
END
awk 'NR == FNR {{worker[$1] = $2; next}} {{for (i = 0; i < $2; i++) print worker[$1]}}' \\
  /tmp/workers /tmp/order >/tmp/hosts
exec mpirun --hostfile /tmp/hosts --map-by seq -n {ranks} ./program
"""
"""What the launcher runs: ``runs`` has a node and a number of ranks in each line, in rank order."""
WORKER = 'echo "$NODE_NAME" >/tmp/node-name && exec /usr/sbin/sshd -De'
"""What a worker runs: it writes the name of its node where the launcher can read it."""


def write_node_order(placement: Placement, fabric: Fabric) -> str:
    """Return commands that label each node with its place in the order of first ranks."""
    names = dict.fromkeys(host_names(placement, fabric))
    width = len(str(len(names) - 1))
    return label_lines((node_name(name), {ORDER: f"{place:0{width}}"}) for place, name in enumerate(names))


def write_mpijob(placement: Placement, fabric: Fabric) -> str:
    """Return an MPIJob (YAML) that starts each rank on its node.

    Raises:
        InvalidPlacement: The order is too long for the argument of a command.
    """
    import yaml

    runs = [(node_name(host), count) for host, count in runs_of_ranks(placement, fabric)]
    script = SCRIPT.format(runs="\n".join(f"{node} {count}" for node, count in runs), ranks=placement.ranks)
    if len(script) > LONGEST_SCRIPT:
        raise InvalidPlacement(f"an MPIJob cannot hold the order of {placement.ranks} ranks: it is too long")
    ranks_of: dict[str, int] = {}
    for node, count in runs:
        ranks_of[node] = ranks_of.get(node, 0) + count
    job = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": NAME},
        "spec": {
            "mpiImplementation": "OpenMPI",
            "slotsPerWorker": max(ranks_of.values()),
            "launcherCreationPolicy": "WaitForWorkersReady",
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": {"containers": [_container(script)]}}},
                "Worker": {"replicas": len(ranks_of), "template": _worker(list(ranks_of))},
            },
        },
    }
    return str(yaml.dump(job, Dumper=_dumper(), sort_keys=False, width=100_000))


def _worker(nodes: list[str]) -> dict[str, Any]:
    """Return the pods of the workers: one on each of some nodes, which knows the node's name."""
    labels = {"fabric-almanac/job": NAME}
    name = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    one_of = {"key": HOST_LABEL, "operator": "In", "values": nodes}
    return {
        "metadata": {"labels": labels},
        "spec": {
            "affinity": {
                "nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [one_of]}]}},
                "podAntiAffinity": {
                    required: [{"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": HOST_LABEL}]
                },
            },
            "containers": [{**_container(WORKER), "env": [name]}],
        },
    }


def _container(script: str) -> dict[str, Any]:
    return {"name": "mpi", "image": "IMAGE", "command": ["sh", "-c", script]}


def _dumper() -> type:
    """Return YAML's dumper with texts of several lines as they are."""
    import yaml

    class Readable(yaml.SafeDumper):
        pass

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Readable.add_representer(str, text)
    return Readable


def write_mpich(placement: Placement, fabric: Fabric) -> str:
    """Return one line per rank, or one per run of ranks if cores were chosen."""
    hosts = host_names(placement, fabric)
    if placement.cpu_of_rank is None:
        return "".join(f"{host}:1\n" for host in hosts)
    lines = []
    runs = groupby(zip(hosts, placement.cpu_of_rank.tolist(), strict=True), key=lambda rank: rank[0])
    for host, run in runs:
        cpus = [cpu for _, cpu in run]
        binding = "" if -1 in cpus else f" binding=user:{','.join(map(str, cpus))}"
        lines.append(f"{host}:{len(cpus)}{binding}\n")
    return "".join(lines)


def write_intel(placement: Placement, fabric: Fabric) -> str:
    """Return one line per run of ranks on one host."""
    return "".join(f"{host}:{count}\n" for host, count in runs_of_ranks(placement, fabric))


def write_mpich_rank_order(placement: Placement, fabric: Fabric) -> str:
    """Return one line of ranks separated by commas, after a comment with the hosts.

    Free slots on a host before the last used one are an error: the launcher would fill them and shift all
    later ranks.
    """
    allocation = placement.allocation
    taken = np.bincount(placement.host_of_rank, minlength=len(fabric))[allocation.hosts]
    last = int(np.flatnonzero(taken)[-1])
    free = np.flatnonzero(taken[:last] < allocation.slots[:last])
    if len(free):
        host = fabric.names[allocation.hosts[free[0]]]
        raise InvalidPlacement(
            f"host {host} has free slots before the last used host: the launcher fills slots in the order of "
            "the allocation, so a list of ranks cannot leave any free"
        )
    position = np.empty(len(fabric), np.int64)
    position[allocation.hosts] = np.arange(len(allocation))
    order = np.lexsort((placement.slot_of_rank, position[placement.host_of_rank]))
    return _hosts(placement, fabric, last) + ",".join(str(rank) for rank in order.tolist()) + "\n"


def _hosts(placement: Placement, fabric: Fabric, last: int) -> str:
    """Return a comment with the hosts up to the last used one, and their slots."""
    allocation = placement.allocation
    names = [fabric.names[vertex] for vertex in allocation.hosts[: last + 1]]
    if not all(map(launchable, names)):
        return ""
    hosts = zip(names, allocation.slots.tolist(), strict=False)
    return f"# hosts {' '.join(f'{name}*{slots}' for name, slots in hosts)}\n"


def write_rankfile(placement: Placement, fabric: Fabric) -> str:
    """Return one line per rank."""
    hosts = host_names(placement, fabric)
    chosen = placement.core_of_rank
    slots = (placement.slot_of_rank if chosen is None else chosen).tolist()
    return "".join(
        f"rank {rank}={host} slot={slot}\n"
        for rank, (host, slot) in enumerate(zip(hosts, slots, strict=True))
    )
