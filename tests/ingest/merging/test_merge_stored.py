"""A scheduler's tree or a plain graph after a scan: compared with the stored fabric, and not saved."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.options import Options
from ingest.pipeline import Report, ingest
from registry.errors import PoorerSource
from registry.registry import Registry
from tests.support.inputs import DATA

SCAN = DATA / "infiniband/fattree2-64-ftree/ibnetdiscover.txt"
TREE = (DATA / "formats/topology.conf").read_text()


def day(number: int) -> Options:
    return Options(cluster="ft", observed_at=datetime(2026, 5, number, tzinfo=UTC))


def given(registry: Registry, folder: Path, text: str, when: int = 2) -> Report:
    path = folder / "topology.conf"
    path.write_text(text)
    return ingest(registry, [path], day(when))


@pytest.fixture
def scanned(registry: Registry) -> Registry:
    """Cluster ft as it was scanned on the first day."""
    ingest(registry, [SCAN], day(1))
    return registry


def test_a_tree_that_fits_the_scan_has_no_disagreements(scanned: Registry, tmp_path: Path) -> None:
    before = scanned.fabrics.read("ft")
    report = given(scanned, tmp_path, TREE)
    assert report.compared is not None
    assert report.compared.time == datetime(2026, 5, 1, tzinfo=UTC)
    assert report.compared.disagreements == ()
    assert report.receipt is not None
    assert not report.receipt.new_observation
    assert scanned.fabrics.read("ft").id == before.id
    assert len(scanned.fabrics.observations("ft")) == 1


def test_disagreements_of_an_operators_file_are_reported_and_replace_nothing(
    scanned: Registry, tmp_path: Path
) -> None:
    wrong = TREE.replace("node[0001-0008]", "node[0001-0007]")
    report = given(scanned, tmp_path, wrong.replace("node[0009-0016]", "node[0008-0016,0099]"))
    assert report.compared is not None
    path = tmp_path / "topology.conf"
    between = f"ft as seen at 2026-05-01 00:00:00 UTC and {path} disagree"
    assert report.compared.disagreements == (
        f"{between}: host node0099 is only in {path}",
        f"{between}: cable leaf01:8 - node0008:1 is only in ft as seen at 2026-05-01 00:00:00 UTC",
        f"{between}: cable leaf02 - node0008 is only in {path}",
    )
    assert set(report.compared.disagreements) <= set(report.warnings)
    assert "node0099" not in scanned.fabrics.read("ft").fabric.names
    (run, *_) = scanned.runs.list()
    assert (run.outcome, run.formats) == ("unchanged", ("slurm-topology",))


def test_the_same_file_again_is_compared_again_with_what_is_stored_by_then(
    scanned: Registry, tmp_path: Path
) -> None:
    first = given(scanned, tmp_path, TREE, when=9)
    ingest(scanned, [DATA / "infiniband/fattree2-64-dead-spine/ibnetdiscover.txt"], day(3))
    again = given(scanned, tmp_path, TREE, when=9)
    assert again.same_as is None
    assert first.compared is not None
    assert again.compared is not None
    assert (first.compared.time.day, again.compared.time.day) == (1, 3)


def test_what_has_nothing_in_common_is_refused(scanned: Registry, tmp_path: Path) -> None:
    with pytest.raises(PoorerSource, match="slurm-topology has no ports"):
        given(scanned, tmp_path, "SwitchName=a Nodes=x[1-4]\n")
    assert len(scanned.fabrics.observations("ft")) == 1
    assert scanned.runs.list()[0].outcome == "failed"


def test_before_the_first_scan_and_of_another_cluster_it_is_kept(scanned: Registry, tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(TREE)
    early = datetime(2026, 4, 1, tzinfo=UTC)
    for options in (Options(cluster="ft", observed_at=early), Options(cluster="other")):
        report = ingest(scanned, [tmp_path / "topology.conf"], options)
        assert report.compared is None
        assert report.receipt is not None
        assert report.receipt.new_observation
