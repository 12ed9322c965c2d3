"""Leaf switches and blocks keep the order of Slurm's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.formats.fabrics.slurm_leaves import read_leaves
from registry.errors import InputError

CONF = """SwitchName=top Switches=m,c,w
SwitchName=w Nodes=n[5,2]
SwitchName=c Nodes=n[8,1,3]
SwitchName=m Nodes=n4
"""
YAML = """- topology: default
  cluster_default: true
  block:
    block_sizes: [2]
    blocks:
      - block: w
        nodes: n[5,2]
      - block: c
        nodes: n[1,3]
"""


def test_leaves_of_a_tree_and_of_blocks(tmp_path: Path) -> None:
    conf, other = tmp_path / "topology.conf", tmp_path / "topology.yaml"
    conf.write_text(CONF)
    other.write_text(YAML)
    assert read_leaves(conf) == (("n5", "n2"), ("n8", "n1", "n3"), ("n4",))
    assert read_leaves(other) == (("n5", "n2"), ("n1", "n3"))


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "topology.conf"
    path.write_text("source,target\na,b\n")
    with pytest.raises(InputError, match="with switches or blocks"):
        read_leaves(path)
