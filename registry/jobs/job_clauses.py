"""Clauses of statements that read jobs with allocation, profile and advice; each job ``j`` stays one row.

Only the newest entry of each list is kept: a job that is reported every minute has many.
"""

from __future__ import annotations

from registry.jobs.jobs import JOB_FIELDS

IS_RUNNING = "j.started_at <= $at AND (j.ended_at IS NULL OR j.ended_at > $at)"


def with_allocation_and_profile(carried: str = "") -> str:
    """Return the clauses for the latest allocation and profile: ``allocation``, ``profile``, ``application``.

    Parameters
    ----------
    carried : str
        Other variables of the row, each followed by a comma and a blank.
    """
    return f"""
WITH {carried}j
OPTIONAL MATCH (j)-[r:RAN_ON]->(a:Allocation)
WITH {carried}j, r, a ORDER BY r.seq DESC
WITH {carried}j, head(collect(a)) AS allocation
OPTIONAL MATCH (j)-[x:RAN]->(f:Profile)
WITH {carried}j, allocation, x, f ORDER BY x.at DESC
WITH {carried}j, allocation, head(collect(f.id)) AS profile, head(collect(f.application)) AS application
"""


def with_advice(carried: str = "") -> str:
    """Return the clauses for the newest advice; they follow `with_allocation_and_profile`."""
    return f"""
WITH {carried}j, allocation, profile, application
OPTIONAL MATCH (j)-[:HAS_ADVICE]->(v:Advice)
WITH {carried}j, allocation, profile, application, v ORDER BY v.at DESC
WITH {carried}j, allocation, profile, application, head(collect(v)) AS advice
"""


JOB_EXPRESSIONS = {
    "id": "j.job",
    "cluster": "j.cluster",
    "as_of": "j.as_of",
    "hosts": "CASE WHEN allocation IS NULL THEN [] ELSE [allocation.hosts] END",
    "slots": "CASE WHEN allocation IS NULL THEN [] ELSE [allocation.slots] END",
    "profiles": "[profile]",
    **{name: f"j.{name}" for name in JOB_FIELDS},
}
"""Expressions for the columns that `registry.jobs.jobs.stored_jobs` reads."""
JOB_COLUMNS = ", ".join(f"{expression} AS {name}" for name, expression in JOB_EXPRESSIONS.items())
