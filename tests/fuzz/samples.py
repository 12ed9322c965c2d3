"""What the fuzzer begins with: the samples of every format of the catalog, recognised by their content.

A new format needs nothing here: what it recognises below ``tests/data`` is its sample. Formats without a file
there, and sources of several files that do not lie in one archive, are listed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, save_npz

from ingest import catalog
from ingest.formats.profiles.pytorch_trace import CALL, INIT
from ingest.pipeline import gather
from ingest.reading.source import SourceFile, SourceGroup, read_paths
from registry.errors import AlmanacError
from tests.support.inputs import DATA, file

LARGEST = 1 << 18
"""Bytes of the largest source that is damaged; a smaller one shows as much, and sooner."""
MOST = 8
"""Samples of a format, the smallest ones."""


class Item(NamedTuple):
    """One file of a source."""

    path: str
    data: bytes


Sample = tuple[Item, ...]

WRITTEN = {
    "trace-csv": "# ranks: 4\nt_us,src,dst,bytes,tag\n0.0,0,1,8,1\n2.5,2,1,0,-3\n2.5,1,1,4,1\n9e3,1,0,35,2\n",
    "links-csv": "source,target,capacity,source_port,target_port\nn1,leaf1,12.5e9,1,1\nleaf1,spine1,5,2,1\n",
    "darshan": "# darshan log version: 3.41\n# exe: ./ior\n# nprocs: 4\n# jobid: 4711\n",
    "placement-csv": "rank,host\n0,node1\n1,node2\n2,node1\n",
    "mpich-rank-order": "# hosts a*2 b*2\n0,2,1,3\n",
    "flux-taskmap": "[[0,2,2,1],[2,1,2,1]]\n",
    "intel-mpi-map": (
        "[0] MPI startup(): Rank    Pid      Node name  Pin cpu\n"
        "[0] MPI startup(): 0       12475    node1      {0,1}\n"
        "[0] MPI startup(): 1       12476    node2      {2,3}\n"
    ),
}
"""Small samples of formats of which no file is kept."""

SPLIT = "[4, 4]"
SIZES = {"in_msg_nelems": 8, "out_msg_nelems": 8, "in_split_size": SPLIT, "out_split_size": SPLIT}
TOGETHER = (
    ("netloc/eth-nodes.ndat", "netloc/eth-log-paths.ndat"),
    ("lldp/node1.json", "lldp/leaf1.json"),
    ("lldp/node1.json0", "lldp/node2.json0", "lldp/leaf1.json0", "lldp/spine1.json0"),
    ("formats/slingshot_fabric_template.json.gz", "formats/slingshot_stt_show_fabric.txt.gz"),
    ("formats/xtprocadmin.txt", "public/sample.xtdb2proc.gz"),
    ("counters/sweep1-perfquery-x-1.txt", "counters/sweep1-perfquery-1.txt"),
)
"""Files below ``tests/data`` that are one source."""


def of_format(name: str) -> tuple[Sample, ...]:
    """The samples of a format, the smallest first; none where there are none."""
    return _samples().get(name, ())


def everything() -> tuple[Item, ...]:
    """Every file of every sample: what is spliced into others."""
    return tuple(item for samples in _samples().values() for sample in samples for item in sample)


@cache
def _samples() -> dict[str, tuple[Sample, ...]]:
    found: dict[str, list[Sample]] = {format.name: [] for format in catalog.FORMATS}
    for name, text in WRITTEN.items():
        found[name].append((Item("input", text.encode()),))
    found["pytorch-trace"].append(tuple(_trace(rank) for rank in range(2)))
    found["npz"].extend((Item("input.npz", data),) for data in _arrays())
    for group in _groups():
        if sum(read.size for read in group.files) > LARGEST:
            continue
        try:
            alone = [SourceGroup(path=file.path, files=(file,)) for file in group.files]
            sources = gather([group] if len(group.files) > 1 else alone)
        except AlmanacError:
            continue  # not of a format that is known, such as a README
        for format, source in sources:
            found[format.name].append(tuple(Item(read.path, read.data) for read in source.files))
    return {name: _smallest(samples) for name, samples in found.items()}


def _arrays() -> Iterator[bytes]:
    """Profiles of three ranks in each form that NumPy and SciPy write."""
    dense = np.array([[0.0, 8.0, 0.0], [1.0, 0.0, 2.0], [0.0, 4.0, 0.0]])
    columns = {"src": np.array([0, 1, 2]), "dst": np.array([1, 2, 0]), "bytes": np.array([8.0, 1.0, 2.0])}
    out = io.BytesIO()
    np.save(out, dense)
    yield out.getvalue()
    for sparse in (csr_array(dense), coo_array(dense)):
        out = io.BytesIO()
        save_npz(out, sparse)
        yield out.getvalue()
    out = io.BytesIO()
    np.savez(out, **columns)  # type: ignore[arg-type]
    yield out.getvalue()


def _trace(rank: int) -> Item:
    """A trace of one of two ranks, as PyTorch 2.4 writes it: some collectives and a message."""
    groups = json.dumps([{"pg_name": "0", "ranks": [], "group_size": 2}, {"pg_name": "1", "ranks": [1, 0]}])
    nodes: list[dict[str, object]] = [{"id": 1, "name": INIT, "inputs": {"values": [groups]}}]
    for name in ("allreduce", "_allgather_base", "all_to_allv", "broadcast", "recv" if rank else "send"):
        attributes = {"collective_name": name, "dtype": "Float", "pg_name": "0"} | SIZES
        listed = [{"name": key, "type": "string", "value": value} for key, value in attributes.items()]
        values = [[], [7, False], ["0", "default_pg"], 1 - rank, name, [], [], 0, 1, 2]
        nodes.append({"id": 9, "name": CALL, "inputs": {"values": values}, "attrs": listed})
    document = {"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": nodes}
    return Item(f"et/rank{rank}.json", json.dumps(document).encode())


def _groups() -> Iterator[SourceGroup]:
    for path in sorted(DATA.rglob("*")):
        if path.is_file():
            groups = read_paths([path])
            yield from groups if len(groups) == 1 else (_joined(groups),)
    for names in TOGETHER:
        yield _joined(read_paths([DATA / name for name in names]))


def _joined(groups: tuple[SourceGroup, ...]) -> SourceGroup:
    return SourceGroup(path=groups[0].path, files=tuple(read for group in groups for read in group.files))


def _smallest(samples: list[Sample]) -> tuple[Sample, ...]:
    """The smallest, and at least one of several files; names without the folder of the tests."""
    by_size = sorted(samples, key=lambda sample: (sum(len(item.data) for item in sample), sample))
    several = [sample for sample in by_size[MOST:] if len(sample) > 1]
    chosen = [*by_size[:MOST], *several[:1]]
    return tuple(
        tuple(Item(item.path.removeprefix(f"{DATA}/"), item.data) for item in sample) for sample in chosen
    )


def as_files(sample: Sample) -> list[SourceFile]:
    """The sample as parsers get it."""
    return [file(item.data, item.path) for item in sample]
