"""Ports of a cluster with the registry: counters, running jobs and fabric at one time."""

from __future__ import annotations

from collections import defaultdict

from mapping.checks.error_limits import ErrorLimits, port_errors
from mapping.service.live import Live
from mapping.traffic.port_table import PortTable
from registry.errors import UnknownName
from registry.model import CounterDeltas, LinkRates, Time, link_rates
from registry.registry import Registry


def read_ports(registry: Registry, live: Live, limits: ErrorLimits, since: Time | None = None) -> PortTable:
    """Read the growth of a cluster's port counters until the time of its running jobs.

    After the first sweep, errors are those since the ports' counters were reset.

    Parameters
    ----------
    since : datetime, optional
        Errors and utilisation since this time. Default: errors in the period of `limits`, utilisation between
        the last two sweeps.

    Raises
    ------
    UnknownName
        The cluster has counters, but no two sweeps since then.
    """
    cluster, at = live.running.snapshot.cluster, live.running.at
    rates: LinkRates | None = None
    if since is None:
        grown = registry.counters.recent(cluster, limits.period, at)
        try:
            rates = registry.counters.rates(cluster, at)
        except UnknownName:  # no sweeps, or only sweeps of errors
            rates = None
        grown = grown or _since_reset(registry, cluster, at)
    else:
        grown = registry.counters.between(cluster, since, at)
        rates = link_rates(live.fabric, grown)
    jobs: defaultdict[str, list[str]] = defaultdict(list)
    known = live.fabric.known_vertices({host for one in live.running.jobs for host in one.stored.job.hosts})
    for job in live.running.jobs:
        for host in job.stored.job.hosts:
            name = live.fabric.names[known[host]] if host in known else host
            jobs[name].append(job.stored.job.id)
    return PortTable(
        shared=live.shared,
        jobs_of_host={host: tuple(ids) for host, ids in jobs.items()},
        errors=None if grown is None else port_errors(live.fabric, grown, limits),
        rates=rates,
    )


def _since_reset(registry: Registry, cluster: str, at: Time) -> CounterDeltas | None:
    """Return what the last sweep counted in all; None without a sweep."""
    try:
        return CounterDeltas.since_reset(registry.counters.read(cluster, at))
    except UnknownName:
        return None
