"""JSON of running jobs: congestion, what-if and advice for a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from almanac.output.json.placements import compared_metrics_to_json, link_to_json
from almanac.output.json.stored_data import changes_to_json, findings_to_json
from almanac.output.printing import attributes, finite, renamed
from almanac.output.running_jobs import link_name, profile_names
from almanac.output.today import best_action

if TYPE_CHECKING:
    from mapping.questions.advise import Advised
    from mapping.questions.circuits import JobsOnSwitch
    from mapping.questions.live import Live
    from mapping.questions.today import Today
    from mapping.traffic.job_loads import RankPairs
    from mapping.traffic.shared_load import HotLink, LinkUser, SharedLoad
    from mapping.traffic.what_if import WhatIf
    from registry.store.running_jobs import StoredAdvice

USER_KEYS = ("job", "user", "application", "bytes", "part")
"""Attributes of a job's part of a link's traffic."""


def fabric_to_json(live: Live | JobsOnSwitch) -> dict[str, Any]:
    """Return the keys that name the fabric and its time."""
    snapshot = live.running.snapshot
    return {
        "cluster": snapshot.cluster,
        "at": live.running.at,
        "snapshot": snapshot.id,
        "observed_at": snapshot.observed_at,
    }


def omitted_jobs_to_json(live: Live | JobsOnSwitch) -> dict[str, Any]:
    """Return the number of running jobs, and those that are not included."""
    return {
        "running_job_count": len(live.running.jobs),
        "without_profile": [one.stored.job.id for one in live.without_profile],
        "left_out": [{"job": one.job.stored.job.id, "reason": one.reason} for one in live.unloaded],
    }


def heading_to_json(live: Live) -> dict[str, Any]:
    """Return the first keys of a document on running jobs."""
    return {
        **fabric_to_json(live),
        "routing": live.routing,
        "rails": live.costs.rails,
        **omitted_jobs_to_json(live),
    }


def congestion_to_json(
    live: Live, links: Sequence[HotLink], pairs: Mapping[str, RankPairs] | None, top: int
) -> dict[str, Any]:
    """Return the document of ``almanac congestion``.

    Parameters
    ----------
    links : sequence of HotLink
        Links to list.
    pairs : mapping of str to RankPairs, or None
        Pairs of ranks on the one link that was asked for, by job.
    top : int
        Maximum number of pairs of ranks.
    """
    worst, profiles = live.shared.worst_shared_link(), profile_names(live)
    return {
        **heading_to_json(live),
        "evaluated": list(live.evaluated),
        "links": [_link(link, link_name(live, link), profiles) for link in links],
        "jobs": slowdowns_to_json(live),
        "worst_pair": None if worst is None else _pair(worst, link_name(live, worst), profiles),
        **({} if pairs is None else {"rank_pairs": rank_pairs_to_json(pairs, top)}),
    }


def slowdowns_to_json(live: Live) -> list[dict[str, Any]]:
    """Return the jobs with traffic, largest slowdown first, and last those whose slowdown is unknown."""
    from mapping.traffic.names import link_text
    from mapping.traffic.shared_load import interference

    found, profiles = interference(live.shared), profile_names(live)
    seconds = zip(found.alone_seconds.tolist(), found.together_seconds.tolist(), strict=True)
    links = zip(found.worst_link.tolist(), found.share.tolist(), strict=True)
    rows = [
        {
            **attributes(load, "job", "user", "application"),
            "profile": profiles[load.job],
            "placement": load.placement or None,
            "iteration_seconds": load.iteration_seconds,
            "iteration_from": load.iteration_from or None,
            "alone_seconds": alone,
            "together_seconds": finite(together),
            "slowdown": finite(slowdown),
            "link": None if row < 0 else link_text(live.fabric, row),
            "share": share,
        }
        for load, (alone, together), slowdown, (row, share) in zip(
            live.shared.jobs, seconds, found.slowdowns.tolist(), links, strict=True
        )
    ]
    return sorted(rows, key=lambda row: -(row["slowdown"] or 0.0))


def rank_pairs_to_json(pairs: Mapping[str, RankPairs], top: int) -> list[dict[str, Any]]:
    """Return the pairs of ranks of all jobs, most bytes first."""
    rows = [
        {"job": job, "sender": sender, "receiver": receiver, "bytes": size}
        for job, found in pairs.items()
        for sender, receiver, size in zip(
            found.sender.tolist(), found.receiver.tolist(), found.bytes.tolist(), strict=True
        )
    ]
    return sorted(rows, key=lambda row: -row["bytes"])[:top]


def what_if_to_json(live: Live, found: WhatIf, top: int) -> dict[str, Any]:
    """Return the document of ``almanac whatif``, with at most `top` links."""
    return {
        **heading_to_json(live),
        "routing_after": found.rule,
        "change": asdict(found.change),
        "before": totals_to_json(found.before),
        "unchanged": totals_to_json(found.unchanged),
        "after": totals_to_json(found.after),
        "links": changed_links_to_json(found, profile_names(live), top),
        "jobs": [asdict(one) for one in found.jobs_by_effect()],
    }


def totals_to_json(shared: SharedLoad) -> dict[str, float]:
    """Return the congestion of all links, and of those between switches."""
    seconds, inner = shared.seconds, shared.fabric.network_link
    return {
        "congestion_seconds": float(seconds.max(initial=0.0)),
        "network_congestion_seconds": float(seconds[inner].max(initial=0.0)),
    }


def changed_links_to_json(found: WhatIf, profiles: Mapping[str, str], top: int) -> list[dict[str, Any]]:
    """Return the busiest links after the change, with their times before and with the new routing only."""
    from mapping.traffic.names import link_text

    before, unchanged = found.before.seconds, found.unchanged.seconds
    rows = []
    for link in found.after.hottest(top):
        old_row = int(found.row_before[link.row])
        fields = _link(link, link_text(found.after.fabric, link.row), profiles)
        sides = {"before_seconds": before, "unchanged_seconds": unchanged}
        rows.append(
            {**fields, **{key: None if old_row < 0 else float(side[old_row]) for key, side in sides.items()}}
        )
    return rows


def cluster_advice_to_json(live: Live, advised: Sequence[Advised], complete: bool) -> dict[str, Any]:
    """Return the document of ``almanac advise jobs``."""
    profiles = profile_names(live)
    return {
        **heading_to_json(live),
        "complete": complete,
        "jobs": [_advised(one, profiles) for one in advised],
    }


def today_to_json(today: Today) -> dict[str, Any]:
    """Return the document of ``almanac today``."""
    action, slowed = best_action(today), {one.load.job: one.link for one in today.slowed}
    return {
        **heading_to_json(today.live),
        "at": today.at,
        "since": today.since,
        "changes": None if today.changes is None else changes_to_json(today.cluster, today.changes),
        "findings": findings_to_json(today.findings),
        "sources": [
            {"name": name, "state": one.state, "seen": one.words} for name, one in today.sources.items()
        ],
        "failed_runs": [attributes(run, "at", "files", "error") for run in today.failed],
        "jobs": [
            {**row, "link": link_name(today.live, slowed[row["job"]])}
            for row in slowdowns_to_json(today.live)
            if row["job"] in slowed
        ],
        "advice": [
            {
                **attributes(one, "job", "at"),
                "present_placement": one.present,
                "proposed_placement": one.proposed,
                **attributes(one, "gain", "moved"),
            }
            for one in today.advice
        ],
        "action": None if action is None else action._asdict(),
    }


def stored_advice_to_json(advice: StoredAdvice) -> dict[str, Any]:
    """Return saved advice with the keys of ``almanac advise jobs``, and its time."""
    fields = renamed(advice, present="present_placement", proposed="proposed_placement")
    del fields["cluster"], fields["id"]
    return {**fields, "gain": advice.gain}


def _advised(one: Advised, profiles: Mapping[str, str]) -> dict[str, Any]:
    fields = renamed(one.advice, present="present_placement", proposed="proposed_placement")
    del fields["cluster"], fields["at"]
    return {
        **fields,
        "user": one.user,
        "application": one.application,
        "profile": profiles[one.advice.job],
        "gain": one.advice.gain,
        "present_metrics": compared_metrics_to_json(one.before),
        "proposed_metrics": compared_metrics_to_json(one.after),
    }


def _link(link: HotLink, name: str, profiles: Mapping[str, str]) -> dict[str, Any]:
    users = [_user(user, profiles) for user in link.users]
    return {"link": name, "network": link.network, **link_to_json(link.load), "users": users}


def _pair(link: HotLink, name: str, profiles: Mapping[str, str]) -> dict[str, Any]:
    first, second = (_user(user, profiles) for user in link.users[:2])
    return {"link": name, "first": first, "second": second}


def _user(user: LinkUser, profiles: Mapping[str, str]) -> dict[str, Any]:
    return {**attributes(user, *USER_KEYS), "profile": profiles[user.job]}
