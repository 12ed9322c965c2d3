"""Texts about running jobs: headings, links with their users, jobs that could not be included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from almanac.output.printing import note
from registry import units

if TYPE_CHECKING:
    from mapping.questions.circuits import JobsOnSwitch
    from mapping.questions.live import Live
    from mapping.traffic.shared_load import HotLink, LinkUser

CONVENTION = (
    "Times of links: each job is assumed to send its profile once per iteration, all at the same pace."
)
MAX_NAMED_JOBS = 8
"""Maximum number of jobs that a note lists by name."""


def note_omitted_jobs(live: Live | JobsOnSwitch) -> None:
    """Print on standard error which running jobs are not included, why, and what to do about it."""
    cluster, when = live.running.snapshot.cluster, units.moment_text(live.running.at)
    if not live.running.jobs:
        note(
            f"no running jobs known on {cluster} at {when}: load the output of `scontrol show jobs -d` or "
            f"`squeue` with `almanac ingest --cluster {cluster} FILE`"
        )
        return
    if live.without_profile:
        count, total = len(live.without_profile), len(live.running.jobs)
        note(
            f"no traffic is known of {count} of {total} running jobs, which have no profile: "
            f"{_listed([one.stored.job.id for one in live.without_profile])}; attach one with "
            "`almanac job attach JOB PROFILE`"
        )
    for one in live.unloaded:
        note(f"job {one.job.stored.job.id} is not included: {one.reason}")


def heading(live: Live) -> str:
    """Return one line with cluster, time, number of jobs and routing."""
    traffic = f"{len(live.shared)} of {len(live.running.jobs)} running jobs with traffic"
    when = units.moment_text(live.running.at)
    return f"{live.running.snapshot.cluster} at {when}: {traffic}; routing: {live.routing}"


def link_name(live: Live, link: HotLink) -> str:
    """Return a link as ``--link`` accepts it: ``DEVICE:PORT``."""
    from mapping.traffic.names import link_text

    return link_text(live.fabric, link.row)


def users_text(link: HotLink, profiles: Mapping[str, str], most: int = 3) -> str:
    """Return the jobs with the largest parts of a link's traffic, with the names of their profiles by job."""
    shown = [f"{user.job} {_owner(user, profiles)}{user.part:.0%}" for user in link.users[:most]]
    rest = len(link.users) - most
    return ", ".join(shown) + (f", {rest} more" if rest > 0 else "")


def profile_names(live: Live) -> dict[str, str]:
    """Return the name that was given to the profile of each running job; empty without a profile."""
    return {one.stored.job.id: one.stored.profile_name for one in live.running.jobs}


def _owner(user: LinkUser, profiles: Mapping[str, str]) -> str:
    words = " ".join(word for word in (user.user, profiles[user.job]) if word)
    return f"({words}) " if words else ""


def _listed(jobs: list[str]) -> str:
    return ", ".join(jobs[:MAX_NAMED_JOBS]) + (", ..." if len(jobs) > MAX_NAMED_JOBS else "")
