"""`scontrol show jobs`: which hosts and slots a job has, whatever users call their jobs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.jobs import slurm_scontrol
from registry.errors import InputError
from registry.model import Job
from tests.support.inputs import damaged, file, parse, read, survives

REAL = read("slurm/scontrol_show_jobs_d.txt")
RECORD = """JobId=12 JobName=halo
   UserId=ann(1000) GroupId=ann(1000) MCS_label=N/A
   Priority=1 Nice=0 Account=proj QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   SubmitTime=2026-01-01T00:00:00 EligibleTime=2026-01-01T00:00:00
   StartTime=2026-01-01T00:00:10 EndTime=2026-01-02T00:00:00 Deadline=N/A
   Partition=batch AllocNode:Sid=login:1
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=node[1-2,5]
   BatchHost=node1
   NumNodes=3 NumCPUs=24 NumTasks=11 CPUs/Task=2 ReqB:S:C:T=0:0:*:*
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   JOB_GRES=(null)
     Nodes=node[1-2] CPU_IDs=0-3,8-11 Mem=0 GRES=
     Nodes=node5 CPU_IDs=0,2,4-7 Mem=0 GRES=
   Command=/bin/true
"""


def jobs(text: str | bytes) -> dict[str, Job]:
    return {job.id: job for job in parse(slurm_scontrol, text).jobs}


def job(text: str) -> Job:
    (only,) = parse(slurm_scontrol, text).jobs
    return only


def test_jobs_of_a_real_cluster() -> None:
    found = jobs(REAL)
    assert list(found) == ["1", "2", "3_1", "4", "5", "6", "7+0", "7+1", "9", "10", "3_2", "3_[3-6%2]"]
    lammps = found["2"]
    assert lammps.hosts == ("node0020", "node0035", "node0063")
    assert lammps.slots == (16, 16, 8)
    assert lammps.ranks == 40
    assert (lammps.name, lammps.user, lammps.account, lammps.partition) == ("lammps", "root", "root", "batch")
    assert lammps.submitted_at == datetime(2026, 11, 21, 3, 35, 30, tzinfo=UTC)
    assert lammps.started_at == datetime(2026, 11, 21, 3, 35, 31, tzinfo=UTC)
    assert (lammps.state, lammps.source) == ("RUNNING", "slurm-scontrol")
    assert found["1"].hosts[::15] == ("node0001", "node0016")
    assert found["1"].slots == (4,) * 16
    assert found["3_1"].slots == (7, 1)
    assert found["7+1"].slots == (12, 12, 7, 1)


def test_a_job_that_waits_has_no_hosts_and_no_start() -> None:
    waiting = jobs(REAL)["6"]
    assert (waiting.state, waiting.hosts, waiting.slots, waiting.ranks) == ("PENDING", (), (), 64)
    assert (waiting.started_at, waiting.ended_at) == (None, None)


def test_the_expected_end_of_a_running_job_is_no_end() -> None:
    found = jobs(REAL)
    assert found["1"].ended_at is None
    assert found["4"].ended_at == datetime(2026, 11, 21, 3, 35, 35, tzinfo=UTC)


def test_a_completing_job_keeps_the_hosts_that_its_details_name() -> None:
    completing = jobs(REAL)["5"]
    assert (completing.state, len(completing.hosts), completing.ranks) == ("COMPLETING", 40, 40)
    assert completing.slots == (1,) * 40


def test_without_details_ranks_are_spread_evenly_and_that_is_said() -> None:
    parsed = parse(slurm_scontrol, read("slurm/scontrol_show_job_oneline.txt"))
    found = {job.id: job for job in parsed.jobs}
    assert found["2"].hosts == ("node0020", "node0035", "node0063")
    assert (found["2"].slots, found["2"].ranks) == ((14, 14, 14), 40)
    assert found["1"].slots == (4,) * 16
    assert found["7+0"].name == "hetero"
    assert parsed.warnings[0].startswith("9 jobs have no CPUs per host")


def test_slots_are_the_ranks_that_a_host_has_cpus_for() -> None:
    assert job(RECORD).slots == (4, 4, 3)
    assert job(RECORD.replace("NumTasks=11", "NumTasks=10")).slots == (4, 3, 3)


def test_an_exclusive_jobs_ranks_are_spread_over_its_hosts() -> None:
    assert job(RECORD.replace("CPUs/Task=2", "CPUs/Task=1")).slots == (4, 4, 3)


def test_an_overcommitted_jobs_ranks_go_round_again() -> None:
    assert job(RECORD.replace("NumTasks=11", "NumTasks=40")).slots == (14, 14, 12)


def test_unknown_ranks_fill_the_cpus() -> None:
    assert job(RECORD.replace("NumTasks=11", "NumTasks=N/A")).slots == (4, 4, 3)


def test_tasks_a_host_come_before_cpus() -> None:
    assert job(RECORD.replace("NtasksPerN:B:S:C=0", "NtasksPerN:B:S:C=5")).slots == (5, 5, 5)


def test_hosts_keep_the_schedulers_order() -> None:
    turned = RECORD.replace("NodeList=node[1-2,5]", "NodeList=node[5,1-2]")
    assert job(turned).hosts == ("node5", "node1", "node2")
    assert job(turned).slots == (3, 4, 4)


@pytest.mark.parametrize(
    "name", ["my job", "NodeList=evil JobState=FAILED", "a=b UserId", "", "JobId=99", "x NumTasks=1", "none"]
)
def test_a_jobs_name_cannot_pass_for_fields(name: str) -> None:
    named = job(RECORD.replace("JobName=halo", f"JobName={name}"))
    assert (named.name, named.id, named.state, named.ranks) == (name, "12", "RUNNING", 11)
    in_one_line = " ".join(line.strip() for line in RECORD.splitlines())
    assert job(in_one_line.replace("JobName=halo", f"JobName={name}")) == named


def test_a_command_cannot_pass_for_fields() -> None:
    tricky = RECORD.replace("Command=/bin/true", "Command=/x NumTasks=1 NodeList=evil JobState=FAILED")
    assert job(tricky) == job(RECORD)


def test_comments_before_the_first_record_are_allowed() -> None:
    assert jobs(f"# made for the demo\n#\n\n{RECORD}\n\n{RECORD.replace('JobId=12', 'JobId=13')}").keys() == {
        "12",
        "13",
    }
    assert slurm_scontrol.recognise(f"# made\n\n{RECORD}", "x")
    assert not slurm_scontrol.recognise("NodeName=node1 State=IDLE\n", "x")
    assert not slurm_scontrol.recognise("", "x")


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("NodeList=node[1-2,5]", "NodeList=node[1-2,", 9, "unpaired bracket in a host list"),
        ("NodeList=node[1-2,5]", "NodeList=node[1-2]", 9, "names 2 hosts, but NumNodes=3"),
        ("     Nodes=node5 CPU_IDs=0,2,4-7 Mem=0 GRES=\n", "", 9, None),
        ("CPU_IDs=0,2,4-7", "CPU_IDs=0,x", 15, "not a list of CPUs: '0,x'"),
        ("Nodes=node5", "Nodes=node[1-2]", 15, "the CPUs of host node1 are repeated"),
        ("JobState=RUNNING", "JobState=7", 4, "not a job state"),
        ("StartTime=2026-01-01T00:00:10", "StartTime=soon", 6, None),
        ("NumTasks=11", "NumTasks=-11", 11, "not a number"),
        ("NumTasks=11", "NumTasks=many", 11, "not a number"),
        ("   NodeList=node[1-2,5]\n", "", 1, "the record has no NodeList=: it is truncated"),
    ],
)
def test_a_field_that_cannot_be_read_is_refused(old: str, new: str, line: int, reason: str | None) -> None:
    assert old in RECORD
    with pytest.raises(InputError) as caught:
        jobs(RECORD.replace(old, new))
    assert (caught.value.path, caught.value.line) == ("input", line)
    assert reason in (None, caught.value.reason)


@pytest.mark.parametrize("lines", range(1, 11))
def test_a_record_that_is_cut_off_is_refused(lines: int) -> None:
    with pytest.raises(InputError):
        jobs("\n".join(RECORD.splitlines()[:lines]))


def test_a_job_twice_and_text_outside_of_records_are_refused() -> None:
    with pytest.raises(InputError, match="input:18: job 12 is repeated"):
        jobs(f"{RECORD}\n{RECORD}")
    with pytest.raises(InputError, match="input:18: a line outside of any job's record"):
        jobs(f"{RECORD}\nslurm_load_jobs error: Unable to contact slurm controller\n")
    with pytest.raises(InputError, match="no jobs found"):
        jobs("# nothing\n")


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    survives(slurm_scontrol, [file(body)])
    survives(slurm_scontrol, [file(b"JobId=1 JobState=RUNNING NodeList=n1 NumNodes=1 NumCPUs=1 " + body)])


@given(damaged(REAL[:3000]))
def test_a_damaged_file_is_read_or_refused(data: bytes) -> None:
    survives(slurm_scontrol, [file(data)])
