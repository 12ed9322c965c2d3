"""What `scontrol show steps` prints: ranks and distribution of running jobs, and nothing else."""

from __future__ import annotations

import pytest

from ingest.formats.jobs import slurm_steps
from ingest.options import Options
from ingest.pipeline import plan
from registry.model.rank_order import order_of_job
from tests.support.inputs import DATA, parse, read, refusal

SAMPLE = read("slurm/scontrol_show_steps.txt")


def test_the_largest_step_of_each_job_gives_ranks_and_distribution() -> None:
    """Jobs 7 and 8 are 7+0 and 7+1 in scontrol_show_jobs_d.txt, of one srun: other numbers there."""
    parsed = parse(slurm_steps, SAMPLE)
    found = {job.id: (job.ranks, job.distribution) for job in parsed.jobs}
    assert found == {"2": (40, "block")}
    assert all((job.hosts, job.state, job.started_at) == ((), "", None) for job in parsed.jobs)
    assert parsed.warnings[1] == "4 steps of scripts and daemons are ignored"
    assert parsed.warnings[2].startswith("2 steps of heterogeneous jobs are ignored")
    lines = [record.replace("\n", "") for record in SAMPLE.decode().split("\n\n")]
    assert parse(slurm_steps, "\n".join(lines)).jobs == parsed.jobs


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
    error = refusal(slurm_steps, text)
    assert reason in error.reason
    assert error.line == line


def test_daemons_of_launchers_are_no_application() -> None:
    text = "".join(
        f"StepId=3_1.{at} UserId=0\n Tasks={tasks} Name={name} Network=x\n Dist={how}\n SrunHost:Pid=a:1\n\n"
        for at, tasks, name, how in (
            (0, 9, "orted", "Block"),
            (1, 4, "a b", "Plane,Block"),
            (2, 2, "x", "Block"),
        )
    )
    (job,) = parse(slurm_steps, text).jobs
    assert (job.id, job.ranks, job.distribution) == ("3_1", 4, "plane")


def test_a_long_line_of_blanks_takes_no_time_for_each_pair_of_them() -> None:
    text = SAMPLE.decode().replace(" Network=", " " * 1_000_000 + "Network=", 1)
    assert parse(slurm_steps, text).jobs == parse(slurm_steps, SAMPLE).jobs
    cut = SAMPLE.decode().replace("Network=", " " * 1_000_000)
    assert len(parse(slurm_steps, cut).jobs) == 1
