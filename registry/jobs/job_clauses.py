"""Pieces of the statements that read many jobs with what belongs to them: each job ``j`` stays one row.

Lists are cut to their newest entry on the way, for a job that is told of every minute has many.
"""

from __future__ import annotations

from registry.jobs.jobs import JOB_FIELDS

IS_RUNNING = "j.started_at <= $at AND (j.ended_at IS NULL OR j.ended_at > $at)"


def with_allocation_and_profile(carried: str = "") -> str:
    """Where each job ran last, and the profile that it was told last: ``room``, ``profile``, ``application``.

    Parameters
    ----------
    carried : str
        Other variables of the row, each with a comma and a blank behind it.
    """
    return f"""
WITH {carried}j
OPTIONAL MATCH (j)-[r:RAN_ON]->(a:Allocation)
WITH {carried}j, r, a ORDER BY r.seq DESC
WITH {carried}j, head(collect(a)) AS room
OPTIONAL MATCH (j)-[x:RAN]->(f:Profile)
WITH {carried}j, room, x, f ORDER BY x.at DESC
WITH {carried}j, room, head(collect(f.id)) AS profile, head(collect(f.application)) AS application
"""


def with_advice(carried: str = "") -> str:
    """The newest advice on each job; stands behind `with_allocation_and_profile`."""
    return f"""
WITH {carried}j, room, profile, application
OPTIONAL MATCH (j)-[:HAS_ADVICE]->(v:Advice)
WITH {carried}j, room, profile, application, v ORDER BY v.at DESC
WITH {carried}j, room, profile, application, head(collect(v)) AS advice
"""


JOB_EXPRESSIONS = {
    "id": "j.job",
    "cluster": "j.cluster",
    "as_of": "j.as_of",
    "hosts": "CASE WHEN room IS NULL THEN [] ELSE [room.hosts] END",
    "slots": "CASE WHEN room IS NULL THEN [] ELSE [room.slots] END",
    "profiles": "[profile]",
    **{name: f"j.{name}" for name in JOB_FIELDS},
}
"""What `registry.jobs.jobs.stored_jobs` reads, and what gives it."""
JOB_COLUMNS = ", ".join(f"{given} AS {name}" for name, given in JOB_EXPRESSIONS.items())
