"""Text of users with line ends, such as the script of `sbatch --wrap`, stops no tool's reader."""

from __future__ import annotations

from types import ModuleType

import pytest

from ingest.formats.jobs import slurm_sacct, slurm_scontrol, slurm_squeue, slurm_steps
from registry.model import Job
from tests.support.inputs import parse, read, refusal

WRAP = read("slurm/scontrol_wrap_empty_line.txt").decode().rstrip() + "\n"
OTHER = WRAP.replace("JobId=45", "JobId=46").replace("n[05-06]", "n[07-08]")
SCRIPT = "module load x\n\nsrun ./a.out\n"
HEAD = "JobID|JobName|NNodes|AllocCPUS|State|NodeList"


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
    jobs = found(slurm_scontrol, f"{scripts(script)}\n{OTHER}\n")
    assert list(jobs) == ["45", "46"]
    assert jobs["45"] == found(slurm_scontrol, WRAP.replace("\n\nsrun", " srun"))["45"]
    assert (jobs["45"].hosts, jobs["45"].slots, jobs["46"].hosts) == (("n05", "n06"), (4, 4), ("n07", "n08"))
    without = scripts(script).partition("   StdErr=")[0]  # an interactive job has none
    assert list(found(slurm_scontrol, f"{without}\n{OTHER}")) == ["45", "46"]


def test_a_script_in_records_of_one_line_is_read() -> None:
    lines = [
        " ".join(part.strip() for part in text.splitlines() if part[:3] == "   ") for text in (WRAP, OTHER)
    ]
    text = "".join(
        f"JobId={45 + k} JobName=w {line}".replace("load x", "load x\n\nsrun ./a.out") + "\n"
        for k, line in enumerate(lines)
    )
    assert list(found(slurm_scontrol, text)) == ["45", "46"]


def test_lines_behind_a_whole_record_are_left_out_and_counted() -> None:
    parsed = parse(slurm_scontrol, f"{WRAP}\nsqueue: x\n\ny\n\n{OTHER}")
    assert [job.id for job in parsed.jobs] == ["45", "46"]
    line = WRAP.count("\n") + 2
    assert parsed.warnings[-1] == f"2 lines are outside of any job's record: left out, line {line} first"
    assert "truncated" in refusal(slurm_scontrol, f"{WRAP}\n" + OTHER[:200]).reason


def row(job: int, script: str, *, at: int) -> str:
    cells = [str(job), "wrap", "2", "8", "COMPLETED", f"n[{job}-{job + 1}]"]
    return "|".join([*cells[:at], f"sbatch --wrap={script}", *cells[at:]])


@pytest.mark.parametrize("at", [6, 5, 2, 1])
@pytest.mark.parametrize(
    "script", ["module load x\n\nsrun ./a.out\n", "a\nb | c\n\n", "12\n34 x", "\n|\n|", "x\n7 x|y|z"]
)
def test_every_row_of_sacct_is_read_wherever_the_submit_line_is(at: int, script: str) -> None:
    names = HEAD.split("|")
    head = "|".join([*names[:at], "SubmitLine", *names[at:]])
    text = "\n".join([head, row(10, "one", at=at), row(20, script, at=at), row(30, "three", at=at), ""])
    jobs = found(slurm_sacct, text)
    assert {id: job.hosts for id, job in jobs.items()} == {
        str(k): (f"n{k}", f"n{k + 1}") for k in (10, 20, 30)
    }


def test_a_truncated_row_of_sacct_is_refused_and_takes_no_other_row_with_it() -> None:
    head = f"{HEAD}|SubmitLine"
    cut = row(20, "x", at=6)
    for length in (5, 12, 25):
        error = refusal(slurm_sacct, "\n".join([head, cut[:length], row(30, "y\n\nz", at=6)]))
        assert error.reason.endswith("is it truncated?")
        assert error.line == 2


def test_all_columns_with_a_script_of_several_lines_are_read() -> None:
    text = read("slurm/sacct_all_cols_head.txt").decode()
    head = text.splitlines()[0].split("|")
    rows = [line.split("|") for line in text.splitlines()[1:]]
    for cells in rows:
        if len(cells) == len(head):
            cells[head.index("SubmitLine")] = SCRIPT
    changed = "\n".join("|".join(cells) for cells in [head, *rows])
    assert found(slurm_sacct, changed) == found(slurm_sacct, text)


def test_names_and_commands_of_squeue_may_have_several_lines() -> None:
    text = "JOBID|NAME|ST|CPUS|NODELIST|COMMAND\n7|a\n\nb|R|4|n1|x\n\ny | z\n8|c|R|4|n2|d\n"
    jobs = found(slurm_squeue, text)
    assert [(job.id, job.hosts, job.name) for job in jobs.values()] == [
        ("7", ("n1",), "a\n\nb"),
        ("8", ("n2",), "c"),
    ]


def test_names_of_steps_may_have_empty_lines() -> None:
    text = read("slurm/scontrol_show_steps.txt").decode()
    names = [line for line in text.splitlines() if " Name=" in line]
    changed = text.replace(names[0], names[0].replace(" Name=", " Name=a\n\nb"))
    assert found(slurm_steps, changed) == found(slurm_steps, text)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (slurm_sacct, "sacct_P.txt"),
        (slurm_squeue, "squeue.txt"),
        (slurm_scontrol, "scontrol_show_jobs_d.txt"),
    ],
)
def test_diagnostics_of_the_tools_are_counted_wherever_they_are(module: ModuleType, name: str) -> None:
    text = read(f"slurm/{name}").decode()
    lines = text.splitlines(keepends=True)
    said = ["squeue: error: Unable to contact slurm controller\n", "slurm_load_jobs error: retrying\n"]
    for at in (0, len(lines) // 2, len(lines)):
        mixed = "".join([*lines[:at], *said, *lines[at:]])
        assert module.recognise(mixed, "x")
        parsed = parse(module, mixed)
        assert {job.id: job for job in parsed.jobs} == found(module, text)
        assert parsed.warnings[-1].startswith("2 lines are the tool's own diagnostics")
