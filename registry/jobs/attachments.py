"""What was attached to jobs: the profile that each ran, and the time in which it sends the profile once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from registry.database.driver import Transaction
from registry.errors import InvalidValue

STATED, FROM_TRACE = "stated", "trace"
"""Origins of the time of an iteration."""

_ATTACH = """
UNWIND range(0, size($job) - 1) AS i
MATCH (j:Job {id: $job[i]})
MATCH (p:Profile {id: $profile[i]})
CREATE (j)-[:RAN {at: $at, iteration_seconds: $seconds[i], iteration_from: $origin[i]}]->(p)
"""

_SPANS = """
UNWIND $profiles AS id
MATCH (p:Profile {id: id})<-[:OF]-(t:Trace)
WITH id, t ORDER BY t.recorded_at
RETURN id, collect(t.span_seconds) AS spans
"""


class Attachment(NamedTuple):
    """What is attached to a job.

    Attributes
    ----------
    profile : str or None
        Id of a profile.
    seconds : float or None
        Time of an iteration: that in which the job sends the profile once.
    origin : str
        `STATED`, `FROM_TRACE` or empty.
    """

    profile: str | None
    seconds: float | None
    origin: str


def save_attachments(
    transaction: Transaction,
    profiles: Mapping[str, str],
    known: Mapping[str, Attachment],
    seconds: float | None,
) -> None:
    """Attach profiles to jobs of a locked cluster; what is attached already is not saved again.

    Parameters
    ----------
    profiles : mapping of str to str
        Id of the profile by id of the job's node.
    known : mapping of str to Attachment
        Present attachment of each of these jobs.
    seconds : float or None
        Time of an iteration; None: the span of the profile's newest trace, if it has any.

    Raises
    ------
    InvalidValue
        The time is not above zero.
    """
    if seconds is not None and not 0 < seconds < math.inf:
        raise InvalidValue("iteration_seconds", f"is {seconds:g}, must be above zero and finite")
    rows = transaction.run(_SPANS, profiles=sorted(set(profiles.values()))) if seconds is None else []
    spans = {row["id"]: row["spans"][-1] or None for row in rows}  # a trace of one message spans no time
    new = []
    for job, profile in profiles.items():
        time = seconds or (None if known[job][::2] == (profile, STATED) else spans.get(profile))
        if known[job].profile != profile or time not in (None, known[job].seconds):
            new.append((job, profile, time, STATED if seconds else FROM_TRACE if time else None))
    columns = {
        name: [row[k] for row in new] for k, name in enumerate(("job", "profile", "seconds", "origin"))
    }
    transaction.run_columns(_ATTACH, columns, at=datetime.now(UTC))
