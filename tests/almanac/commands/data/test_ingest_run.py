"""``almanac ingest-run``: runs are listed and deleted; those of a name that is no cluster raise no alarm."""

from __future__ import annotations

from pathlib import Path

from tests.almanac.conftest import Almanac
from tests.support.paths import DATA

SCAN = DATA / "infiniband" / "fattree2-64-ftree" / "ibnetdiscover.txt"


def test_failed_runs_are_listed_deleted_and_no_alarm_for_a_name_that_is_no_cluster(
    embedded: Almanac, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("nothing that is known\n")
    assert embedded("ingest", SCAN, "--cluster", "ft").code == 0
    assert embedded("ingest", wrong, "--cluster", "ft").code == 1
    assert embedded("ingest", wrong, "--cluster", "typo").code == 1
    states = {row["check"]: (row["state"], row["seen"]) for row in embedded("doctor", "--json").json}
    assert states["source ft of unknown format"][0] == "warning"
    assert states["source typo of unknown format"][0] == "ok"
    assert "no such cluster" in states["source typo of unknown format"][1]
    gauges = embedded("metrics").out
    assert 'almanac_source_failing{cluster="ft",source="unknown"} 1.0' in gauges
    assert "typo" not in gauges
    runs = embedded("ingest-run", "list", "--json").json
    assert [(run["cluster"], run["outcome"]) for run in runs] == [
        ("typo", "failed"),
        ("ft", "failed"),
        ("ft", "saved"),
    ]
    assert runs[1]["files"] == [str(wrong)]
    assert str(wrong) in runs[1]["error"]
    assert [
        run["run"] for run in embedded("ingest-run", "list", "--failed", "--cluster", "ft", "--json").json
    ] == [runs[1]["run"]]
    assert len(embedded("ingest-run", "list", "--top", 1, "--json").json) == 1
    assert runs[1]["run"] in embedded("ingest-run", "list").out
    assert embedded("ingest-run", "delete", "--failed", "--cluster", "typo", "--yes", "--json").json[
        "deleted"
    ] == {"ingest runs": 1}
    assert embedded("ingest-run", "delete", runs[1]["run"], "--yes").code == 0
    assert [run["outcome"] for run in embedded("ingest-run", "list", "--json").json] == ["saved"]
    assert "ft of unknown" not in embedded("doctor").out


def test_what_to_delete_must_be_clear(embedded: Almanac) -> None:
    for words in ([], ["abc", "--failed"], ["abc", "--cluster", "x"]):
        assert embedded("ingest-run", "delete", *words, "--yes").code == 2
    assert embedded("ingest-run", "delete", "abc", "--yes").code == 1
