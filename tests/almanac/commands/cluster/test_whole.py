"""``almanac cluster delete``, ``rename`` and ``merge``."""

from __future__ import annotations

from tests.almanac.conftest import Almanac
from tests.support.paths import DATA

TREE = DATA / "infiniband" / "fattree2-64-ftree" / "ibnetdiscover.txt"
BROKEN = DATA / "infiniband" / "fattree2-64-broken-link" / "ibnetdiscover.txt"
TORUS = DATA / "infiniband" / "torus-4x4x4-dor" / "ibnetdiscover.txt"


def test_a_cluster_is_renamed_merged_and_deleted(embedded: Almanac) -> None:
    for cluster, path, day in (("old", TREE, 1), ("new", BROKEN, 2), ("torus", TORUS, 3)):
        assert embedded("ingest", path, "--cluster", cluster, "--observed-at", f"2026-01-0{day}").code == 0
    renamed = embedded("cluster", "rename", "old", "hpc", "--yes", "--json").json
    assert set(renamed) == {"dry_run", "moved", "already_there", "conflicts"}
    assert (renamed["moved"]["devices"], renamed["conflicts"]) == (76, [])
    assert "this cluster exists" in embedded("cluster", "rename", "hpc", "new", "--yes").err
    assert "printable characters" in embedded("cluster", "rename", "hpc", "a\x1bb", "--yes").err
    refused = embedded("cluster", "merge", "torus", "hpc", "--yes")
    assert refused.code == 1
    assert "only 72 of 192 devices are in both fabrics; --force merges them nevertheless" in refused.err
    planned = embedded("cluster", "merge", "new", "hpc", "--dry-run")
    assert "would move: ingest runs: 1, observations: 1, snapshots: 1" in planned.out
    assert "already there: devices: 75" in planned.out
    assert embedded("cluster", "merge", "new", "hpc", "--yes").code == 0
    listed = embedded("cluster", "list", "--json").json
    assert [(row["cluster"], row["observations"]) for row in listed] == [("hpc", 2), ("torus", 1)]
    assert embedded("cluster", "show", "hpc", "--json").json["host_count"] == 63
    planned = embedded("cluster", "delete", "torus", "--dry-run", "--json").json
    assert (planned["deleted"]["devices"], planned["deleted"]["clusters"]) == (192, 1)
    assert len(embedded("cluster", "list", "--json").json) == 2
    assert embedded("cluster", "delete", "torus", "--yes", "--json").json == planned | {"dry_run": False}
    call = embedded("cluster", "delete", "torus", "--yes")
    assert call.code == 1
    assert "there is no cluster 'torus'" in call.err
