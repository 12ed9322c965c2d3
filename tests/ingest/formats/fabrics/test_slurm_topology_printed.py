"""`scontrol show topology` of the block plug-in."""

from __future__ import annotations

from ingest import catalog
from ingest.formats.fabrics import slurm_topology
from registry.model import HOST
from tests.support.inputs import fabric_in, file, parse, read, refusal

PRINTED = slurm_topology.PRINTED
BLOCKS = read("slurm/scontrol_show_topology_blocks.txt")
GROUPS = """BlockName=b0 BlockIndex=0 Nodes=n[0-1] BlockSize=2
BlockName=b1 BlockIndex=1 Nodes=n[2-3] BlockSize=2
BlockName=b2 BlockIndex=2 Nodes=(null) BlockSize=2
BlockName=b3 BlockIndex=3 Nodes=n5 BlockSize=2
AggregatedBlock=b[0-1] BlockIndex=4 Nodes=n[0-3] BlockSize=4
AggregatedBlock=b[2-3] BlockIndex=5 Nodes=n5 BlockSize=4
AggregatedBlock=b[0-3] BlockIndex=6 Nodes=n[0-3],n5 BlockSize=8
"""


def test_printed_blocks_are_recognised_and_read() -> None:
    assert catalog.recognise(file(BLOCKS).as_group()).name == "slurm-show-topology"
    found = fabric_in(parse(PRINTED, BLOCKS))
    assert sum(found.kind == HOST) == 72
    degree = {f"block0{k}": 0 for k in range(1, 5)}
    for source, target in zip(found.links.source, found.links.target, strict=True):
        if found.kind[target] == HOST:
            degree[found.names[source]] += 1
    assert degree == dict.fromkeys(degree, 18)


def test_printed_groups_of_blocks_are_those_of_the_file() -> None:
    text = "BlockName=b0 Nodes=n[0-1]\nBlockName=b1 Nodes=n[2-3]\nBlockName=b2\nBlockName=b3 Nodes=n5\n"
    of_file = parse(slurm_topology, text + "BlockSizes=2,4,8\n")
    assert fabric_in(parse(PRINTED, GROUPS)).names == fabric_in(of_file).names
    assert {"b0..b1", "b2..b3", "b0..b3"} <= set(fabric_in(of_file).names)
    assert catalog.recognise(file(GROUPS).as_group()).name == "slurm-show-topology"


def test_printed_blocks_with_a_wrong_size_or_key_are_refused() -> None:
    assert refusal(PRINTED, GROUPS.replace("BlockSize=4", "BlockSize=x", 1)).line == 5
    assert "powers of two" in refusal(PRINTED, GROUPS.replace("BlockSize=8", "BlockSize=6")).reason
    assert refusal(PRINTED, GROUPS.replace("BlockIndex=4", "Colour=4")).line == 5
    assert refusal(PRINTED, GROUPS[GROUPS.index("Aggr") :]).reason == "no switch or block found"
