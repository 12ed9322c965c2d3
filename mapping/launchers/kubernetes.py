"""A placement on Kubernetes: labels with the order of nodes, and an MPIJob whose ranks are in order.

The nodes have the names of the hosts, in lower case. An MPIJob cannot name the node of each worker: one
worker runs on each of the nodes, and the launcher, before ``mpirun``, asks each for its node and writes a
host file in rank order (Open MPI's ``--map-by seq``). Fill in the image and the program.

Sources: the published schema of kubeflow.org/v2beta1 and the operator's ``/etc/mpi/hostfile``, in which the
first word of a line is a worker. The script is tested with replacements of ssh and mpirun, the job with the
schema; neither with a cluster.
"""

from __future__ import annotations

from typing import Any

from mapping.launchers.validation import host_names, runs_of_ranks
from registry.errors import InvalidPlacement
from registry.model import Fabric, Placement
from registry.model.hosts import HOST_LABEL, label_lines, node_name

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

    Raises
    ------
    InvalidPlacement
        The order is too long for the argument of a command.
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
