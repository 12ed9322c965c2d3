"""Jobs as sacct, scontrol and squeue print them: those of their JSON, also with line ends in users' text."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from ingest.formats.slurm_json import SLURM_JSON
from ingest.formats.slurm_scontrol import SLURM_SCONTROL, SLURM_STEPS
from ingest.formats.slurm_tables import SLURM_SACCT, SLURM_SQUEUE
from ingest.options import Options
from ingest.parsed import Format
from registry.errors import InputError
from registry.model import Job
from tests.support.inputs import parse, read, refusal

REAL = read("slurm/sacct_P.txt")
HEAD = "JobID|JobName|NNodes|NTasks|AllocCPUS|State|Start|End|NodeList|Layout"
JOB = "7|halo|2||16|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|node[1-2]|"
STEP = "7.0|halo|2|12|16|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|node[1-2]|Cyclic"


def jobs(*lines: str) -> dict[str, Job]:
    return {job.id: job for job in parse(SLURM_SACCT, "\n".join(lines) + "\n").jobs}


def test_jobs_of_a_real_cluster() -> None:
    found = {job.id: job for job in parse(SLURM_SACCT, REAL).jobs}
    assert " ".join(found) == "1 2 4 5 7+0 7+1 9 10 3_1 3_2 3_3 3_4 3_5 3_6"
    lammps = found["2"]
    assert lammps.hosts == ("node0020", "node0035", "node0063")
    assert (lammps.slots, lammps.ranks, lammps.distribution) == ((14, 14, 14), 40, "block")
    assert lammps.ended_at == datetime(2026, 11, 21, 3, 36, 26, tzinfo=UTC)
    assert (found["1"].ranks, found["1"].slots, found["1"].distribution) == (64, (4,) * 16, "block")
    assert (found["9"].ranks, found["10"].state) == (0, "CANCELLED")
    assert (found["5"].state, len(found["5"].hosts), found["5"].slots) == ("NODE_FAIL", 40, (1,) * 40)


def test_all_columns_with_bars_in_the_command_are_read() -> None:
    found = {job.id: job for job in parse(SLURM_SACCT, read("slurm/sacct_all_cols_head.txt")).jobs}
    assert found["1"].hosts == tuple(f"node{i:04}" for i in range(1, 17))
    assert (found["1"].user, found["1"].account, found["2"].name) == ("root", "proj1", "lammps")
    assert found["2"].slots == (14, 14, 14)


def test_columns_may_come_in_any_order() -> None:
    rows = [line.split("|") for line in (HEAD, JOB, STEP)]
    turned = ["|".join(row[::-1]) for row in rows]
    assert jobs(*turned) == jobs(HEAD, JOB, STEP)
    trailing = [f"{line}|" for line in (HEAD, JOB, STEP)]
    assert jobs(*trailing) == jobs(HEAD, JOB, STEP)


BATCH = "7.batch|batch|1|1|8|COMPLETED|||node1|Unknown"


@pytest.mark.parametrize(
    ("rows", "ranks", "slots", "distribution"),
    [
        ((JOB, BATCH, STEP, STEP.replace("7.0", "7.1", 1)), 12, (6, 6), "cyclic"),  # the largest step
        ((JOB.replace("|2||16|", "|2|12|16|") + "Cyclic",), 12, (6, 6), "cyclic"),  # no steps
        ((JOB,), 0, (8, 8), ""),
        ((JOB, STEP.replace("node[1-2]", "node2").replace("|12|", "|8|")), 8, (8, 8), "cyclic"),
        ((JOB, STEP.replace("|halo|", "|orted|").replace("|12|", "|2|")), 0, (8, 8), ""),  # daemons of MPI
    ],
)
def test_ranks_are_those_of_the_largest_step_of_an_application_or_else_of_the_job(
    rows: tuple[str, ...], ranks: int, slots: tuple[int, ...], distribution: str
) -> None:
    (job,) = jobs(HEAD, *rows).values()
    assert (job.id, job.ranks, job.slots, job.distribution) == ("7", ranks, slots, distribution)


def test_waiting_jobs_have_no_hosts_and_the_last_run_of_a_requeued_one_counts() -> None:
    waiting = jobs(HEAD, "9_[1-4]|w|2||0|PENDING|Unknown|Unknown|None assigned|")["9_[1-4]"]
    assert (waiting.hosts, waiting.slots, waiting.started_at) == ((), (), None)
    parsed = parse(SLURM_SACCT, "\n".join([HEAD, JOB.replace("COMPLETED", "NODE_FAIL"), STEP, JOB]))
    assert [(job.state, job.ranks) for job in parsed.jobs] == [("COMPLETED", 0)]
    assert parsed.warnings == ("1 earlier run of requeued jobs is ignored",)


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ([HEAD.replace("NodeList|", ""), JOB], 1, "column nodelist"),
        ([HEAD.replace("NNodes", "State")], 1, "a column is repeated"),
        (["JobID|State|NodeList", "1|COMPLETED|n1"], 1, "no column has the number of tasks or CPUs"),
        (["JobID  State  NodeList", "-----  -----  --------"], 1, "a table without '|' has truncated values"),
        (["JobID\tState\tNodeList"], 1, r"a table without '|' has '\t' between its columns"),
        ([HEAD, JOB[:30]], 2, "the row has 7 cells, not 10: is it truncated?"),
        ([HEAD, JOB, STEP.replace("|12|", "|x|")], 3, "column ntasks is not a number: 'x'"),
        ([HEAD, JOB.replace("node[1-2]", "node1")], 2, "NodeList names 1 hosts, but NNodes is 2"),
        ([HEAD, JOB.replace("COMPLETED", "")], 2, "not a job state"),
        ([HEAD, STEP], 2, "step 7.0 precedes the row of its job"),
        ([HEAD, "|" + STEP.partition("|")[2]], 2, "the row has no job number"),
        ([HEAD], None, "no jobs found"),
        (["# nothing"], None, "no jobs found"),
    ],
)
def test_a_row_that_cannot_be_read_is_refused(lines: list[str], line: int | None, reason: str) -> None:
    error = refusal(SLURM_SACCT, "\n".join(lines) + "\n")
    assert error.reason.startswith(reason)
    assert error.line == line


SCONTROL_REAL = read("slurm/scontrol_show_jobs_d.txt")
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


def scontrol_jobs(text: str | bytes) -> dict[str, Job]:
    return {job.id: job for job in parse(SLURM_SCONTROL, text).jobs}


def job(text: str) -> Job:
    (only,) = parse(SLURM_SCONTROL, text).jobs
    return only


def test_scontrol_jobs_of_a_real_cluster() -> None:
    found = scontrol_jobs(SCONTROL_REAL)
    assert list(found) == ["1", "2", "3_1", "4", "5", "6", "7+0", "7+1", "9", "10", "3_2", "3_[3-6%2]"]
    lammps = found["2"]
    hosts, start = ("node0020", "node0035", "node0063"), datetime(2026, 11, 21, 3, 35, 31, tzinfo=UTC)
    assert (lammps.hosts, lammps.slots, lammps.ranks) == (hosts, (16, 16, 8), 40)
    assert (lammps.name, lammps.user, lammps.account, lammps.partition) == ("lammps", "root", "root", "batch")
    assert (lammps.submitted_at, lammps.started_at) == (start - timedelta(seconds=1), start)
    assert (lammps.state, lammps.source) == ("RUNNING", "slurm-scontrol")
    assert (found["1"].hosts[::15], found["1"].slots) == (("node0001", "node0016"), (4,) * 16)
    assert (found["3_1"].slots, found["7+1"].slots) == ((7, 1), (12, 12, 7, 1))


def test_jobs_that_wait_run_or_complete_have_what_is_known_of_them() -> None:
    found = scontrol_jobs(SCONTROL_REAL)
    waiting, completing = found["6"], found["5"]
    assert (waiting.state, waiting.hosts, waiting.slots, waiting.ranks) == ("PENDING", (), (), 64)
    assert (waiting.started_at, waiting.ended_at) == (None, None)
    assert found["1"].ended_at is None  # its end is expected only
    assert found["4"].ended_at == datetime(2026, 11, 21, 3, 35, 35, tzinfo=UTC)
    assert (completing.state, len(completing.hosts), completing.ranks) == ("COMPLETING", 40, 40)
    assert completing.slots == (1,) * 40


def test_without_details_ranks_are_spread_evenly_and_that_is_said() -> None:
    parsed = parse(SLURM_SCONTROL, read("slurm/scontrol_show_job_oneline.txt"))
    found = {job.id: job for job in parsed.jobs}
    assert found["2"].hosts == ("node0020", "node0035", "node0063")
    assert (found["2"].slots, found["2"].ranks, found["1"].slots) == ((14, 14, 14), 40, (4,) * 16)
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
    both = f"# made for the demo\n#\n\n{RECORD}\n\n{RECORD.replace('JobId=12', 'JobId=13')}"
    assert scontrol_jobs(both).keys() == {"12", "13"}
    assert SLURM_SCONTROL.recognise(f"# made\n\n{RECORD}", "x")
    assert not SLURM_SCONTROL.recognise("NodeName=node1 State=IDLE\n", "x")
    assert not SLURM_SCONTROL.recognise("", "x")


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
    error = refusal(SLURM_SCONTROL, RECORD.replace(old, new))
    assert error.line == line
    assert reason in (None, error.reason)


def test_records_that_are_cut_off_repeated_or_followed_by_text_are_refused() -> None:
    lines = RECORD.splitlines()
    for cut in range(1, 11):
        refusal(SLURM_SCONTROL, "\n".join(lines[:cut]))
    with pytest.raises(InputError, match="input:18: job 12 is repeated"):
        scontrol_jobs(f"{RECORD}\n{RECORD}")
    text = f"{RECORD}\nslurm_load_jobs error: Unable to contact slurm controller\n"
    parsed = parse(SLURM_SCONTROL, text)
    assert parsed.warnings == ("1 line is the tool's own diagnostics: jobs may be missing",)
    with pytest.raises(InputError, match="no jobs found"):
        scontrol_jobs("# nothing\n")


TABLE = read("slurm/squeue.txt")
BARS = read("slurm/squeue_fmt.txt")
TITLE = TABLE.decode().splitlines()[0]
LONG = """\
Sat Nov 21 03:35:41 2026
             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)
                 1     batch  stencil     root  RUNNING       0:10 UNLIMITED     16 node[0001-0016]
                 5     batch    a b c     root COMPLETI       0:00 UNLIMITED      1 node0023
"""
"""`squeue -l`, whose columns are cut at the same widths."""


def squeue_jobs(content: str | bytes, options: Options | None = None) -> dict[str, Job]:
    return {job.id: job for job in parse(SLURM_SQUEUE, content, options=options).jobs}


@pytest.mark.parametrize("content", [TABLE, BARS], ids=["table", "bars"])
def test_it_gives_the_jobs_of_its_json(content: bytes) -> None:
    found = squeue_jobs(content)
    known = {job.id: job for job in parse(SLURM_JSON, read("slurm/squeue.json.gz")).jobs}
    assert found.keys() == known.keys() - {"4", "10"}  # finished: squeue hides them
    for key, job in found.items():
        if known[key].state == job.state != "COMPLETING":
            assert (job.name, job.hosts) == (known[key].name, known[key].hosts)
    assert found["1"].hosts == tuple(f"node{i:04d}" for i in range(1, 17))


def test_requested_columns_contain_more() -> None:
    job = squeue_jobs(BARS)["1"]
    assert (job.state, job.slots, job.ranks) == ("RUNNING", (4,) * 16, 0)
    assert job.started_at is not None
    assert parse(SLURM_SQUEUE, BARS).warnings == ()


def test_the_table_lists_no_cpus_no_hosts_of_completing_jobs_and_reasons_of_waiting_ones() -> None:
    assert parse(SLURM_SQUEUE, TABLE).warnings == (
        "7 jobs without CPUs: one rank per host is assumed; use `scontrol show jobs -d` instead",
        "1 completing job lists only the hosts still being cleaned: read without hosts",
    )
    assert squeue_jobs(TABLE)["5"].hosts == ()
    waiting = squeue_jobs(TABLE)["3_[3-6%2]"]
    assert (waiting.state, waiting.hosts, waiting.started_at) == ("PENDING", (), None)


def test_the_long_table_begins_with_a_date() -> None:
    assert SLURM_SQUEUE.recognise(LONG, "x")
    found = squeue_jobs(LONG)
    assert (found["5"].name, found["5"].state, found["5"].hosts) == ("a b c", "COMPLETING", ())
    assert (found["1"].state, len(found["1"].hosts)) == ("RUNNING", 16)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("JOBID|NAME|STATE\n", 1, "the columns JOBID, ST or STATE, and NODELIST are required"),
        ("JOBID|STATE|NODELIST\n7|RUNNING\n", 2, "the row has 2 cells, not 3: is it truncated?"),
        ("JOBID|STATE|NODELIST\n7|RUNNING|n1|x\n", 2, "the row has 4 cells, not 3: is it truncated?"),
        ("JOBID|STATE|STATE|NODELIST\n7|R|R|n1\n", 1, "a column is repeated"),
        ("JOBID|STATE|NODELIST\nx|RUNNING|n1\n", 2, "not a job's number: 'x'"),
        ("JOBID|STATE|NODELIST\n7|RUNNING|n[1-\n", 2, "unpaired bracket in a host list"),
        ("JOBID|STATE|NODES|NODELIST\n7|RUNNING|3|n1\n", 2, "names 1 hosts, but NODES is 3"),
        ("JOBID|STATE|CPUS|NODELIST\n7|RUNNING|x|n1\n", 2, "CPUS is not a number: 'x'"),
        ("JOBID|STATE|NODELIST\n7|RUNNING|n1\n7|RUNNING|n1\n", 3, "job 7 is repeated"),
        ("JOBID|STATE|NODELIST\n", None, "no jobs found"),
        ("JOBID ST NODELIST NAME\n", 1, "the last column of a table must be NODELIST"),
        (TITLE + "\n" + "9" * 19 + "     batch\n", 2, "the row does not fit the column PARTITION"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(text: str, line: int | None, reason: str) -> None:
    error = refusal(SLURM_SQUEUE, text)
    assert error.line == line
    assert error.reason.startswith(reason)


def test_a_job_of_a_table_without_starts_began_its_time_before_the_list() -> None:
    title = "JOBID ST       TIME NODELIST"
    starts = {"1:02:03": "08:57:57", "2:03": "09:57:57", "1-00:00:00": "10:00:00", "?": None}
    for text, start in starts.items():
        content = f"{title}\n    7  R {text:>10} n1\n    8 PD       0:00 (Priority)\n"
        found = squeue_jobs(content, Options(observed_at=datetime(2026, 1, 2, 10, tzinfo=UTC)))
        started = found["7"].started_at
        assert (started and f"{started:%H:%M:%S}") == start
        assert found["8"].started_at is None


WRAP = read("slurm/scontrol_wrap_empty_line.txt").decode().rstrip() + "\n"
OTHER = WRAP.replace("JobId=45", "JobId=46").replace("n[05-06]", "n[07-08]")
SCRIPT = "module load x\n\nsrun ./a.out\n"
COLUMNS = "JobID|JobName|NNodes|AllocCPUS|State|NodeList"


def scripts(script: str) -> str:
    return WRAP.replace("module load x\n\nsrun ./a.out", script)


def found(parser: object, text: str) -> dict[str, Job]:
    parsed = parse(parser, text)  # type: ignore[arg-type]
    assert not [warning for warning in parsed.warnings if "left out" in warning]
    return {job.id: job for job in parsed.jobs}


@pytest.mark.parametrize(
    "script",
    [
        "module load x\n\nsrun ./a.out",
        "\n\n\na",
        "a\n   NodeList=evil NumNodes=1\n\n   JobState=FAILED\nb",
        "echo\n\nJobId=7 is mine\n\n  Nodes=n1 CPU_IDs=0",
        "     Nodes=n[05-06] CPU_IDs=0-3 Mem=8192\n#x",
    ],
)
def test_every_record_of_scontrol_is_read_whatever_the_script(script: str) -> None:
    jobs = found(SLURM_SCONTROL, f"{scripts(script)}\n{OTHER}\n")
    assert list(jobs) == ["45", "46"]
    assert jobs["45"] == found(SLURM_SCONTROL, WRAP.replace("\n\nsrun", " srun"))["45"]
    assert (jobs["45"].hosts, jobs["45"].slots, jobs["46"].hosts) == (("n05", "n06"), (4, 4), ("n07", "n08"))
    without = scripts(script).partition("   StdErr=")[0]  # an interactive job has none
    assert list(found(SLURM_SCONTROL, f"{without}\n{OTHER}")) == ["45", "46"]


def test_a_script_in_records_of_one_line_is_read() -> None:
    text = ""
    for number, record in ((45, WRAP), (46, OTHER)):
        line = " ".join(part.strip() for part in record.splitlines() if part[:3] == "   ")
        text += f"JobId={number} JobName=w {line}\n".replace("load x", "load x\n\nsrun ./a.out")
    assert list(found(SLURM_SCONTROL, text)) == ["45", "46"]


def test_lines_behind_a_whole_record_are_left_out_and_counted() -> None:
    parsed = parse(SLURM_SCONTROL, f"{WRAP}\nsqueue: x\n\ny\n\n{OTHER}")
    assert [job.id for job in parsed.jobs] == ["45", "46"]
    line = WRAP.count("\n") + 2
    assert parsed.warnings[-1] == f"2 lines are outside of any job's record: left out, line {line} first"
    (warning,) = parse(SLURM_SCONTROL, f"{WRAP}\n" + OTHER[:200]).warnings
    assert warning.startswith(
        f"1 record is left out: line {WRAP.count(chr(10)) + 2}: the record has no NodeList="
    )


def row(job: int, script: str, *, at: int) -> str:
    cells = [str(job), "wrap", "2", "8", "COMPLETED", f"n[{job}-{job + 1}]"]
    return "|".join([*cells[:at], f"sbatch --wrap={script}", *cells[at:]])


@pytest.mark.parametrize("at", [6, 5, 2, 1])
@pytest.mark.parametrize(
    "script", ["module load x\n\nsrun ./a.out\n", "a\nb | c\n\n", "12\n34 x", "\n|\n|", "x\n7 x|y|z"]
)
def test_every_row_of_sacct_is_read_wherever_the_submit_line_is(at: int, script: str) -> None:
    names = COLUMNS.split("|")
    head = "|".join([*names[:at], "SubmitLine", *names[at:]])
    text = "\n".join([head, row(10, "one", at=at), row(20, script, at=at), row(30, "three", at=at), ""])
    hosts = {id: job.hosts for id, job in found(SLURM_SACCT, text).items()}
    assert hosts == {str(k): (f"n{k}", f"n{k + 1}") for k in (10, 20, 30)}


def test_a_truncated_row_is_left_out_and_takes_no_other_row_with_it() -> None:
    cut = row(20, "x", at=6)
    for length, after in itertools.product((5, 12, 25, 30), ("", row(30, "y\n\nz", at=6))):
        rows = [f"{COLUMNS}|SubmitLine", row(10, "x", at=6), cut[:length], after]
        parsed = parse(SLURM_SACCT, "\n".join(rows))
        assert [job.id for job in parsed.jobs] == ["10", "30"][: 1 + bool(after)]
        assert parsed.warnings[0].startswith("1 record is left out: line 3: the row has "), length
        assert parsed.warnings[0].endswith(f": is it truncated? in {cut[:length]!r}")


@pytest.mark.parametrize("name", ["a|b||c", "7|x", "|", "R|8|RUNNING", "None", "unknown", ""])
@pytest.mark.parametrize("script", ["", "x", "y|z", "8\n|\n"])
@pytest.mark.parametrize(
    ("module", "head", "form", "column"),
    [
        (SLURM_SACCT, COLUMNS, "{}|{}|1|4|COMPLETED|n{}", "SubmitLine"),
        (SLURM_SQUEUE, "JOBID|NAME|USER|STATE|START_TIME|NODELIST", "{}|{}|ann|RUNNING|N/A|n{}", "COMMAND"),
    ],
)
def test_any_name_and_command_is_kept_and_moves_no_host_to_another_job(
    module: Format, head: str, form: str, column: str, name: str, script: str
) -> None:
    end = f"|{script}" if script else ""
    rows = [form.format(k, name if k == 2 else "w", k) + end for k in (1, 2, 3)]
    parsed = parse(module, "\n".join([head + f"|{column}" * bool(script), *rows]))
    facts = [(job.id, job.name, job.hosts) for job in parsed.jobs]
    assert facts == [("1", "w", ("n1",)), ("2", name, ("n2",)), ("3", "w", ("n3",))]


def test_all_columns_with_a_script_of_several_lines_are_read() -> None:
    text = read("slurm/sacct_all_cols_head.txt").decode()
    head = text.splitlines()[0].split("|")
    rows = [line.split("|") for line in text.splitlines()[1:]]
    for cells in rows:
        if len(cells) == len(head):
            cells[head.index("SubmitLine")] = SCRIPT
    changed = "\n".join("|".join(cells) for cells in [head, *rows])
    assert found(SLURM_SACCT, changed) == found(SLURM_SACCT, text)


def test_names_and_commands_of_squeue_and_names_of_steps_may_have_several_lines() -> None:
    text = "JOBID|NAME|ST|CPUS|NODELIST|COMMAND\n7|a\n\nb|R|4|n1|x\n\ny | z\n8|c|R|4|n2|d\n"
    facts = [(job.id, job.hosts, job.name) for job in found(SLURM_SQUEUE, text).values()]
    assert facts == [("7", ("n1",), "a\n\nb"), ("8", ("n2",), "c")]
    text = read("slurm/scontrol_show_steps.txt").decode()
    names = [line for line in text.splitlines() if " Name=" in line]
    changed = text.replace(names[0], names[0].replace(" Name=", " Name=a\n\nb"))
    assert found(SLURM_STEPS, changed) == found(SLURM_STEPS, text)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (SLURM_SACCT, "sacct_P.txt"),
        (SLURM_SQUEUE, "squeue.txt"),
        (SLURM_SCONTROL, "scontrol_show_jobs_d.txt"),
    ],
)
def test_diagnostics_of_the_tools_are_counted_wherever_they_are(module: Format, name: str) -> None:
    text = read(f"slurm/{name}").decode()
    lines = text.splitlines(keepends=True)
    said = ["squeue: error: Unable to contact slurm controller\n", "slurm_load_jobs error: retrying\n"]
    for at in (0, len(lines) // 2, len(lines)):
        mixed = "".join([*lines[:at], *said, *lines[at:]])
        assert module.recognise(mixed, "x")
        parsed = parse(module, mixed)
        assert {job.id: job for job in parsed.jobs} == found(module, text)
        assert parsed.warnings[-1].startswith("2 lines are the tool's own diagnostics")
