"""What is hot, advice for cron, imagined changes, ports and the screen of today, from the command line."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mapping.placement.place import find_placement
from registry.model.intake import Intake
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support import paths
from tests.support.fat_tree import at, fat_tree

JOB = """JobId={job} JobName={name}
   UserId={user}(1000) GroupId=x(1000) Account=x
   JobState=RUNNING Reason=None
   SubmitTime=2025-08-06T16:00:00 StartTime=2025-08-06T16:20:05 EndTime=Unknown
   Partition=batch NodeList={hosts}
   NumNodes={nodes} NumCPUs={tasks} NumTasks={tasks} CPUs/Task=1
     Nodes={hosts} CPU_IDs={cpus} Mem=0 GRES=

"""
MARKUP = "[red]eve[/red]"
SEARCH = ("--steps", 3000, "--workers", 1)


def shown_by_slurm(job: str, user: str, hosts: str, name: str = "cg", **more: Any) -> str:
    """A running job, by default of 16 ranks on 8 hosts."""
    given = {"nodes": 8, "tasks": 16, "cpus": "0-1"} | more
    return JOB.format(job=job, user=user, hosts=hosts, name=name, **given)


OTHER = shown_by_slurm("3", "cid", "node[0009-0016]", "other")


@pytest.fixture
def busy(loaded: Almanac, tmp_path: Path) -> Almanac:
    """Jobs 1 and 2 share some leaf switches; job 3 has no profile."""
    jobs = (("1", "ann", "node[0001-0004,0033-0036]"), ("2", MARKUP, "node[0005-0008,0037-0040]"))
    run(loaded, tmp_path, "".join(shown_by_slurm(*one) for one in jobs) + OTHER)
    for job in ("1", "2"):
        loaded.ok("job", "attach", job, "cg")
    return loaded


def run(cluster: Almanac, tmp_path: Path, jobs: str) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(jobs)
    cluster.ok("ingest", path, "--cluster", "ft")


def test_the_hottest_links_name_whose_traffic_is_on_them(busy: Almanac) -> None:
    answer = busy.json("congestion", "ft", "--top", 5)
    assert (answer["cluster"], answer["routing"], answer["running_job_count"]) == ("ft", "tables", 3)
    assert (answer["without_profile"], answer["left_out"]) == (["3"], [])
    assert (set(answer["evaluated"]), len(answer["links"])) == ({"1", "2"}, 5)
    seconds = [link["seconds"] for link in answer["links"]]
    assert seconds == sorted(seconds, reverse=True)
    assert {job["job"]: job["user"] for job in answer["jobs"]} == {"1": "ann", "2": MARKUP}
    shared = busy.json("congestion", "ft", "--top", 999)["links"]
    both = max((link for link in shared if len(link["users"]) == 2), key=lambda link: link["seconds"])
    assert answer["worst_pair"]["link"] == both["link"]
    shown = busy.ok("congestion", "ft").out
    assert "2 of 3 running jobs with traffic; routing: tables" in shown
    assert "once per iteration" in shown
    assert MARKUP in shown  # no name is taken for markup

    (hot, *_) = busy.json("congestion", "ft", "--network")["links"]
    answer = busy.json("congestion", "ft", "--link", hot["link"], "--top", 10_000)
    assert sum(pair["bytes"] for pair in answer["rank_pairs"]) == pytest.approx(hot["bytes"])
    one = busy("congestion", "ft", "--link", hot["link"])
    assert "pairs of ranks on this link: " in one.out
    assert "no traffic is known of 1 of 3 running jobs, which have no profile: 3" in one.err


def test_slowdowns_need_the_time_of_an_iteration(busy: Almanac) -> None:
    (row, _) = busy.json("congestion", "ft")["jobs"]
    assert [row[key] for key in ("iteration_seconds", "iteration_from", "slowdown")] == [None, None, None]
    shown = busy("congestion", "ft")
    assert "unknown" in shown.out
    assert "almanac job attach JOB PROFILE --iteration-seconds" in shown.err
    for job in ("1", "2"):
        answer = busy.json("job", "attach", job, "cg", "--iteration-seconds", 3600)
        assert (answer["iteration_seconds"], answer["iteration_from"]) == (3600.0, "stated")
    assert all(1.0 <= row["slowdown"] < 1.001 for row in busy.json("congestion", "ft")["jobs"])
    assert "3600 s (stated)" in busy("congestion", "ft").out
    busy("job", "attach", "1", "cg", "--iteration-seconds", 1e-9)
    wrong = busy("congestion", "ft")
    assert "job 1: its worst link is busy longer than its time of an iteration" in wrong.err
    assert "--iteration-seconds" not in wrong.err  # both times are stated
    assert "must be above zero" in busy.refused("job", "attach", "1", "cg", "--iteration-seconds", 0)


def test_without_running_jobs_or_profiles_the_remedy_is_shown(loaded: Almanac, tmp_path: Path) -> None:
    idle = loaded.ok("congestion", "ft")
    assert "0 of 0 running jobs" in idle.out
    assert "no running jobs known on ft" in idle.err
    assert "almanac ingest --cluster ft" in idle.err
    loaded.ok("advise", "jobs", "ft")
    run(loaded, tmp_path, OTHER)
    assert "almanac job attach JOB PROFILE" in loaded.ok("advise", "jobs", "ft").err
    assert loaded.error("congestion", "ft", "--at", "2025-08-06T10:00")["error"] == "UnknownName"
    run(loaded, tmp_path, shown_by_slurm("7", "u", "node[0001-0008]", "x", tasks=12))
    loaded.ok("job", "attach", "7", "cg")
    refused = loaded.refused("advise", "jobs", "ft")
    assert "job 7 is not included: 12 ranks are placed, the profile has 16" in refused


def test_congestion_shows_the_given_name_of_a_profile(loaded: Almanac, tmp_path: Path) -> None:
    run(loaded, tmp_path, shown_by_slurm("1", "ann", "node[0001-0004,0033-0036]", "wrap"))
    (tmp_path / "recorded.csv").write_text("# ranks: 16\nsrc,dst,bytes\n0,15,50000\n15,0,60000\n3,9,7\n")
    loaded.ok("ingest", tmp_path / "recorded.csv", "--name", "weather")
    loaded.ok("job", "attach", "1", "weather")
    found = loaded.json("congestion", "ft")
    assert found["jobs"][0]["profile"] == "weather"
    assert {user["profile"] for link in found["links"] for user in link["users"]} == {"weather"}
    assert found["jobs"][0]["application"] == "recorded"
    text = loaded.ok("congestion", "ft").out
    assert "1 (ann weather) 100%" in text
    assert "recorded" not in text
    assert loaded.json("job", "show", "1")["profile"] == "weather"
    assert "weather" in loaded.ok("job", "show", "1").out


UNKNOWN = (
    ("congestion fx", "closest: ft"),
    ("congestion ft --link node0001:99", "links at node0001"),
    ("congestion ft --link nod0001:1", "closest devices: node0001"),
    ("congestion ft --routing tabels", "closest: tables"),
    ("whatif ft --down nod0001:1", "closest devices: node0001"),
    ("whatif ft --drain node0999", "there is no host 'node0999'; closest"),
    ("whatif ft --add node0001:nod0002", "there is no device 'nod0002'"),
    ("whatif ft --routing-after ecpm --drain node0020", "closest: ecmp"),
    ("congestion tor --link node0001:1", "cluster 'ft' has it, 'tor' has not"),
    ("whatif tor --drain node0001", "cluster 'ft' has it"),
)


def test_unknown_names_are_reported_with_the_closest_or_where_they_are(busy: Almanac) -> None:
    busy.ok("generate", "fabric", "torus", "--sides", "2,3", "--cluster", "tor")
    for words, answer in UNKNOWN:
        assert answer in busy.error(*words.split())["reason"], words
    assert "has it" not in busy("whatif", "tor", "--drain", "nowhere").err


def test_advice_of_a_cluster_is_saved_and_repeats_itself(busy: Almanac) -> None:
    first = busy.json("advise", "jobs", "ft", *SEARCH)
    assert (first["complete"], {job["job"] for job in first["jobs"]}) == (True, {"1", "2"})
    gains = [job["gain"] for job in first["jobs"]]
    assert gains == sorted(gains, reverse=True)
    history = {row["placement"] for row in busy.json("history")}
    for job in first["jobs"]:
        assert {job["present_placement"], job["proposed_placement"] or job["present_placement"]} <= history
    assert busy.json("congestion", "ft")["evaluated"] == []
    again = busy.json("advise", "jobs", "ft", *SEARCH)
    assert {row["placement"] for row in busy.json("history")} == history
    present = [[(job["job"], job["present_placement"]) for job in one["jobs"]] for one in (first, again)]
    assert present[0] == present[1]
    shown = busy("advise", "jobs", "ft", *SEARCH)
    assert "possible gain, with the traffic of all other jobs" in shown.out


def test_an_interrupt_keeps_what_is_done_and_is_130(busy: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def interrupted(*given: object, **more: object) -> object:
        done.append(1)
        if len(done) > 1:
            raise KeyboardInterrupt
        return find_placement(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("mapping.questions.advise.find_placement", interrupted)
    call = busy("advise", "jobs", "ft", *SEARCH, "--json")
    assert (call.code, call.json["complete"], len(call.json["jobs"])) == (130, False, 1)
    assert len(busy.json("congestion", "ft")["evaluated"]) == 1


def test_a_change_is_shown_before_and_after(busy: Almanac) -> None:
    hot = busy.json("congestion", "ft", "--network")["links"][0]
    down = ("whatif", "ft", "--down", hot["link"])
    answer = busy.json(*down, "--drain", "node0001")
    change = {"down_links": [hot["link"]], "down_switches": [], "added": [], "drained": ["node0001"]}
    assert (answer["change"], answer["routing_after"]) == (change, "repaired-tables")
    jobs = {job["job"]: job for job in answer["jobs"]}
    assert (jobs["1"]["lost_hosts"], jobs["1"]["lost_ranks"]) == (["node0001"], 2)
    assert answer["before"]["network_congestion_seconds"] == pytest.approx(hot["seconds"])
    kept = busy.json(*down, "--routing-after", "tables")
    cut, left = (sum(job["unreachable_pairs"] for job in one["jobs"]) for one in (kept, answer))
    assert (cut > 0, left) == (True, 0)
    assert answer["unchanged"] == answer["before"] == kept["before"]
    shown = busy(*down).out
    assert "now, tables" in shown
    assert "after, repaired-tables" in shown
    assert "broken ones take a shortest path" in shown
    ideal = busy(*down, "--routing-after", "shortest-paths").out
    assert "unchanged, shortest-paths" in ideal
    assert "broken ones" not in ideal
    same = busy.json(*down, "--routing", "shortest-paths")
    assert (same["unchanged"], same["routing_after"]) == (same["before"], "shortest-paths")
    hosts = [f"node{number:04}" for number in (1, 2, 3, 4, 33, 34, 35, 36)]
    drained = busy.refused("whatif", "ft", *(word for host in hosts for word in ("--drain", host)))
    assert "job 1 is left without hosts" in drained


def test_what_means_nothing_is_a_usage_error(offline: Almanac) -> None:
    offline.refused("whatif", "ft", code=2)
    for options in (("--job", 1), ("--iterations", 5), ("--pin", "0=node0001"), ("--objective", "hop-bytes")):
        assert f"No such option '{options[0]}'" in offline.refused("advise", "jobs", "ft", *options, code=2)


COUNTERS = paths.DATA / "counters"


@pytest.fixture
def swept(almanac: Almanac) -> Almanac:
    for name, moment in (("ibnetdiscover.txt", "01-01"), ("sweep1-perfquery-1.txt", "01-02T12:00")):
        almanac.ok("ingest", COUNTERS / name, "--cluster", "ft", "--observed-at", f"2025-{moment}")
    return almanac


def test_the_first_sweep_shows_totals_since_the_counters_were_reset(swept: Almanac, tmp_path: Path) -> None:
    document = swept.json("ports", "ft", "--top", 1)
    (port,) = document["ports"]
    assert document["since_reset"]
    assert [document[key] for key in ("errors_since", "use_since", "over_limit")] == [None, None, 0]
    assert (port["sent_bytes"], port["sent_share"]) == (4 * 738298664, None)
    errors = tmp_path / "errors.csv"
    errors.write_text("guid,port,symbol_errors,link_downed\n0x2c90000100100,7,4711,2\n")
    swept.ok("ingest", errors, "--cluster", "ft", "--observed-at", "2025-01-02T11:00")
    shown = swept.ok("ports", "ft", "--at", "2025-01-02T11:30")
    assert "errors: 1 of" in shown.out
    assert "4,711 symbol errors, 2 link downs" in shown.out
    assert "what is new, and limits, need a second one" in shown.err


def test_ports_show_use_of_real_sweeps_and_errors_with_rates_and_limits(
    swept: Almanac, tmp_path: Path
) -> None:
    sweep = COUNTERS / "sweep2-perfquery-1.txt"
    swept.ok("ingest", sweep, "--cluster", "ft", "--observed-at", "2025-01-02T12:10")
    document = swept("ports", "ft", "--json", "--top", 100).json
    assert (document["counted"], document["with_errors"], document["over_limit"]) == (12, 0, 0)
    assert document["errors_since"] == document["use_since"] == "2025-01-02T12:00:00Z"
    ports = {port["link"]: port for port in document["ports"]}
    one = ports["leaf01:1"]
    # words of 4 bytes in 10 minutes on a link of 200 Gbit/s
    assert one["to"] == "node0001:1"
    assert one["sent_share"] == pytest.approx((1268435456 - 268436464) * 4 / 600 / 25e9, rel=1e-3)
    assert (one["at_least"], ports["leaf01:9"]["at_least"]) == (False, True)
    assert (one["estimated_sent_share"], one["estimated_sent_seconds"]) == (None, 0)
    for minute, errors, downs in ((15, 4711, 2), (25, 94711, 12)):
        sweep = tmp_path / f"{minute}.csv"
        sweep.write_text(f"guid,port,symbol_errors,link_downed\n0x2c90000100100,7,{errors},{downs}\n")
        swept.ok("ingest", sweep, "--cluster", "ft", "--observed-at", f"2025-01-02T12:{minute}")
    document = swept("ports", "ft", "--json", "--top", 1).json
    (port,) = document["ports"]
    assert (port["link"], port["device"], port["port"]) == ("leaf01:7", "leaf01", 7)
    rate = {"growth": 94711, "per_hour": pytest.approx(94711 / 25 * 60)}  # the first counters were zero
    assert port["errors"]["symbol_errors"] == {
        **rate,
        "at_least": False,
        "saturated": False,
        "error_limit": 10,
    }
    assert document["over_limit"] == 1
    shown = swept.ok("ports", "ft", "--top", 3)
    assert "new errors since 2025-01-02 12:00:00 UTC: 1 of 12 ports, 1 beyond the limits" in shown.out
    assert "94,711 symbol errors (227,306), 12 link downs (28.8)" in shown.out
    assert "estimated" not in shown.out
    later = swept("ports", "ft", "--since", "2025-01-02T12:20", "--json", "--top", 1).json
    assert later["ports"][0]["errors"]["link_downed"]["growth"] == 10
    assert later["use_since"] == later["errors_since"] == "2025-01-02T12:15:00Z"
    assert "│ leaf01:9 " in swept.ok("ports", "ft", "--at", "2025-01-02T12:05").out
    early = swept.ok("ports", "ft", "--at", "2025-01-02T11:00")
    assert "no errors and no traffic" in early.out
    assert "ft has no sweeps of port counters" in early.err
    swept.refused("ports", "ft", "--since", "soon", code=2)
    late = swept("ports", "ft", "--since", "2025-01-03", "--json")
    assert "no two sweeps in that period" in json.loads(late.err.splitlines()[-1])["reason"]


DATA = paths.DATA / "infiniband"


def test_a_spine_that_vanished_is_what_to_look_at_until_it_is_accepted(almanac: Almanac) -> None:
    now = datetime.now(UTC)
    for name, hours in (("fattree2-64-traffic", 30), ("fattree2-64-dead-spine", 2)):
        files = [DATA / name / "ibnetdiscover.txt", DATA / name / "opensm-lfts.dump"]
        moment = (now - timedelta(hours=hours)).isoformat()
        almanac.ok("ingest", *files, "--cluster", "ft", "--observed-at", moment)
    call = almanac("today", "ft")
    assert call.code == 4
    assert "Changed: 1 switch vanished, 8 cables vanished" in call.out
    assert "error, vanished: switch (1): switch spine02 is missing with 8 cables since" in call.out
    assert "Slowed jobs: no running jobs are known" in call.out
    assert "Best action: look at spine02 (vanished: switch)\n" in call.out
    assert "\n  almanac cluster check ft --only vanished --all" in call.out
    assert len(call.out.splitlines()) <= 40
    long_ago = (now - timedelta(days=9)).isoformat()
    assert "Changed: since the first scan, of " in almanac("today", "ft", "--since", long_ago).out
    metrics = almanac.ok("metrics").out
    assert 'almanac_vanished{cluster="ft",kind="switches"} 1.0' in metrics
    assert 'almanac_fabric_devices{cluster="ft",kind="switches"} 11.0' in metrics
    fields = almanac.json("today", "ft", "--fail-on", "never")
    assert fields["changes"]["switches_vanished"] == ["spine02"]
    assert (fields["running_job_count"], fields["jobs"], fields["failed_runs"]) == (0, [], [])
    since = (now - timedelta(hours=1)).isoformat()
    assert "Changed: unknown, no scan since then" in almanac("today", "ft", "--since", since).out
    assert almanac.ok("cluster", "accept", "ft").out == "switch spine02 is no longer missed\n"
    assert almanac.ok("cluster", "accept", "ft").out == "nothing is missing from ft\n"
    assert "no problems found" in almanac.ok("cluster", "check", "ft").out
    assert "almanac_vanished" in almanac.ok("metrics").out


def test_a_scan_that_lost_most_of_the_fabric_is_deleted(almanac: Almanac, registry: Registry) -> None:
    for minute, leaves in enumerate((9, 1)):
        registry.save(Intake(cluster="ft", observed_at=at(minute), fabric=fat_tree(leaves=leaves)))
    out = almanac("today", "ft").out
    assert "only 5 of 29 hosts and switches are left: is this scan a part" in out
    (command,) = re.findall(r"^  almanac (observation delete \S+)$", out, re.MULTILINE)
    almanac.ok(*command.split(), "--yes")
    assert "no problems found" in almanac.ok("cluster", "check", "ft").out


def test_findings_and_failed_ingests_are_shown_and_decide_the_exit_code(almanac: Almanac) -> None:
    tree = DATA / "fattree2-64-traffic"
    plan = paths.DATA / "formats" / "fabric.ndt"
    now = datetime.now(UTC).isoformat()
    given = ["ingest", "--cluster", "ft", "--observed-at", now]
    almanac.ok(*given, tree / "ibnetdiscover.txt", plan)
    almanac.ok("today", "ft", "--fail-on", "note")
    almanac.ok(*given, DATA / "fattree2-64-dead-spine" / "ibnetdiscover.txt", "--dry-run")
    later = (datetime.now(UTC) + timedelta(seconds=60)).isoformat()
    scan = DATA / "fattree2-64-dead-spine" / "ibnetdiscover.txt"
    almanac.ok("ingest", "--cluster", "ft", "--observed-at", later, scan)
    call = almanac("today", "ft", "--fail-on", "warning")
    assert call.code == 4
    assert "warning, wiring: missing (1): spine02 is not in the fabric: 8 planned" in call.out
    assert almanac("today", "ft").code == 4
    assert almanac("ingest", "--cluster", "ft", plan.with_name("nothing.ndt")).code == 1
    assert "Data: 1 ingest failed, 1 source stale or failing" in almanac("today", "ft").out
