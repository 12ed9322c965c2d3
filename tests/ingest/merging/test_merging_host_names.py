"""A scan with full names of hosts merged with a scheduler's tree with short ones."""

from __future__ import annotations

from pathlib import Path

from ingest.options import Options
from ingest.pipeline import plan
from tests.support.inputs import DATA

SCAN = DATA / "infiniband/full-names/scan.txt"
LEAVES = """SwitchName=a Nodes=node[2527,2529]
SwitchName=b Nodes=node[2528,2530]
SwitchName=top Switches=a,b
"""


def test_hosts_are_the_same_in_short_and_in_full(tmp_path: Path) -> None:
    tree = tmp_path / "topology.conf"
    tree.write_text(LEAVES)
    intake = plan([SCAN, tree], Options(cluster="hpc"))
    assert intake.fabric is not None
    assert intake.fabric.size == "4 hosts, 3 switches, 8 cables"
    assert "node2527.cluster.example" in intake.fabric.names
    assert not [line for line in intake.warnings if "node25" in line]
