"""``almanac cluster``: delete, rename and merge, and the known insides of hosts."""

from __future__ import annotations

from pathlib import Path

from tests.almanac.conftest import Almanac
from tests.support import paths
from tests.support.paths import DATA

TREE = DATA / "infiniband" / "fattree2-64-ftree" / "ibnetdiscover.txt"
BROKEN = DATA / "infiniband" / "fattree2-64-broken-link" / "ibnetdiscover.txt"
TORUS = DATA / "infiniband" / "torus-4x4x4-dor" / "ibnetdiscover.txt"


def test_a_cluster_is_renamed_merged_and_deleted(almanac: Almanac) -> None:
    for cluster, path, day in (("old", TREE, 1), ("new", BROKEN, 2), ("torus", TORUS, 3)):
        almanac.ok("ingest", path, "--cluster", cluster, "--observed-at", f"2026-01-0{day}")
    renamed = almanac.json("cluster", "rename", "old", "hpc", "--yes")
    assert set(renamed) == {"dry_run", "moved", "already_there", "conflicts"}
    assert (renamed["moved"]["devices"], renamed["conflicts"]) == (76, [])
    assert "this cluster exists" in almanac("cluster", "rename", "hpc", "new", "--yes").err
    assert "printable characters" in almanac("cluster", "rename", "hpc", "a\x1bb", "--yes").err
    refused = almanac.refused("cluster", "merge", "torus", "hpc", "--yes")
    assert "only 72 of 192 devices are in both fabrics; --force merges them nevertheless" in refused
    planned = almanac("cluster", "merge", "new", "hpc", "--dry-run")
    assert "would move: ingest runs: 1, observations: 1, snapshots: 1" in planned.out
    assert "already there: devices: 75" in planned.out
    almanac.ok("cluster", "merge", "new", "hpc", "--yes")
    listed = almanac.json("cluster", "list")
    assert [(row["cluster"], row["observations"]) for row in listed] == [("hpc", 2), ("torus", 1)]
    assert almanac.json("cluster", "show", "hpc")["host_count"] == 63
    planned = almanac.json("cluster", "delete", "torus", "--dry-run")
    assert (planned["deleted"]["devices"], planned["deleted"]["clusters"]) == (192, 1)
    assert len(almanac.json("cluster", "list")) == 2
    assert almanac.json("cluster", "delete", "torus", "--yes") == planned | {"dry_run": False}


DATA = paths.DATA


def test_layouts_are_listed_with_their_cores_and_adapters_as_of_a_time(
    almanac: Almanac, tmp_path: Path
) -> None:
    xml = (DATA / "hwloc/two_rails_v2.xml").read_text()
    scan, layout = tmp_path / "links.csv", tmp_path / "host.xml"
    scan.write_text("source,target,capacity\nn0001,leaf,1\nn0002,leaf,1\nleaf,spine,1\n")
    layout.write_text(xml)
    almanac.ok("ingest", scan, "--cluster", "c", "--observed-at", "2026-05-01")
    assert almanac.json("cluster", "layouts", "c") == []
    assert "no host layouts of c are stored" in almanac("cluster", "layouts", "c").out
    almanac.ok("ingest", layout, "--cluster", "c", "--observed-at", "2026-05-02")
    (row,) = almanac.json("cluster", "layouts", "c")
    assert row["host"] == "n0001"
    assert row["since"] == "2026-05-02T00:00:00Z"
    assert sum(row["cores_per_domain"]) == row["cores"]
    assert [one["name"] for one in row["adapters"] if one["fabric"]] == ["mlx5_0", "mlx5_1"]
    assert "n0001" in almanac("cluster", "layouts", "c").out
    assert almanac.json("cluster", "layouts", "c", "--at", "2026-05-01T12:00") == []
