"""What is hot, advice for cron and imagined changes, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mapping.placement.search.placing import find_placement
from tests.almanac.conftest import Almanac
from tests.support import paths

DATA = paths.DATA
FABRIC = DATA / "infiniband" / "fattree2-64-traffic"
PROFILE = DATA / "openmpi" / "npb_cg_S_16.tar.gz"
JOB = """JobId={job} JobName={name}
   UserId={user}(1000) GroupId=x(1000) Account=x
   JobState=RUNNING Reason=None
   SubmitTime=2025-08-06T16:00:00 StartTime=2025-08-06T16:20:05 EndTime=Unknown
   Partition=batch NodeList={hosts}
   NumNodes=8 NumCPUs=16 NumTasks=16 CPUs/Task=1
     Nodes={hosts} CPU_IDs=0-1 Mem=0 GRES=

"""
MARKUP = "[red]eve[/red]"
SEARCH = ("--steps", 3000, "--workers", 1)


@pytest.fixture
def cluster(embedded: Almanac) -> Almanac:
    """The fabric and a profile; nothing runs."""
    given = (FABRIC / "ibnetdiscover.txt", FABRIC / "opensm-lfts.dump")
    assert embedded("ingest", *given, "--cluster", "ft").code == 0
    assert embedded("ingest", PROFILE, "--name", "cg").code == 0
    return embedded


@pytest.fixture
def busy(cluster: Almanac, tmp_path: Path) -> Almanac:
    """Jobs 1 and 2 share some leaf switches; job 3 has no profile."""
    jobs = (("1", "ann", "node[0001-0004,0033-0036]"), ("2", MARKUP, "node[0005-0008,0037-0040]"))
    answer = [JOB.format(job=job, name="cg", user=user, hosts=hosts) for job, user, hosts in jobs]
    answer.append(JOB.format(job="3", name="other", user="cid", hosts="node[0009-0016]"))
    path = tmp_path / "jobs.txt"
    path.write_text("".join(answer))
    call = cluster("ingest", path, "--cluster", "ft")
    assert call.code == 0, call.err
    for job in ("1", "2"):
        assert cluster("job", "attach", job, "cg").code == 0
    return cluster


def test_the_hottest_links_name_whose_traffic_is_on_them(busy: Almanac) -> None:
    answer = busy("congestion", "ft", "--top", 5, "--json").json
    assert (answer["cluster"], answer["routing"], answer["running_job_count"]) == ("ft", "tables", 3)
    assert (answer["without_profile"], answer["left_out"], set(answer["evaluated"])) == (
        ["3"],
        [],
        {"1", "2"},
    )
    assert len(answer["links"]) == 5
    seconds = [link["seconds"] for link in answer["links"]]
    assert seconds == sorted(seconds, reverse=True)
    for link in answer["links"]:
        assert sum(user["bytes"] for user in link["users"]) == pytest.approx(link["bytes"])
    assert {job["job"]: job["user"] for job in answer["jobs"]} == {"1": "ann", "2": MARKUP}
    assert all(0 < job["share"] <= 1.0 for job in answer["jobs"])
    shared = busy("congestion", "ft", "--top", 999, "--json").json["links"]
    both = max((link for link in shared if len(link["users"]) == 2), key=lambda link: link["seconds"])
    assert answer["worst_pair"]["link"] == both["link"]


def test_slowdowns_need_the_time_of_an_iteration(busy: Almanac) -> None:
    (row, _) = busy("congestion", "ft", "--json").json["jobs"]
    assert [row[key] for key in ("iteration_seconds", "iteration_from", "slowdown")] == [None, None, None]
    assert row["alone_seconds"] > 0
    assert row["link"]
    shown = busy("congestion", "ft")
    assert "unknown" in shown.out
    assert "almanac job attach JOB PROFILE --iteration-seconds" in shown.err
    for job in ("1", "2"):
        answer = busy("job", "attach", job, "cg", "--iteration-seconds", 3600, "--json").json
        assert (answer["iteration_seconds"], answer["iteration_from"]) == (3600.0, "stated")
    rows = busy("congestion", "ft", "--json").json["jobs"]
    assert all(1.0 <= row["slowdown"] < 1.001 for row in rows)
    assert "3600 s (stated)" in busy("congestion", "ft").out
    busy("job", "attach", "1", "cg", "--iteration-seconds", 1e-9)
    wrong = busy("congestion", "ft")
    assert "job 1: its worst link is busy longer than its time of an iteration" in wrong.err
    assert "--iteration-seconds" not in wrong.err  # both times are stated
    refused = busy("job", "attach", "1", "cg", "--iteration-seconds", 0)
    assert (refused.code, "must be above zero" in refused.err) == (1, True)


def test_one_link_is_shown_with_the_ranks_that_load_it(busy: Almanac) -> None:
    (hot, *_) = busy("congestion", "ft", "--network", "--json").json["links"]
    answer = busy("congestion", "ft", "--link", hot["link"], "--top", 10_000, "--json").json
    assert [link["link"] for link in answer["links"]] == [hot["link"]]
    assert sum(pair["bytes"] for pair in answer["rank_pairs"]) == pytest.approx(hot["bytes"])
    shown = busy("congestion", "ft", "--link", hot["link"])
    assert "pairs of ranks on this link: " in shown.out
    assert "no traffic is known of 1 of 3 running jobs, which have no profile: 3" in shown.err


def test_tables_name_their_assumption_and_take_no_name_for_markup(busy: Almanac) -> None:
    shown = busy("congestion", "ft")
    assert shown.code == 0
    assert "2 of 3 running jobs with traffic; routing: tables" in shown.out
    assert "once per iteration" in shown.out
    assert MARKUP in shown.out


def test_without_running_jobs_or_profiles_the_remedy_is_shown(cluster: Almanac, tmp_path: Path) -> None:
    idle = cluster("congestion", "ft")
    assert (idle.code, "0 of 0 running jobs" in idle.out) == (0, True)
    assert "no running jobs known on ft" in idle.err
    assert "almanac ingest --cluster ft" in idle.err
    assert cluster("advise", "jobs", "ft").code == 0
    path = tmp_path / "jobs.txt"
    path.write_text(JOB.format(job="3", name="other", user="cid", hosts="node[0009-0016]"))
    assert cluster("ingest", path, "--cluster", "ft").code == 0
    bare = cluster("advise", "jobs", "ft")
    assert (bare.code, "almanac job attach JOB PROFILE" in bare.err) == (0, True)
    before = cluster("congestion", "ft", "--at", "2025-08-06T10:00", "--json")
    assert (before.code, before.error["error"]) == (1, "UnknownName")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("congestion", "fx"), "closest: ft"),
        (("congestion", "ft", "--link", "node0001:99"), "links at node0001"),
        (("congestion", "ft", "--link", "nod0001:1"), "closest devices: node0001"),
        (("congestion", "ft", "--routing", "tabels"), "closest: tables"),
        (("whatif", "ft", "--down", "nod0001:1"), "closest devices: node0001"),
        (("whatif", "ft", "--drain", "node0999"), "there is no host 'node0999'; closest"),
        (("whatif", "ft", "--add", "node0001:nod0002"), "there is no device 'nod0002'"),
        (("whatif", "ft", "--routing-after", "ecpm", "--drain", "node0020"), "closest: ecmp"),
    ],
)
def test_unknown_names_are_reported_with_the_closest(
    busy: Almanac, words: tuple[str, ...], answer: str
) -> None:
    call = busy(*words, "--json")
    assert call.code == 1
    assert answer in call.error["reason"]


def test_a_link_of_another_cluster_names_that_cluster(busy: Almanac) -> None:
    assert busy("generate", "fabric", "torus", "--sides", "2,3", "--cluster", "tor").code == 0
    call = busy("congestion", "tor", "--link", "node0001:1")
    assert call.code == 1
    assert "cluster 'ft' has it, 'tor' has not" in call.err
    assert "cluster 'ft' has it" in busy("whatif", "tor", "--drain", "node0001").err
    assert "has it" not in busy("whatif", "tor", "--drain", "nowhere").err


def test_advice_of_a_cluster_is_saved_and_repeats_itself(busy: Almanac) -> None:
    first = busy("advise", "jobs", "ft", *SEARCH, "--json")
    assert (first.code, first.json["complete"]) == (0, True)
    jobs = {job["job"]: job for job in first.json["jobs"]}
    assert set(jobs) == {"1", "2"}
    gains = [job["gain"] for job in first.json["jobs"]]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 1.0
    history = {row["placement"] for row in busy("history", "--json").json}
    for job in jobs.values():
        assert {job["present_placement"], job["proposed_placement"] or job["present_placement"]} <= history
        assert job["present_seconds"] >= job["proposed_seconds"] > 0
    assert busy("congestion", "ft", "--json").json["evaluated"] == []
    again = busy("advise", "jobs", "ft", *SEARCH, "--json").json
    assert {row["placement"] for row in busy("history", "--json").json} == history
    assert [(job["job"], job["present_placement"]) for job in again["jobs"]] == [
        (job["job"], job["present_placement"]) for job in first.json["jobs"]
    ]
    shown = busy("advise", "jobs", "ft", *SEARCH)
    assert "possible gain, with the traffic of all other jobs" in shown.out


def test_an_interrupt_keeps_what_is_done_and_exits_with_130(
    busy: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []

    def interrupted(*given: object, **more: object) -> object:
        done.append(1)
        if len(done) > 1:
            raise KeyboardInterrupt
        return find_placement(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("mapping.service.advising.find_placement", interrupted)
    call = busy("advise", "jobs", "ft", *SEARCH, "--json")
    assert (call.code, call.json["complete"], len(call.json["jobs"])) == (130, False, 1)
    assert len(busy("congestion", "ft", "--json").json["evaluated"]) == 1


def test_options_of_one_placement_mean_nothing_for_a_cluster(busy: Almanac) -> None:
    for options in (("--job", 1), ("--iterations", 5), ("--pin", "0=node0001"), ("--objective", "hop-bytes")):
        call = busy("advise", "jobs", "ft", *options)
        assert call.code == 2
        assert f"No such option '{options[0]}'" in call.err


def test_jobs_that_none_could_be_looked_at_fail(cluster: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    answer = JOB.format(job="7", name="x", user="u", hosts="node[0001-0008]")
    path.write_text(answer.replace("NumTasks=16", "NumTasks=12"))
    assert cluster("ingest", path, "--cluster", "ft").code == 0
    assert cluster("job", "attach", "7", "cg").code == 0
    call = cluster("advise", "jobs", "ft")
    assert call.code == 1
    assert "job 7 is not included: 12 ranks are placed, the profile has 16" in call.err


def test_a_change_is_shown_before_and_after(busy: Almanac) -> None:
    hot = busy("congestion", "ft", "--network", "--json").json["links"][0]
    answer = busy("whatif", "ft", "--down", hot["link"], "--drain", "node0001", "--json").json
    assert answer["change"] == {
        "down_links": [hot["link"]],
        "down_switches": [],
        "added": [],
        "drained": ["node0001"],
    }
    assert hot["link"] not in [link["link"] for link in answer["links"]]
    jobs = {job["job"]: job for job in answer["jobs"]}
    assert (jobs["1"]["lost_hosts"], jobs["1"]["lost_ranks"]) == (["node0001"], 2)
    assert jobs["2"]["lost_ranks"] == jobs["2"]["unreachable_pairs"] == 0
    assert answer["before"]["network_congestion_seconds"] == pytest.approx(hot["seconds"])
    kept = busy("whatif", "ft", "--down", hot["link"], "--routing-after", "tables", "--json").json
    assert sum(job["unreachable_pairs"] for job in kept["jobs"]) > 0
    assert answer["routing_after"] == "repaired-tables"
    assert answer["unchanged"] == answer["before"] == kept["before"]
    assert sum(job["unreachable_pairs"] for job in answer["jobs"]) == 0
    shown = busy("whatif", "ft", "--down", hot["link"])
    assert "now, tables" in shown.out
    assert "after, repaired-tables" in shown.out
    assert "broken ones take a shortest path" in shown.out
    ideal = busy("whatif", "ft", "--down", hot["link"], "--routing-after", "shortest-paths")
    assert "unchanged, shortest-paths" in ideal.out
    assert "broken ones" not in ideal.out
    same = busy("whatif", "ft", "--down", hot["link"], "--routing", "shortest-paths", "--json").json
    assert same["unchanged"] == same["before"]
    assert same["routing_after"] == "shortest-paths"


def test_a_drain_of_all_hosts_of_a_job_names_it(busy: Almanac) -> None:
    hosts = [f"node{number:04}" for number in (1, 2, 3, 4, 33, 34, 35, 36)]
    call = busy("whatif", "ft", *(word for host in hosts for word in ("--drain", host)))
    assert call.code == 1
    assert "job 1 is left without hosts" in call.err


def test_a_change_of_nothing_is_a_usage_error(offline: Almanac) -> None:
    assert offline("whatif", "ft").code == 2
