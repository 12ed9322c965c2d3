"""Fields of Slurm's files: host lists, times, counts, and steps."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.jobs import slurm_fields
from ingest.formats.jobs.hostlists import MAX_HOSTS, expand
from ingest.formats.jobs.slurm_fields import JobList, Where
from ingest.formats.jobs.slurm_steps import SLURM_STEPS
from ingest.options import Options
from ingest.pipeline import plan
from registry.errors import InputError
from registry.model import Job
from registry.model.placement import order_of_job
from tests.support.inputs import DATA, parse, read, refusal

HERE = Where("jobs.txt", 3, "a row")


def job(id: str, hosts: int = 1) -> Job:
    return Job(id=id, state="RUNNING", hosts=tuple(f"n{k}" for k in range(hosts)), slots=(1,) * hosts)


def rank_by_rank(ranks: int, room: list[int]) -> list[int]:
    """Slurm's own way: rounds over the hosts, one rank each while there is room, then regardless."""
    taken = [0] * len(room)
    regardless, cycle = False, 0
    while sum(taken) < ranks:
        more = False
        for host, slots in enumerate(room):
            if sum(taken) < ranks and (cycle < slots or regardless):
                taken[host] += 1
                more = more or cycle + 1 < slots
        regardless = regardless or not more
        cycle += 1
    return taken


@given(st.integers(1, 60), st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_ranks_are_distributed_as_slurm_does(ranks: int, room: list[int]) -> None:
    assert slurm_fields.ranks_by_host(ranks, room) == tuple(
        max(1, count) for count in rank_by_rank(ranks, room)
    )


def test_a_distribution_is_the_one_over_hosts() -> None:
    over_hosts = {
        "Block": "block", "CBlock": "cyclic", "BCyclic": "block", "Cyclic,Block": "cyclic",
        "plane=4": "plane", "Arbitrary": "arbitrary", "Unknown": "", "": "",
    }  # fmt: skip
    assert {printed: slurm_fields.parse_distribution(printed) for printed in over_hosts} == over_hosts


def test_states_times_and_ids_and_steps_are_those_of_slurm() -> None:
    assert slurm_fields.parse_state("CANCELLED by 0", HERE) == "CANCELLED"
    assert slurm_fields.parse_time("2026-01-31T12:00:00", HERE) == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert slurm_fields.parse_time("Unknown", HERE) is None
    assert slurm_fields.parse_epoch(60, HERE) == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    assert slurm_fields.parse_epoch(0, HERE) is None
    assert (slurm_fields.array_id("3", "1"), slurm_fields.array_id("3", "4-6%2")) == ("3_1", "3_[4-6%2]")
    assert slurm_fields.het_id("7", "1") == "7+1"
    with pytest.raises(InputError, match="not a time such as"):
        slurm_fields.parse_time("soon", HERE)
    steps = (("4711.0", "halo"), ("4711.batch", "batch"), ("4711.0", "orted"))
    assert [slurm_fields.is_application(*step) for step in steps] == [True, False, False]


def test_counts_slots_and_tasks_of_hosts() -> None:
    assert [slurm_fields.parse_count(text, "CPUS", HERE) for text in ("", "12", "9" * 9)] == [
        0,
        12,
        999_999_999,
    ]
    for text in ("-1", "1" * 10):
        with pytest.raises(InputError, match=f"CPUS is not a number: '{text}'"):
            slurm_fields.parse_count(text, "CPUS", HERE)
    assert [slurm_fields.even_slots(*given) for given in ((7, 3), (0, 2), (5, 0))] == [(3, 3, 3), (1, 1), ()]
    assert slurm_fields.parse_tasks_per_node("3,2(x2)", 3, HERE) == (3, 2, 2)
    assert slurm_fields.parse_tasks_per_node("4", 3, HERE) == (4, 4, 4)
    with pytest.raises(InputError, match="not the tasks of 2 hosts"):
        slurm_fields.parse_tasks_per_node("3,2(x2)", 2, HERE)


def test_slots_that_cannot_be_are_an_even_share_and_a_job_without_hosts_has_none_that_are_guessed() -> None:
    for slots, shared, guessed in (([2, 0], (1, 1), True), ([2, 1], (2, 1), False), ([], (), False)):
        about = slurm_fields.make_job(
            HERE, state="", times=(None,) * 3, hosts="ab"[: len(slots)], slots=slots, ranks=len(slots),
            guessed=not slots, id="7",
        )  # fmt: skip
        assert (about.slots, about.guessed) == (shared, guessed)


@pytest.mark.parametrize(
    ("columns", "lines", "rows"),
    [
        ("JOBID STATE", ["7", "8|RUNNING"], ["7", "8|RUNNING"]),
        ("JOBID STATE", ["cut off"], ["cut off"]),
        ("JOBID STATE TEXT NODES", ["7|R|of", "8|R|no row", "it|n1"], ["7|R|of\n8|R|no row\nit|n1"]),
        ("JOBID STATE TEXT NODES", ["7|R|of", "8|R||n1"], ["7|R|of", "8|R||n1"]),
    ],
)
def test_lines_that_begin_no_row_belong_to_the_row_before(
    columns: str, lines: list[str], rows: list[str]
) -> None:
    signs = {"JOBID": slurm_fields.ID_CELL, "STATE": slurm_fields.STATE_CELL}
    reader = slurm_fields.RowsBetweenBars(columns.split(), ("TEXT",), ("TEXT",), name="NAME", signs=signs)
    assert [row for _, row in reader.split(enumerate(lines))] == rows


def test_a_repeated_job_is_an_error_or_another_run() -> None:
    once, again = JobList("jobs.txt"), JobList("jobs.txt", requeued=True)
    for jobs in (once, again):
        jobs.add(job("1"), HERE)
    with pytest.raises(InputError, match="job 1 is repeated"):
        once.add(job("1", 2), HERE)
    again.add(job("1", 2), HERE)
    parsed = again.parsed((0, "job has", "jobs have", "nothing"), (2, "job has", "jobs have", "something"))
    assert [len(found.hosts) for found in parsed.jobs if found is not None] == [2]
    assert parsed.warnings == ("2 jobs have something", "1 earlier run of requeued jobs is ignored")


def test_jobs_and_hosts_are_bounded_and_required() -> None:
    with pytest.raises(InputError, match="no jobs found"):
        JobList("jobs.txt").parsed()
    for jobs in (JobList("jobs.txt", jobs_left=1), JobList("jobs.txt", hosts_left=3)):
        jobs.add(job("1", 2), HERE)
        with pytest.raises(InputError, match="split the file by time"):
            jobs.add(job("2", 2), HERE)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node1", "node1"),
        ("node[0001-0003,0007]", "node0001 node0002 node0003 node0007"),
        ("node[08-11]", "node08 node09 node10 node11"),
        ("node[8-11]", "node8 node9 node10 node11"),
        ("node[1-2]-ib0.site.org", "node1-ib0.site.org node2-ib0.site.org"),
        ("c[0-1]n[0-2]", "c0n0 c0n1 c0n2 c1n0 c1n1 c1n2"),
        ("login,node[1-2],gpu[7]", "login node1 node2 gpu7"),
        ("n1 n2\n n3,\tn4,", "n1 n2 n3 n4"),
        ("a-p1-dgx-[01-02]-c01", "a-p1-dgx-01-c01 a-p1-dgx-02-c01"),
        ("", ""),
    ],
)
def test_expressions_name_their_hosts(text: str, hosts: str) -> None:
    assert expand(text) == tuple(hosts.split())


def test_the_order_given_is_kept() -> None:
    assert expand("node[5,1-2],login,node[4,3]") == ("node5", "node1", "node2", "login", "node4", "node3")
    assert expand("c[1,0]n[2,0-1]") == ("c1n2", "c1n0", "c1n1", "c0n2", "c0n0", "c0n1")
    assert expand(read("slurm/hostlist.txt").decode()) == ("node0001", "node0002", "node0005", "node0064")


FAULTY = """n[1- n1] n[3-1] n[8-011] n[a-b] n[] n[0-6/3] n[٣] n[1,] n[-1] n[1-2][3-4] @all n1!n2 n%s n* $(id)
[1]é n[2,1] n[0-999999999] n[0-9999]x[0-9999] n[0-99999999999999999999]"""


@pytest.mark.parametrize("part", [*FAULTY.split(), "[0-1]a" * 40])
def test_a_faulty_part_is_named(part: str) -> None:
    text = f"ok,n1,{part},ok2" if part in ("n[a-b]", "n[2,1]") else f"ok,{part}"
    with pytest.raises(InputError) as caught:
        expand(text, path="jobs.txt", line=7)
    assert (caught.value.path, caught.value.line) == ("jobs.txt", 7)
    assert caught.value.text == part[:197] + "..." if len(part) > 200 else part


def test_the_limit_holds_for_the_whole_expression() -> None:
    half = MAX_HOSTS // 2
    assert len(expand(f"a[1-{half}],b[1-{half}]")) == MAX_HOSTS
    with pytest.raises(InputError, match="more than"):
        expand(f"a[1-{half}],b[1-{half}],c[1-1]")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 999)), unique=True))
def test_single_names_come_back_as_they_are(names: list[tuple[str, int]]) -> None:
    hosts = tuple(f"{letter}{number:03}" for letter, number in names)
    assert expand(",".join(hosts)) == hosts
    assert expand(",".join(f"{letter}[{number:03}]" for letter, number in names)) == hosts


@given(st.text(max_size=40) | st.text(alphabet="n[]-,0123/ ", max_size=40))
def test_any_text_is_expanded_or_refused(text: str) -> None:
    try:
        hosts = expand(text)
    except InputError:
        return
    assert len(set(hosts)) == len(hosts)
    assert all(host and not host.isspace() for host in hosts)


NAMES = st.from_regex(r"[A-Za-z0-9_.:-]{1,12}", fullmatch=True)


@given(NAMES, st.just("") | NAMES, st.integers(0, 10**6), st.integers(0, 30), st.integers(1, 9))
def test_what_is_expanded_without_the_library_is_what_the_library_expands(
    before: str, behind: str, first: int, more: int, width: int
) -> None:
    last = first + more
    if len(f"{first:0{width}d}") != len(str(last).zfill(width)):
        return
    for text in (before, f"{before}[{first:0{width}d}-{last:0{width}d}]{behind}"):
        try:
            named = tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
        except (NodeSetException, ValueError):
            continue
        assert expand(text) == named


SAMPLE = read("slurm/scontrol_show_steps.txt")


def test_the_largest_step_of_each_job_gives_ranks_and_distribution() -> None:
    """Jobs 7 and 8 are 7+0 and 7+1 in scontrol_show_jobs_d.txt, of one srun: other numbers there."""
    parsed = parse(SLURM_STEPS, SAMPLE)
    found = {job.id: (job.ranks, job.distribution) for job in parsed.jobs}
    assert found == {"2": (40, "block")}
    assert all((job.hosts, job.state, job.started_at) == ((), "", None) for job in parsed.jobs)
    assert parsed.warnings[1] == "4 steps of scripts and daemons are ignored"
    assert parsed.warnings[2].startswith("2 steps of heterogeneous jobs are ignored")
    lines = [record.replace("\n", "") for record in SAMPLE.decode().split("\n\n")]
    assert parse(SLURM_STEPS, "\n".join(lines)).jobs == parsed.jobs


def test_the_record_of_the_job_and_its_steps_together_give_the_host_of_every_rank() -> None:
    paths = [DATA / "slurm/scontrol_show_jobs_d.txt", DATA / "slurm/scontrol_show_steps.txt"]
    intake = plan(paths, Options(cluster="c"))
    record, step = [job for job in intake.jobs if job.id == "2"]
    assert (record.distribution, step.distribution) == ("", "block")
    assert len(order_of_job(record, distribution=step.distribution).hosts) == step.ranks


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("x\n", "a line outside of any step", 1),
        ("StepId=x\n", "not a step", 1),
        ("StepId=1.0 UserId=0\n   Nodes=1 Tasks=4 Name=a Network=(null)\n", "truncated", 1),
        ("StepId=1.0 UserId=0\n   Nodes=1 Name=a Network=x\n   SrunHost:Pid=a:1\n", "truncated", 1),
        ("StepId=1.0 UserId=0 Tasks=2 SrunHost:Pid=a:1\n" * 2, "a step is repeated", 2),
        ("StepId=1.batch UserId=0 Tasks=1 SrunHost:Pid=a:1\n", "no step of an application", None),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_line(text: str, reason: str, line: int | None) -> None:
    error = refusal(SLURM_STEPS, text)
    assert reason in error.reason
    assert error.line == line


def test_daemons_of_launchers_are_no_application() -> None:
    steps = ((9, "orted", "Block"), (4, "a b", "Plane,Block"), (2, "x", "Block"))
    text = "".join(
        f"StepId=3_1.{at} UserId=0\n Tasks={tasks} Name={name} Network=x\n Dist={how}\n SrunHost:Pid=a:1\n\n"
        for at, (tasks, name, how) in enumerate(steps)
    )
    (job,) = parse(SLURM_STEPS, text).jobs
    assert (job.id, job.ranks, job.distribution) == ("3_1", 4, "plane")


def test_a_long_line_of_blanks_takes_no_time_for_each_pair_of_them() -> None:
    text = SAMPLE.decode().replace(" Network=", " " * 1_000_000 + "Network=", 1)
    assert parse(SLURM_STEPS, text).jobs == parse(SLURM_STEPS, SAMPLE).jobs
    cut = SAMPLE.decode().replace("Network=", " " * 1_000_000)
    assert len(parse(SLURM_STEPS, cut).jobs) == 1
