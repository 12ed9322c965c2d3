"""``almanac today``: from scans to one screen, and its exit code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.almanac.conftest import Almanac
from tests.support import paths

DATA = paths.DATA / "infiniband"


def test_a_spine_that_vanished_today_is_what_to_look_at(embedded: Almanac) -> None:
    now = datetime.now(UTC)
    for name, hours in (("fattree2-64-traffic", 30), ("fattree2-64-dead-spine", 2)):
        files = [DATA / name / "ibnetdiscover.txt", DATA / name / "opensm-lfts.dump"]
        moment = (now - timedelta(hours=hours)).isoformat()
        assert embedded("ingest", *files, "--cluster", "ft", "--observed-at", moment).code == 0
    call = embedded("today", "ft")
    assert call.code == 0, call.err
    assert "Changed: 1 switch vanished, 8 cables vanished" in call.out
    assert "Slowed jobs: no running jobs are known" in call.out
    assert (
        "Best action: find out why switch spine02 vanished:\n  almanac cluster changes ft --from " in call.out
    )
    assert len(call.out.splitlines()) <= 40
    fields = embedded("today", "ft", "--json").json
    assert fields["changes"]["switches_vanished"] == ["spine02"]
    assert (fields["running_job_count"], fields["jobs"], fields["failed_runs"]) == (0, [], [])
    since = (now - timedelta(hours=1)).isoformat()
    assert "Changed: unknown, no scan since then" in embedded("today", "ft", "--since", since).out


def test_findings_and_failed_ingests_are_shown_and_decide_the_exit_code(embedded: Almanac) -> None:
    tree = DATA / "fattree2-64-traffic"
    plan = paths.DATA / "formats" / "fabric.ndt"
    now = datetime.now(UTC).isoformat()
    given = ["ingest", "--cluster", "ft", "--observed-at", now]
    assert embedded(*given, tree / "ibnetdiscover.txt", plan).code == 0
    assert embedded("today", "ft", "--fail-on", "note").code == 0
    assert embedded(*given, DATA / "fattree2-64-dead-spine" / "ibnetdiscover.txt", "--dry-run").code == 0
    later = (datetime.now(UTC) + timedelta(seconds=60)).isoformat()
    scan = DATA / "fattree2-64-dead-spine" / "ibnetdiscover.txt"
    assert embedded("ingest", "--cluster", "ft", "--observed-at", later, scan).code == 0
    call = embedded("today", "ft", "--fail-on", "warning")
    assert call.code == 4
    assert "warning, wiring: missing (1): spine02 is not in the fabric: 8 planned" in call.out
    assert embedded("today", "ft").code == 0
    assert embedded("ingest", "--cluster", "ft", plan.with_name("nothing.ndt")).code == 1
    assert "Data: 1 ingest failed, 1 source stale or failing" in embedded("today", "ft").out
    unknown = embedded("today", "nosuch")
    assert (unknown.code, "nosuch" in unknown.err) == (1, True)
