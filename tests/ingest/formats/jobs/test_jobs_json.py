"""Jobs in JSON: Slurm's, older and newer shapes, the same jobs as in text; and Flux's resource set R."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.jobs.flux_r import FLUX_R
from ingest.formats.jobs.slurm_json import SLURM_JSON
from ingest.formats.jobs.slurm_sacct import SLURM_SACCT
from ingest.formats.jobs.slurm_scontrol import SLURM_SCONTROL
from ingest.options import Options
from ingest.parsed import Format
from ingest.pipeline import plan
from ingest.reading import source
from registry.errors import InputError
from registry.model import Job
from tests.support.inputs import file, parse, read, refusal, survives

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
