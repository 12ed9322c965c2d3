"""``almanac map --layout``: cores for ranks, told in the answer and in launchers' files."""

from __future__ import annotations

import csv
from pathlib import Path

from tests.almanac.commands.placing.test_map import DATA, FILES, PROFILE
from tests.almanac.conftest import Almanac

LAYOUT = DATA / "hwloc" / "two_rails_v2.xml"
FROM_FILES = ("map", PROFILE, *FILES, "--slots", 4, "--steps", 300, "--strategy", "in-order")
HOSTS = ("--hosts", "node[0001-0004]")


def test_one_layout_is_that_of_all_hosts_and_cores_are_exported(loaded: Almanac, tmp_path: Path) -> None:
    table, ranks, hosts = tmp_path / "p.csv", tmp_path / "rankfile", tmp_path / "hosts"
    exports = ("--export", f"csv={table}", "--export", f"slurm-hostfile={hosts}")
    saved = ("map", "cg", "--cluster", "ft", "--slots", 4, "--steps", 300, *HOSTS)
    call = loaded(*saved, "--layout", LAYOUT, *exports, "--json")
    assert call.code == 0, call.err
    cores = call.json["cores"]
    assert (cores["host_count"], cores["without_layout"]) == (4, 0)
    assert cores["weighted_bytes"] <= cores["weighted_bytes_in_order"]
    assert "this format has no cores of ranks" in call.err
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert all(row["cpu"] for row in rows)
    # What was saved knows its cores, too.
    assert loaded("export", call.json["placement"], f"openmpi-rankfile={ranks}").code == 0
    assert ranks.read_text().splitlines() == [
        f"rank {row['rank']}={row['host']} slot={row['core']}" for row in rows
    ]


def test_hosts_without_a_layout_are_reported(embedded: Almanac, tmp_path: Path) -> None:
    call = embedded(*FROM_FILES, *HOSTS, "--layout", f"node0002={LAYOUT}")
    assert call.code == 0, call.err
    assert "cross NUMA domains within hosts" in call.out
    assert "3 of 4 hosts have no layout: their ranks are in order" in call.out


def test_layouts_without_distinct_hosts_are_refused(embedded: Almanac) -> None:
    twice = embedded(*FROM_FILES, *HOSTS, "--layout", f"node0002={LAYOUT}", "--layout", f"node0002={LAYOUT}")
    assert twice.code == 2
    assert "host node0002 has more than one layout" in twice.err
    unknown = embedded(*FROM_FILES, *HOSTS, "--layout", f"nobody={LAYOUT}")
    assert unknown.code != 0
    assert "nobody" in unknown.err
    assert "HOST=FILE" in unknown.err
    missing = embedded(*FROM_FILES, *HOSTS, "--layout", "nowhere.xml")
    assert missing.code != 0
    assert "nowhere.xml" in missing.err
