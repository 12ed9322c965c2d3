"""``almanac cluster layouts``: which hosts' insides are known, as of any time."""

from __future__ import annotations

from pathlib import Path

from tests.almanac.conftest import Almanac
from tests.support import paths

DATA = paths.DATA


def test_layouts_are_listed_with_their_cores_and_adapters_as_of_a_time(
    embedded: Almanac, tmp_path: Path
) -> None:
    xml = (DATA / "hwloc/two_rails_v2.xml").read_text()
    scan, layout = tmp_path / "links.csv", tmp_path / "host.xml"
    scan.write_text("source,target,capacity\nn0001,leaf,1\nn0002,leaf,1\nleaf,spine,1\n")
    layout.write_text(xml)
    assert embedded("ingest", scan, "--cluster", "c", "--observed-at", "2026-05-01").code == 0
    assert embedded("cluster", "layouts", "c", "--json").json == []
    assert "no host layouts of c are stored" in embedded("cluster", "layouts", "c").out
    call = embedded("ingest", layout, "--cluster", "c", "--observed-at", "2026-05-02")
    assert call.code == 0, call.err
    (row,) = embedded("cluster", "layouts", "c", "--json").json
    assert row["host"] == "n0001"
    assert row["since"] == "2026-05-02T00:00:00Z"
    assert sum(row["cores_per_domain"]) == row["cores"]
    assert [one["name"] for one in row["adapters"] if one["fabric"]] == ["mlx5_0", "mlx5_1"]
    assert "n0001" in embedded("cluster", "layouts", "c").out
    assert embedded("cluster", "layouts", "c", "--at", "2026-05-01T12:00", "--json").json == []


def test_an_unknown_cluster_is_reported(embedded: Almanac) -> None:
    call = embedded("cluster", "layouts", "nowhere")
    assert call.code == 1
    assert "there is no cluster 'nowhere'" in call.err
