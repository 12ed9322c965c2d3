"""`scontrol show jobs`: which hosts and slots a job has, whatever users call their jobs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ingest.formats.jobs import slurm_scontrol
from registry.errors import InputError
from registry.model import Job
from tests.support.inputs import parse, read, refusal

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


def test_jobs_that_wait_run_or_complete_have_what_is_known_of_them() -> None:
    found = jobs(REAL)
    waiting, completing = found["6"], found["5"]
    assert (waiting.state, waiting.hosts, waiting.slots, waiting.ranks) == ("PENDING", (), (), 64)
    assert (waiting.started_at, waiting.ended_at) == (None, None)
    assert found["1"].ended_at is None  # its end is expected only
    assert found["4"].ended_at == datetime(2026, 11, 21, 3, 35, 35, tzinfo=UTC)
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


@pytest.mark.parametrize(
    ("old", "new", "slots"),
    [
        ("", "", (4, 4, 3)),
        ("NumTasks=11", "NumTasks=10", (4, 3, 3)),
        ("CPUs/Task=2", "CPUs/Task=1", (4, 4, 3)),  # exclusive: spread over the hosts
        ("NumTasks=11", "NumTasks=40", (14, 14, 12)),  # overcommitted: round again
        ("NumTasks=11", "NumTasks=N/A", (4, 4, 3)),  # unknown: the CPUs are filled
        ("NtasksPerN:B:S:C=0", "NtasksPerN:B:S:C=5", (5, 5, 5)),
        ("NodeList=node[1-2,5]", "NodeList=node[5,1-2]", (3, 4, 4)),
    ],
)
def test_slots_are_the_ranks_that_a_host_has_cpus_for(old: str, new: str, slots: tuple[int, ...]) -> None:
    found = job(RECORD.replace(old, new))
    assert found.slots == slots
    assert found.hosts == (("node5", "node1", "node2") if "[5" in new else ("node1", "node2", "node5"))


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
    error = refusal(slurm_scontrol, RECORD.replace(old, new))
    assert error.line == line
    assert reason in (None, error.reason)


def test_records_that_are_cut_off_repeated_or_followed_by_text_are_refused() -> None:
    lines = RECORD.splitlines()
    for cut in range(1, 11):
        refusal(slurm_scontrol, "\n".join(lines[:cut]))
    with pytest.raises(InputError, match="input:18: job 12 is repeated"):
        jobs(f"{RECORD}\n{RECORD}")
    with pytest.raises(InputError, match="input:18: a line outside of any job's record"):
        jobs(f"{RECORD}\nslurm_load_jobs error: Unable to contact slurm controller\n")
    with pytest.raises(InputError, match="no jobs found"):
        jobs("# nothing\n")
