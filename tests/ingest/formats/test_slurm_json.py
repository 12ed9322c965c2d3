"""Jobs in JSON: Slurm's, older and newer shapes, the same jobs as in text; and Flux's resource set R.

Fields of Slurm's files: host lists, times, counts, and steps.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats import slurm_fields
from ingest.formats.flux import FLUX_R
from ingest.formats.hostlists import MAX_HOSTS, expand
from ingest.formats.slurm_fields import JobList, Where
from ingest.formats.slurm_json import SLURM_JSON
from ingest.formats.slurm_scontrol import SLURM_SCONTROL, SLURM_STEPS
from ingest.formats.slurm_tables import SLURM_SACCT
from ingest.options import Options
from ingest.parsed import Format
from ingest.pipeline import plan
from ingest.reading import source
from registry.errors import InputError
from registry.model import Job
from registry.model.placement import order_of_job
from tests.support.inputs import DATA, file, parse, read, refusal, survives

SACCT = read("slurm/sacct.json.gz")
SQUEUE = read("slurm/squeue.json.gz")


def number(value: int | None) -> dict[str, Any]:
    """A number as newer versions write it."""
    return {"set": value is not None, "infinite": False, "number": value or 0}


NEWER: dict[str, Any] = {
    "job_id": 333, "array_job_id": number(0), "array_task_id": number(None), "array_task_string": "",
    "het_job_id": number(0), "het_job_offset": number(0),
    "name": "halo", "user_name": "ann", "account": "proj", "partition": "gpu",
    "job_state": ["RUNNING", "CONFIGURING"], "nodes": "gpu[001-002]", "node_count": number(2),
    "cpus": number(24), "tasks": number(6), "tasks_per_node": number(0), "cpus_per_task": number(4),
    "submit_time": number(1746693311), "start_time": number(1746693312), "end_time": number(0),
    "job_resources": {"nodes": {"count": 2, "list": "gpu[001-002]", "allocation": [
        {"name": "gpu001", "cpus": {"count": 16, "used": 0}},
        {"name": "gpu002", "cpus": {"count": 8, "used": 0}},
    ]}, "cpus": 24},
}  # fmt: skip
"""A job in the shape of data_parser v0.0.41."""
ACCOUNTED: dict[str, Any] = {
    "job_id": 42, "name": "halo", "user": "ann", "account": "proj", "partition": "cpu",
    "array": {"job_id": 40, "task_id": number(2)}, "het": {"job_id": 0, "job_offset": number(None)},
    "state": {"current": ["COMPLETED"], "reason": "None"}, "nodes": "n[1-2]",
    "time": {"submission": 100, "start": 120, "end": 180, "elapsed": 60},
    "tres": {"allocated": [{"type": "cpu", "count": 8}]},
    "steps": [
        {"step": {"id": "42.batch", "name": "batch"}, "tasks": {"count": 1}, "nodes": {"count": 1}},
        {"step": {"id": "42.0", "name": "halo"}, "tasks": {"count": 6},
         "nodes": {"count": 2, "range": "n[1-2]"}, "task": {"distribution": "Cyclic,Block"}},
    ],
}  # fmt: skip


def jobs(*records: Any) -> dict[str, Job]:
    return {job.id: job for job in parse(SLURM_JSON, json.dumps({"jobs": list(records)})).jobs}


def changed(record: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return copy.deepcopy(record) | fields


@pytest.mark.parametrize(
    ("content", "parser", "text", "fields"),
    [
        (SQUEUE, SLURM_SCONTROL, "scontrol_show_jobs_d.txt", ("name", "user")),
        (SACCT, SLURM_SACCT, "sacct_P.txt", ("distribution", "submitted_at")),
    ],
    ids=["squeue", "sacct"],
)
def test_json_gives_the_same_as_text(
    content: bytes, parser: Format, text: str, fields: Sequence[str]
) -> None:
    facts = attrgetter("state", "hosts", "slots", "ranks", "started_at", "ended_at", *fields)
    one, other = parse(SLURM_JSON, content), parse(parser, read(f"slurm/{text}"))
    assert {job.id: facts(job) for job in one.jobs} == {job.id: facts(job) for job in other.jobs}


@pytest.mark.parametrize(
    "nodes",
    ["n[1-2]", ["n1", "n2"], {"count": 2, "range": "n[1-2]"}, {"list": ["n1", "n2"]}, {"list": "n[1-2]"}],
)
def test_hosts_may_be_a_list_or_an_object(nodes: Any) -> None:
    assert jobs(changed(ACCOUNTED, nodes=nodes))["40_2"].hosts == ("n1", "n2")


@pytest.mark.parametrize(
    ("written", "slots"), [(3, (3, 3)), (number(3), (3, 3)), ("3(x2)", (3, 3)), ("5,1", (5, 1))]
)
def test_tasks_per_host_may_be_written_in_several_ways(written: Any, slots: tuple[int, ...]) -> None:
    assert jobs(changed(NEWER, tasks_per_node=written))["333"].slots == slots


def test_a_job_may_be_called_none_and_ranks_without_resources_are_spread_evenly() -> None:
    assert jobs(changed(NEWER, name="None"))["333"].name == "None"
    assert jobs(changed(NEWER, name=None))["333"].name == ""
    assert jobs(changed(NEWER, job_resources=None, tasks=5))["333"].slots == (3, 3)


def test_steps_of_daemons_and_earlier_runs_of_requeued_jobs_do_not_count() -> None:
    daemons = copy.deepcopy(ACCOUNTED)
    daemons["steps"][1]["step"]["name"] = "prted"
    job = jobs(daemons)["40_2"]
    assert (job.ranks, job.slots, job.distribution) == (0, (4, 4), "")
    earlier = changed(ACCOUNTED, state={"current": ["NODE_FAIL"]})
    parsed = parse(SLURM_JSON, json.dumps({"jobs": [earlier, ACCOUNTED]}))
    assert [job.state for job in parsed.jobs] == ["COMPLETED"]
    assert parsed.warnings == ("1 earlier run of requeued jobs is ignored",)


@pytest.mark.parametrize(
    ("fields", "id"),
    [
        ({"array_job_id": number(40), "array_task_id": number(0)}, "40_0"),
        ({"array_job_id": 40, "array_task_id": 7}, "40_7"),
        ({"array_job_id": 40, "array_task_id": None, "array_task_string": "3-6%2"}, "40_[3-6%2]"),
        ({"het_job_id": number(7), "het_job_offset": number(1)}, "7+1"),
        ({"job_id": number(9)}, "9"),
    ],
)
def test_ids_are_those_that_slurm_prints(fields: dict[str, Any], id: str) -> None:
    assert list(jobs(changed(NEWER, **fields))) == [id]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (7, "a job is not a JSON object"),
        (changed(NEWER, job_id=None), "the job has no job_id"),
        (changed(NEWER, job_state=[]), "not a job state"),
        (changed(NEWER, nodes="n[1-"), "unpaired bracket in a host list"),
        (changed(NEWER, nodes="gpu[001-003]"), "the nodes of job_resources lack hosts of the job"),
        (changed(NEWER, tasks=-1), "not a whole number: -1"),
        (changed(NEWER, tasks=[]), "not a whole number: []"),
        (changed(NEWER, tasks=True), "not a whole number: True"),
        (changed(NEWER, start_time=10**11 * 9), None),
        (changed(NEWER, tasks_per_node="3(x5)"), "not the tasks of 2 hosts: '3(x5)'"),
        (changed(ACCOUNTED, steps={}), "expected a list"),
    ],
)
def test_a_job_that_cannot_be_read_is_refused(record: Any, reason: str | None) -> None:
    assert reason in (None, refusal(SLURM_JSON, json.dumps({"jobs": [record]})).reason)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (SQUEUE[: len(SQUEUE) // 2], SQUEUE[: len(SQUEUE) // 2].count(b"\n") + 1),
        (b'{"jobs": [], "x": ' + b"[" * 100_000, 1),
        (b'{"jobs": [{"job_id": ' + b"9" * 5000 + b"}]}", 1),
        (b'{"jobs": {}}', 1),
        (b'{"jobs": []}', None),
        (b"[1]", 1),
    ],
)
def test_what_is_no_list_of_jobs_is_refused(content: bytes, line: int | None) -> None:
    assert refusal(SLURM_JSON, content).line == line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([NEWER, ACCOUNTED]), st.data())
def test_any_value_deep_inside_is_read_or_refused(record: dict[str, Any], data: st.DataObject) -> None:
    damaged_record = copy.deepcopy(record)
    at: Any = damaged_record
    while True:
        keys = sorted(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.booleans()):
            at[key] = data.draw(JSON)
            break
        at = at[key]
    survives(SLURM_JSON, [file(json.dumps({"jobs": [damaged_record]}))])


@pytest.mark.parametrize("version", ["v0.0.40", "v0.0.41"])
def test_samples_after_the_published_schema_of_newer_versions_are_read(version: str) -> None:
    found = {job.id: job for job in parse(SLURM_JSON, read(f"slurm/squeue_{version}.json")).jobs}
    assert list(found) == ["11", "13", "12_3"]
    facts = [(job.state, job.hosts, job.slots, job.ranks, job.started_at) for job in found.values()]
    start = datetime.fromtimestamp(1746693312, UTC)
    assert facts[0] == ("RUNNING", ("gpu001", "gpu002"), (16, 8), 24, start)
    assert facts[1] == ("PENDING", (), (), 8, None)
    assert (found["11"].ended_at, facts[2][2:4]) == (None, ((4, 2), 6))


def test_accounting_after_the_published_schema_of_newer_versions_is_read() -> None:
    (job,) = parse(SLURM_JSON, read("slurm/sacct_v0.0.41.json")).jobs
    assert (job.id, job.state, job.user, job.hosts) == ("11", "COMPLETED", "ann", ("gpu001", "gpu002"))
    assert (job.ranks, job.slots, job.distribution) == (24, (12, 12), "cyclic")
    assert job.ended_at == datetime.fromtimestamp(1746693500, UTC)


def test_a_large_file_is_read_piece_by_piece_with_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sacct.json"
    path.write_bytes(SACCT)
    monkeypatch.setattr(source, "LARGE", 0)
    monkeypatch.setattr(source, "PIECE", 10_000)
    reported: list[tuple[float, float | None]] = []

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        if phase == f"reading {path}":
            reported.append((done, total))

    found = plan([path], Options(cluster="here"), progress=progress)
    assert found.jobs == parse(SLURM_JSON, SACCT).jobs
    total = len(SACCT)
    assert reported == [
        (0, 1),
        *((min(done, total), total) for done in range(10_000, total + 10_000, 10_000)),
    ]


SAMPLE = read("flux/f3Xq7vB.json")
R: dict[str, Any] = json.loads(SAMPLE)


def job(content: Any, options: Options | None = None, path: str = "jobs/f3.R.json") -> Job:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    (found,) = parse(FLUX_R, text, options, path=path).jobs
    return found


def amended(**execution: Any) -> dict[str, Any]:
    return R | {"execution": R["execution"] | execution}


def test_hosts_take_the_cores_of_their_broker_ranks_in_order_and_none_are_reported() -> None:
    found = job(SAMPLE)
    assert found.hosts == ("corona12", "corona13", "corona7", "login1")
    assert found.slots == (16, 16, 16, 6)
    assert (found.ranks, found.started_at) == (0, datetime.fromtimestamp(1753790000, UTC))
    graph = R | {"scheduling": {"graph": {"nodes": [], "edges": []}}}
    warnings = parse(FLUX_R, json.dumps(graph), path="f3.json").warnings
    assert warnings == (
        "job f3: R contains no tasks, so the slots of a host are its cores",
        "its scheduling graph is ignored",
    )


def test_the_id_is_the_name_of_the_file() -> None:
    assert job(SAMPLE).id == "f3"
    assert job(SAMPLE, path="jobs.tar!a/ƒ3Xq.json").id == "ƒ3Xq"
    for path in ("-", ".json"):
        with pytest.raises(InputError, match=r"name the file JOBID\.json"):
            job(SAMPLE, path=path)


def test_an_old_r_names_no_hosts_and_the_caller_does() -> None:
    """As flux-core printed it in 2019."""
    old = {"version": 1, "execution": {"R_lite": [{"rank": "[0-1]", "children": {"core": "0-3"}}]}}
    assert job(old, Options(hosts=("x", "a"))).hosts == ("x", "a")
    with pytest.raises(InputError, match="--hosts"):
        job(old)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (R | {"version": 2}, "version: is not 1"),
        ({"version": 1}, "execution: is not an object"),
        (amended(nodelist=["corona[12-13]"]), "execution: names 2 hosts and 4 broker ranks"),
        (amended(nodelist=["a[1-"]), "unpaired bracket in a host list"),
        (amended(nodelist="a"), "execution.nodelist: is not a list"),
        (amended(R_lite=[{"rank": "0-3", "children": {}}]), "execution.R_lite[0].children.core: is not text"),
        (amended(R_lite=[{"rank": "3-0", "children": {"core": "0"}}]), "execution.R_lite[0].rank: is"),
        (amended(R_lite=[{"rank": "0,0", "children": {"core": "0"}}]), "execution.R_lite[0].rank: repeats"),
        (amended(R_lite=R["execution"]["R_lite"] * 2), "execution.R_lite[2].rank: broker rank 2"),
        (amended(R_lite=[{"rank": "0-999999999", "children": {"core": "0"}}]), "execution.R_lite[0].rank"),
        (amended(starttime="now"), "execution.starttime: is not a time"),
        (amended(starttime=1e300), "execution.starttime: is not a time"),
        (amended(nodelist=["a,a,b,c"]), "host a is repeated"),
    ],
)  # fmt: skip
def test_what_is_no_r_is_refused(content: Any, reason: str) -> None:
    assert refusal(FLUX_R, json.dumps(content), path="jobs/f3.R.json").reason.startswith(reason)


HERE = Where("jobs.txt", 3, "a row")


def running(id: str, hosts: int = 1) -> Job:
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
        jobs.add(running("1"), HERE)
    with pytest.raises(InputError, match="job 1 is repeated"):
        once.add(running("1", 2), HERE)
    again.add(running("1", 2), HERE)
    parsed = again.parsed((0, "job has", "jobs have", "nothing"), (2, "job has", "jobs have", "something"))
    assert [len(found.hosts) for found in parsed.jobs if found is not None] == [2]
    assert parsed.warnings == ("2 jobs have something", "1 earlier run of requeued jobs is ignored")


def test_jobs_and_hosts_are_bounded_and_required() -> None:
    with pytest.raises(InputError, match="no jobs found"):
        JobList("jobs.txt").parsed()
    for jobs in (JobList("jobs.txt", jobs_left=1), JobList("jobs.txt", hosts_left=3)):
        jobs.add(running("1", 2), HERE)
        with pytest.raises(InputError, match="split the file by time"):
            jobs.add(running("2", 2), HERE)


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


STEPS = read("slurm/scontrol_show_steps.txt")


def test_the_largest_step_of_each_job_gives_ranks_and_distribution() -> None:
    """Jobs 7 and 8 are 7+0 and 7+1 in scontrol_show_jobs_d.txt, of one srun: other numbers there."""
    parsed = parse(SLURM_STEPS, STEPS)
    found = {job.id: (job.ranks, job.distribution) for job in parsed.jobs}
    assert found == {"2": (40, "block")}
    assert all((job.hosts, job.state, job.started_at) == ((), "", None) for job in parsed.jobs)
    assert parsed.warnings[1] == "4 steps of scripts and daemons are ignored"
    assert parsed.warnings[2].startswith("2 steps of heterogeneous jobs are ignored")
    lines = [record.replace("\n", "") for record in STEPS.decode().split("\n\n")]
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
    text = STEPS.decode().replace(" Network=", " " * 1_000_000 + "Network=", 1)
    assert parse(SLURM_STEPS, text).jobs == parse(SLURM_STEPS, STEPS).jobs
    cut = STEPS.decode().replace("Network=", " " * 1_000_000)
    assert len(parse(SLURM_STEPS, cut).jobs) == 1
